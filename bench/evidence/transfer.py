"""``python -m bench.evidence.transfer DATA SPLIT MODEL WORK`` writes ``bench/EVIDENCE_LEFT_OUT.md``: claims of another field.

A user's claims are from none of the sets. DATA and MODEL are as for ``python -m bench.evidence``, SPLIT is what ``python -m
bench.evidence.split`` wrote and MODEL was trained on. Three models are trained as MODEL was, each without the two sets of one
field, in WORK, and are taken up where a run was stopped; the page is written after each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from bench.evidence import pairs
from bench.evidence.measures import with_interval
from bench.writing import page, table
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, read_pairs
from nlp_retrieval.systems.evidence.verifiers.training import TrainingSettings, train_verifier

_PAGE = Path(__file__).parent.parent / "EVIDENCE_LEFT_OUT.md"
_FIELDS = {
    "science": ("scifact", "citation_integrity"),
    "pandemic": ("healthver", "covidfact"),
    "Wikipedia": ("fever", "wice"),
}
_FIGURES = ("AUC", "macro-F1")
_TEXT = """# Claims of a field that was not trained on

What the pair model is worth on a set with that set's own pairs in training, and without them and those of the other set of its
field, which is where a user's claims stand.

- Written by `python -m bench.evidence.transfer DATA SPLIT MODEL WORK` on $date.
- $machine.
- Brackets hold 95% intervals, by resampling whole families 1,000 times.

The model of [EVIDENCE.md](EVIDENCE.md), and three that were trained as it was, each without the two sets of one field. The
calls are the model's own likeliest labels.

$rows
"""


def main(arguments: list[str]) -> int:
    """Train, judge, and write the page."""
    if len(arguments) != 4:
        print("usage: python -m bench.evidence.transfer DATA SPLIT MODEL WORK")
        return 2
    data, split, whole, work = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    known, report = read_pairs(split), json.loads((whole / "training_report.json").read_text("utf-8"))
    settings = TrainingSettings(**report["settings"])
    rows: dict[str, list[str]] = {}
    heads = ["set", "field", "pairs", *_FIGURES, *(f"{figure}, field left out" for figure in _FIGURES)]
    for field, sets in _FIELDS.items():
        apart = work / field
        train_verifier([pair for pair in known if pair.collection not in sets], report["base"], apart, settings)
        for name in sets:
            of = pairs.pairs_of(data, name)
            with torch.autocast("cpu", torch.bfloat16):
                found = [_cells(name, of, model, work) for model in (whole, apart)]
            rows[name] = [field, f"{len(of):,}", *(cell for cells in found for cell in cells)]
        _PAGE.write_text(page(_TEXT, rows=table(heads, rows)), "utf-8")
    return 0


def _cells(name: str, of: list[JudgedPair], model: Path, work: Path) -> list[str]:
    """AUC and macro-F1 of the model's own calls, with intervals."""
    judged = pairs.judged(PairModelVerifier(str(model)), of, work / f"{model.name}-{name}.jsonl")
    found = pairs.figures(name, judged, judged, pairs.MODEL_SIGNALS)
    families = [pair.family for pair in of]
    return [with_interval(found[figure], families) for figure in _FIGURES]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
