"""``python -m bench.evidence.transfer DATA BASE WORK`` writes ``bench/EVIDENCE_LEFT_OUT.md``: a set that was not trained on.

A user's claims are from none of the sets. DATA is a folder of sets, BASE the model to begin with, WORK a folder for the models:
seven, each trained as ``nlp-retrieval evidence train-verifier`` does by default, and taken up where a run was stopped. With one
pass over the short pairs a model has learnt nothing yet (AUC .50 on all sets), so there is no shorter way.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from bench.evidence import pairs
from bench.evidence.measures import with_interval
from bench.writing import page, table
from nlp_retrieval.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.evidence.verifiers.training.fine_tuning import TrainingSettings
from nlp_retrieval.evidence.verifiers.training.pairs import JudgedPair, read_pairs
from nlp_retrieval.evidence.verifiers.training.run import train_verifier

_PAGE = Path(__file__).parent.parent / "EVIDENCE_LEFT_OUT.md"
_SETTINGS = TrainingSettings(precision="bfloat16")
_TEXT = """# Claims from a set that was not trained on

What a verifier is worth on a set with that set's own pairs in training, and without them.

- Written by `python -m bench.evidence.transfer DATA BASE WORK` on $date.
- $machine.
- Brackets hold 95% intervals, by resampling whole families 1,000 times.

The calls are the model's own likeliest labels. The models are trained on families of the audit too, other than in
[EVIDENCE.md](EVIDENCE.md).

$rows
"""


def main(arguments: list[str]) -> int:
    """Train, judge, and write the section."""
    if len(arguments) != 3:
        print("usage: python -m bench.evidence.transfer DATA BASE WORK")
        return 2
    data, base, work = Path(arguments[0]), arguments[1], Path(arguments[2])
    work.mkdir(parents=True, exist_ok=True)
    known = read_pairs(data)
    rows: dict[str, list[str]] = {}
    with torch.autocast("cpu", torch.bfloat16):
        whole = _trained(known, base, work / "all")
        for name in sorted({pair.collection for pair in known}):
            apart = _trained([pair for pair in known if pair.collection != name], base, work / f"without-{name}")
            of = pairs.pairs_of(data, name)
            rows[name] = [f"{len(of):,}", *_cells(name, of, whole, work), *_cells(name, of, apart, work)]
    heads = ["set", "pairs", "AUC", "macro-F1", "AUC, left out", "macro-F1, left out"]
    _PAGE.write_text(page(_TEXT, rows=table(heads, rows)), "utf-8")
    return 0


def _trained(known: list[JudgedPair], base: str, folder: Path) -> PairModelVerifier:
    train_verifier(known, base, folder, _SETTINGS, print)
    return PairModelVerifier(str(folder))


def _cells(name: str, of: list[JudgedPair], model: PairModelVerifier, work: Path) -> list[str]:
    """AUC and macro-F1 of the model's own calls, with intervals."""
    judged = pairs.judged(model, of, work / f"{Path(model.model).name}-{name}.jsonl")
    found = pairs.figures(name, judged, judged, pairs.MODEL_SIGNALS)
    families = [pair.family for pair in of]
    return [with_interval(found[figure], families) for figure in ("AUC", "macro-F1")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
