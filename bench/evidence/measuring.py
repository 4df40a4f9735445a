"""What is measured of any verifier: its calls on the sets, and what the audit finds by it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.evidence import audit, pairs
from bench.evidence.measures import with_interval
from bench.evidence.perturbations import with_perturbations
from bench.writing import table
from nlp_retrieval.systems.evidence.verifiers.base import UNREAD, BaseVerifier, Judgement
from nlp_retrieval.systems.evidence.verifiers.calibration import Calibration, fit_calibration
from nlp_retrieval.systems.evidence.verifiers.fitting import best_threshold, open_support
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, read_pairs

_AUDIT_HEADS = ("verifier", "threshold", "precision", "recall", "false alarms", "dead named", "living called dead")
_MOST_OF_A_SET = 400
_PLANTS = 0.5


@dataclass(frozen=True)
class Measured:
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


def sets_of(data: Path, work: Path, measured: list[Measured]) -> dict[str, object]:
    """The table of claims and passages, for a page's ``$pairs``."""
    heads = ["set, verifier", "pairs", "macro-F1", "F1 by label", "AUC", "sentence hit@1", "macro-F1 without near rows"]
    rows = {f"{name}, {one.name}": _row(data, work, name, one) for one in measured for name in pairs.SETS}
    return {"pairs": table(heads, rows)}


def audits_of(data: Path, work: Path, measured: list[Measured]) -> dict[str, object]:
    """The tables of the audit, for a page's ``$audit`` and ``$kinds``, and the reasons that the last verifier gave."""
    main_ones = ("precision", "recall", "false alarms", "not_indexed named", "living called dead")
    audits: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    told = ""
    known: dict[str, dict[tuple[str, str], Judgement]] = {}
    for one in measured:
        file = one.calibration(work)
        verifier: pairs.Remembered | LexicalVerifier = LexicalVerifier(str(file))
        if not isinstance(one.verifier, LexicalVerifier):
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


def known_pairs(data: Path) -> list[JudgedPair]:
    """The pairs of the training parts, without families of the audit."""
    families = {json.loads(line)["family"] for line in (data / "audit" / "truth.jsonl").read_text("utf-8").splitlines()}
    return [pair for pair in read_pairs(data) if pair.family.partition("/")[2] not in families]


def some_pairs(known: list[JudgedPair]) -> list[JudgedPair]:
    """At most as many pairs of each set as are needed, with made-up ones."""
    rng = random.Random(0)
    by_set = {name: [pair for pair in known if pair.collection == name] for name in pairs.SETS}
    some = [pair for name in pairs.SETS for pair in rng.sample(by_set[name], min(_MOST_OF_A_SET, len(by_set[name])))]
    return with_perturbations(some, _PLANTS, rng)


def _row(data: Path, work: Path, collection: str, one: Measured) -> list[str]:
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
    return fit_calibration(ground.signals, [pair.label for pair in ground.pairs], signals, _weights(ground))


def _weights(ground: pairs.Judged) -> list[float]:
    counts: dict[tuple[str, str], int] = {}
    for pair in ground.pairs:
        counts[pair.collection, pair.label] = counts.get((pair.collection, pair.label), 0) + 1
    return [1 / counts[pair.collection, pair.label] for pair in ground.pairs]


def _threshold(ground: pairs.Judged, calibration: Calibration) -> float:
    """Where right and wrong claims of the held-out families that lookups leave open, each half of all, are told apart best."""
    supported = np.array([pair.label == "support" for pair in ground.pairs])
    support = open_support(ground.pairs, calibration.probabilities(ground.signals)[:, 0])
    return best_threshold(support, supported, np.array(_weights(ground)))
