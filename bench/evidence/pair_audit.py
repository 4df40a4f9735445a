"""``python -m bench.evidence.pair_audit DATA MODEL WORK [SPLIT]``: the audit by lookups with a pair model above them.

It writes a section of ``bench/EVIDENCE.md`` in minutes, where ``bench.evidence`` takes more than an hour. The arguments are
those of ``bench.evidence``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from bench.evidence import pairs
from bench.evidence.measuring import Measured, audits_of, known_pairs, some_pairs
from bench.evidence.speed_page import PAIR_AUDIT, write_section
from nlp_retrieval.systems.evidence.checks import SIGNALS
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import held_out_families, read_pairs

_PAGE = Path(__file__).parent.parent / "EVIDENCE.md"
_TEXT = """
By `python -m bench.evidence.pair_audit DATA MODEL WORK` on $date, after the lookups were changed: the audit of 400 citations,
where lookups decide first and the verifier is asked what they leave open. The pair model was trained on $trained pairs of the
training parts without the families of the audit ($held held out; losses $losses, pass $best kept). Its calibration and the
threshold are from families that it was not trained on. Recall .90 at precision .90 was the goal; what `lexical` gives is in
[EVIDENCE_LEXICAL.md](EVIDENCE_LEXICAL.md).

$audit

Share of each kind of error that is flagged:

$kinds
"""


def main(arguments: list[str]) -> int:
    """Measure, and write the section."""
    if len(arguments) not in (3, 4):
        print("usage: python -m bench.evidence.pair_audit DATA MODEL WORK [SPLIT]")
        return 2
    data, model, work, *split = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    report = json.loads((model / "training_report.json").read_text())
    trained = read_pairs(split[0]) if split else known_pairs(data)
    held = held_out_families(trained, report["settings"]["held_out"], report["settings"]["seed"])
    unseen = some_pairs([pair for pair in trained if pair.family in held])
    both = (*pairs.MODEL_SIGNALS, *SIGNALS)
    measured = [Measured("pair model and lexical", PairModelVerifier(str(model)), both, "model", unseen)]
    with torch.autocast("cpu", torch.bfloat16):
        tables = audits_of(data, work, measured)
    losses = ", ".join(f"{loss:.3f}" for loss in report["losses"])
    write_section(
        _PAGE,
        PAIR_AUDIT,
        _TEXT,
        trained=f"{report['pairs']:,}",
        held=f"{report['held_out']:,}",
        losses=losses,
        best=report["best_epoch"],
        audit=tables["audit"],
        kinds=tables["kinds"],
    )
    print(f"{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
