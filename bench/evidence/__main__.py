"""Evidence: ``python -m bench.evidence DATA MODEL WORK`` writes ``bench/EVIDENCE.md``.

DATA is a folder of sets (``scifact/pairs.jsonl``, ``audit/truth.jsonl``, ...), MODEL the folder of ``nlp-retrieval evidence
train-verifier``, trained without the families of the audit (``python -m bench.evidence.split`` makes such a folder), WORK a
folder for what takes long: judgements are kept there by verifier and set, so that a second run judges nothing again.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.evidence import audit, open_task, pairs
from bench.evidence.measures import said_and_seen, with_interval
from bench.writing import page, table
from nlp_retrieval.evidence.verifiers.base import UNREAD, BaseVerifier, Judgement
from nlp_retrieval.evidence.verifiers.calibration import Calibration, fit_calibration
from nlp_retrieval.evidence.verifiers.fitting import best_threshold
from nlp_retrieval.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.evidence.verifiers.signals.checks import SIGNALS
from nlp_retrieval.evidence.verifiers.training.examples import held_out_families, with_plants
from nlp_retrieval.evidence.verifiers.training.pairs import JudgedPair, read_pairs

_HERE = Path(__file__).parent
_AUDIT_HEADS = ("verifier", "threshold", "precision", "recall", "false alarms", "dead named", "living called dead")
_TIMED = ("fever", "scifact", "wice")
_TIMED_PAIRS = 40
_READ_FROM = "bm25s and dense, fused"
_MOST_OF_A_SET = 400
_PLANTS = 0.5


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 3:
        print("usage: python -m bench.evidence DATA MODEL WORK")
        return 2
    data, model, work = map(Path, arguments)
    with torch.autocast("cpu", torch.bfloat16):
        return _measure(data, model, work)


def _measure(data: Path, model: Path, work: Path) -> int:
    work.mkdir(parents=True, exist_ok=True)
    report = json.loads((model / "training_report.json").read_text())
    known = _known(data)
    held = held_out_families(known, report["settings"]["held_out"], report["settings"]["seed"])
    unseen = [pair for pair in known if pair.family in held]
    measured = [
        _Measured("overlap", LexicalVerifier(), ("overlap",), "lexical", _some(known)),
        _Measured("lexical", LexicalVerifier(), SIGNALS, "lexical", _some(known)),
        _Measured("pair model", PairModelVerifier(str(model)), pairs.MODEL_SIGNALS, "model", _some(unseen)),
        _Measured(
            "pair model and lexical", PairModelVerifier(str(model)), (*pairs.MODEL_SIGNALS, *SIGNALS), "model", _some(unseen)
        ),
    ]
    values: dict[str, object] = {"short": (_HERE / "short.md").read_text("utf-8")}
    values |= _trained(report) | _sets(data, work, measured) | _audits(data, work, measured)
    values |= _open_task(data, work, measured[2], report["base"], {family.partition("/")[2] for family in held})
    values |= _calibrated(data, work, measured[3]) | _costs(data, measured)
    (_HERE.parent / "EVIDENCE.md").write_text(page((_HERE / "page.md").read_text("utf-8"), **values))
    return 0


@dataclass(frozen=True)
class _Measured:
    """A verifier as it is measured.

    Args:
        name: in tables.
        verifier: that gives the signals.
        signals: that count.
        kept: before the names of the files that hold what it said.
        ground: pairs of families that it was not trained on, to fit on.
    """

    name: str
    verifier: BaseVerifier
    signals: tuple[str, ...]
    kept: str
    ground: list[JudgedPair]

    def on_ground(self, work: Path) -> pairs.Judged:
        """What it says of the pairs to fit on, without those that it did not read."""
        found = pairs.judged(self.verifier, self.ground, work / f"{self.kept}-held-out.jsonl")
        return found.at([number for number, signals in enumerate(found.signals) if not signals.get(UNREAD)])

    def on_set(self, data: Path, work: Path, collection: str) -> pairs.Judged:
        """What it says of a set."""
        return pairs.judged(self.verifier, pairs.pairs_of(data, collection), work / f"{self.kept}-{collection}.jsonl")

    def calibration(self, work: Path) -> Path:
        """The file of its calibration, with the threshold of the audit."""
        file = work / f"{self.name.replace(' ', '-')}.json"
        if not file.is_file():
            ground = self.on_ground(work)
            fitted = _calibration(ground, self.signals)
            fitted.model_copy(update={"threshold": _threshold(ground, fitted)}).save(file)
        return file


def _trained(report: dict[str, Any]) -> dict[str, object]:
    return {
        "losses": ", ".join(f"{loss:.3f}" for loss in report["losses"]),
        "best": report["best_epoch"],
        "trained": f"{report['pairs']:,}",
        "held": f"{report['held_out']:,}",
        "settings": ", ".join(f"{key} {value}" for key, value in report["settings"].items()),
    }


def _sets(data: Path, work: Path, measured: list[_Measured]) -> dict[str, object]:
    heads = ["set, verifier", "pairs", "macro-F1", "F1 by label", "AUC", "sentence hit@1", "macro-F1 without near rows"]
    rows = {f"{name}, {one.name}": _row(data, work, name, one) for one in measured for name in pairs.SETS}
    return {"pairs": table(heads, rows)}


def _audits(data: Path, work: Path, measured: list[_Measured]) -> dict[str, object]:
    main_ones = ("precision", "recall", "false alarms", "not_indexed named", "living called dead")
    audits: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    told = ""
    known: dict[str, dict[tuple[str, str], Judgement]] = {}
    for one in measured:
        file = one.calibration(work)
        verifier = pairs.Remembered(one.verifier, str(file), known.setdefault(one.kept, {}))
        found = audit.audited(data / "audit", verifier, work, work / f"audit-{file.stem}.jsonl", verifier.threshold)
        unseen = audit.without(found, ["scifact", "citation_integrity", "wice"])
        figures, others = audit.figures(found), audit.figures(unseen)
        audits[one.name] = [
            f"{verifier.threshold:.2f}",
            *(with_interval(figures[name], found.families) for name in main_ones),
        ]
        audits[f"{one.name}, sets never trained on"] = [
            "",
            *(with_interval(others[name], unseen.families) for name in main_ones),
        ]
        kinds[one.name] = [with_interval(figures[kind], found.families).split(" ")[0] for kind in audit.KINDS]
        told = json.dumps(audit.reasons(found))
    return {
        "audit": table(_AUDIT_HEADS, audits),
        "kinds": table(["verifier", *audit.KINDS], kinds),
        "reasons": told,
    }


def _open_task(data: Path, work: Path, one: _Measured, base: str, held: set[str]) -> dict[str, object]:
    """SciFact, open: claims to choose on are those of families that were not trained on."""
    untrained = held | {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    claims = open_task.claims_of(data, "dev")
    choosing = open_task.claims_of(data, "train", untrained)
    recall: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    folder = work / "scifact"
    for name, searcher in open_task.searchers(base, folder, data).items():
        ranked = open_task.found(searcher, folder, claims)
        recall[name] = open_task.recall_rows(claims, ranked)
        if name != _READ_FROM:
            continue
        first = open_task.found(searcher, folder, choosing)
        ground = open_task.judged_first(one.verifier, data, choosing, first, work / "open-choosing.jsonl")
        of = open_task.judged_first(one.verifier, data, claims, ranked, work / "open.jsonl")
        read, cut = open_task.chosen(choosing, ground, pairs.own_probabilities(ground.signals))
        f1 = open_task.abstract_f1(claims, open_task.called(len(claims), of, pairs.own_probabilities(of.signals), read, cut))
        called[name] = [f"{read}", f"{cut:.2f}", with_interval(f1, [claim.family for claim in claims])]
    return {
        "open_recall": table(["searcher", "recall@3", "recall@10"], recall),
        "open_f1": table(["searcher", "abstracts read", "cut", "abstract F1"], called),
        "open_chosen_on": f"{len(choosing):,}",
    }


def _calibrated(data: Path, work: Path, one: _Measured) -> dict[str, object]:
    """Whether a probability of support is what it says, on sets that people judged."""
    calibration = Calibration.read(one.calibration(work))
    said, supported = [], []
    for name in pairs.SETS:
        of = one.on_set(data, work, name)
        said.append(calibration.probabilities(of.signals)[:, 0])
        supported.append(np.array([pair.label == "support" for pair in of.pairs]))
    rows, error = said_and_seen(np.concatenate(said), np.concatenate(supported))
    return {"calibration": table(["said", "pairs", "mean said", "supported", ""], rows), "calibration_error": f"{error:.3f}"}


def _costs(data: Path, measured: list[_Measured]) -> dict[str, object]:
    """Milliseconds of a claim beside a passage, the best of three times over the same pairs, one after the other."""
    rows: dict[str, list[str]] = {}
    for one in (measured[1], measured[2]):
        cells = []
        for collection in _TIMED:
            some = pairs.pairs_of(data, collection)[:_TIMED_PAIRS]
            took = []
            for _ in range(3):
                begin = time.perf_counter()
                for pair in some:
                    one.verifier.judge([pair.claim], [pair.passage])
                took.append((time.perf_counter() - begin) / len(some))
            cells.append(f"{1000 * min(took):.1f}")
        rows[one.name] = cells
    return {"costs": table(["verifier", *_TIMED], rows)}


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


def _row(data: Path, work: Path, collection: str, one: _Measured) -> list[str]:
    judged, ground = one.on_set(data, work, collection), one.on_ground(work)
    # made-up claims are no claims of the set
    real = [number for number, pair in enumerate(ground.pairs) if pair.pair_id.count("/") == 0]
    figures = pairs.figures(collection, ground.at(real), judged, one.signals)
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
