"""Evidence: ``python -m bench.evidence DATA MODEL WORK`` writes ``bench/EVIDENCE.md``.

DATA is a folder of sets (``scifact/pairs.jsonl``, ``audit/truth.jsonl``, ...), MODEL the folder of ``nlp-retrieval evidence
train-verifier``, trained without the families of the audit (``python -m bench.evidence.split`` makes such a folder), WORK a
folder for what takes long: judgements are kept there by verifier and set, so that a second run judges nothing again.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np

from bench.evidence import audit, pairs
from bench.evidence.measures import with_interval
from bench.writing import page, table
from nlp_retrieval.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.evidence.verifiers.calibration import Calibration, fit_calibration
from nlp_retrieval.evidence.verifiers.fitting import best_threshold
from nlp_retrieval.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.evidence.verifiers.signals.checks import SIGNALS
from nlp_retrieval.evidence.verifiers.training.examples import held_out_families, with_plants
from nlp_retrieval.evidence.verifiers.training.pairs import JudgedPair, read_pairs

_HERE = Path(__file__).parent
_AUDIT_HEADS = ("verifier", "threshold", "precision", "recall", "false alarms", "dead named", "living called dead")
_MOST_OF_A_SET = 400
_PLANTS = 0.5


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 3:
        print("usage: python -m bench.evidence DATA MODEL WORK")
        return 2
    data, model, work = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    report = json.loads((model / "training_report.json").read_text())
    known = _known(data)
    held = held_out_families(known, report["settings"]["held_out"], report["settings"]["seed"])
    fitted = {"lexical": _some(known), "model": _some([pair for pair in known if pair.family in held])}
    verifiers: dict[str, tuple[BaseVerifier, tuple[str, ...]]] = {
        "overlap": (LexicalVerifier(), ("overlap",)),
        "lexical": (LexicalVerifier(), SIGNALS),
        "pair model": (PairModelVerifier(str(model)), pairs.MODEL_SIGNALS),
        "pair model and lexical": (PairModelVerifier(str(model)), (*pairs.MODEL_SIGNALS, *SIGNALS)),
    }
    kept = {"overlap": "lexical", "lexical": "lexical", "pair model": "model", "pair model and lexical": "model"}
    rows: dict[str, list[str]] = {}
    audits: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    told = ""
    for name, (verifier, signals) in verifiers.items():
        ground = pairs.judged(verifier, fitted[kept[name]], work / f"{kept[name]}-held-out.jsonl")
        for collection in pairs.SETS:
            rows[f"{collection}, {name}"] = _row(data, work, collection, verifier, kept[name], ground, signals)
        file = work / f"{name.replace(' ', '-')}.json"
        if not file.is_file():
            fitted_one = _calibration(ground, signals)
            fitted_one.model_copy(update={"threshold": _threshold(ground, fitted_one)}).save(file)
        threshold = Calibration.read(file).threshold
        calibrated: BaseVerifier = PairModelVerifier(str(model), calibration=str(file))
        if kept[name] == "lexical":
            calibrated = LexicalVerifier(str(file))
        found = audit.audited(data / "audit", calibrated, work, work / f"audit-{name.replace(' ', '-')}.jsonl", threshold)
        figures = audit.figures(found)
        main_ones = ("precision", "recall", "false alarms", "not_indexed named", "living called dead")
        audits[name] = [f"{threshold:.2f}", *(with_interval(figures[one], found.families) for one in main_ones)]
        kinds[name] = [with_interval(figures[one], found.families).split(" ")[0] for one in audit.KINDS]
        unseen = audit.without(found, ["scifact", "citation_integrity", "wice"])
        others = audit.figures(unseen)
        audits[f"{name}, sets never trained on"] = ["", *(with_interval(others[one], unseen.families) for one in main_ones)]
        told = json.dumps(audit.reasons(found), indent=None)
    heads = ["set, verifier", "pairs", "macro-F1", "F1 by label", "AUC", "sentence hit@1", "macro-F1 without near rows"]
    text = (_HERE / "page.md").read_text("utf-8")
    values = {
        "pairs": table(heads, rows),
        "audit": table(
            ["verifier", "threshold", *("precision", "recall", "false alarms", "dead named", "living called dead")], audits
        ),
        "kinds": table(["verifier", *audit.KINDS], kinds),
        "reasons": told,
        "epochs": len(report["losses"]),
        "losses": ", ".join(f"{loss:.3f}" for loss in report["losses"]),
        "short": (_HERE / "short.md").read_text("utf-8"),
        "trained": f"{report['pairs']:,}",
        "held": f"{report['held_out']:,}",
        "settings": ", ".join(f"{key} {value}" for key, value in report["settings"].items()),
    }
    (_HERE.parent / "EVIDENCE.md").write_text(page(text, **values))
    return 0


def _known(data: Path) -> list[JudgedPair]:
    """The pairs of the training parts, without families of the audit."""
    families = {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    return [pair for pair in read_pairs(data) if pair.family.partition("/")[2] not in families]


def _some(known: list[JudgedPair]) -> list[JudgedPair]:
    """At most as many pairs of each set as are needed, with made-up ones."""
    rng = random.Random(0)
    by_set = {name: [pair for pair in known if pair.collection == name] for name in pairs.SETS}
    some = [pair for name in pairs.SETS for pair in rng.sample(by_set[name], min(_MOST_OF_A_SET, len(by_set[name])))]
    return with_plants(some, _PLANTS, rng)


def _row(
    data: Path, work: Path, collection: str, verifier: BaseVerifier, kept: str, ground: pairs.Judged, signals: tuple[str, ...]
) -> list[str]:
    judged = pairs.judged(verifier, pairs.pairs_of(data, collection), work / f"{kept}-{collection}.jsonl")
    # made-up claims are no claims of the set
    real = [number for number, pair in enumerate(ground.pairs) if pair.pair_id.count("/") == 0]
    own = pairs.Judged([ground.pairs[n] for n in real], [ground.signals[n] for n in real], [ground.sentences[n] for n in real])
    figures = pairs.figures(collection, own, judged, signals)
    families = [pair.family for pair in judged.pairs]
    near = pairs.near_rows(data, collection)
    labels = [name for name in figures if name not in {"macro-F1", "AUC"}]
    each = ", ".join(f"{name} {figures[name](np.arange(len(families))):.2f}" for name in labels)
    hit, of = pairs.hits(judged)
    apart = f"{figures['macro-F1'](np.flatnonzero(~near)):.3f}" if near.any() else ""
    sentence = with_interval(hit, of) if of else ""
    return [
        f"{len(families):,}", with_interval(figures["macro-F1"], families), each, with_interval(figures["AUC"], families),
        sentence, apart,
    ]  # fmt: skip


def _calibration(ground: pairs.Judged, signals: tuple[str, ...]) -> Calibration:
    counts: dict[tuple[str, str], int] = {}
    for pair in ground.pairs:
        counts[pair.collection, pair.label] = counts.get((pair.collection, pair.label), 0) + 1
    weights = [1 / counts[pair.collection, pair.label] for pair in ground.pairs]
    return fit_calibration(ground.signals, [pair.label for pair in ground.pairs], signals, weights)


def _threshold(ground: pairs.Judged, calibration: Calibration) -> float:
    """Where right and wrong claims of the held-out families, each half of all, are told apart best."""
    supported = np.array([pair.label == "support" for pair in ground.pairs])
    return best_threshold(calibration.probabilities(ground.signals)[:, 0], supported)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
