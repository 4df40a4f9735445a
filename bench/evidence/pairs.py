"""Claims beside passages: which label a verifier calls, and which sentence decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.evidence.measures import Figure, auc_of, f1_by_label, mean_of
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement
from nlp_retrieval.systems.evidence.verifiers.calibration import CalibratedVerifier, Calibration, fit_calibration
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, read_pairs

SETS = (
    "scifact", "healthver", "covidfact", "citation_integrity", "attribution_bench", "fool_me_twice", "fever", "wice",
    "climate_fever",
)  # fmt: skip
_FAMILIES = 50
"""Of a set's own pairs, from which on they are enough to fit on."""

MODEL_SIGNALS = ("model_support", "model_contradict")
_OPPOSITE = {"scifact": ["contradict"], "healthver": ["contradict"], "climate_fever": ["contradict"]}


@dataclass(frozen=True)
class Judged:
    """Pairs, and what a verifier said of each: its signals and the deciding sentence in the passage."""

    pairs: list[JudgedPair]
    signals: list[dict[str, float]]
    sentences: list[tuple[int, int]]

    def at(self, rows: Sequence[int]) -> Judged:
        """Some of them."""
        return Judged(*([values[row] for row in rows] for values in (self.pairs, self.signals, self.sentences)))


def judged(verifier: BaseVerifier, pairs: list[JudgedPair], kept: Path) -> Judged:
    """Judge pairs, or read what was kept of an earlier run."""
    if not kept.is_file():
        lines = []
        for first in range(0, len(pairs), 32):
            some = pairs[first : first + 32]
            judgements = verifier.judge([pair.claim for pair in some], [pair.passage for pair in some])
            lines += [json.dumps([one.signals, one.sentence]) for one in judgements]
            print(f"{kept.stem}: {len(lines)} of {len(pairs)}", flush=True)
        kept.write_text("\n".join(lines))
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    return Judged(pairs, [signals for signals, _ in rows], [(begin, end) for _, (begin, end) in rows])


class Remembered(CalibratedVerifier):
    """A verifier whose signals are looked up where they are known, and calibrated.

    Args:
        verifier: gives the signals of what is not known.
        calibration: a file.
        known: what the verifier said, by claim and passage; grows.
    """

    name = "remembered"

    def __init__(self, verifier: BaseVerifier, calibration: str, known: Any) -> None:
        self.verifier, self.calibration, self.known = verifier, calibration, known

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        asked = list(zip(claims, passages, strict=True))
        new = [one for one in dict.fromkeys(asked) if one not in self.known]
        if new:
            judged_now = self.verifier.judge([claim for claim, _ in new], [passage for _, passage in new])
            self.known |= dict(zip(new, judged_now, strict=True))
        found = [self.known[one] for one in asked]
        probabilities = Calibration.read(self.calibration or "").probabilities([one.signals for one in found])
        return [
            replace(one, support=float(support), contradict=float(contradict), neutral=float(neutral))
            for one, (support, contradict, neutral) in zip(found, probabilities, strict=True)
        ]


def pairs_of(data: Path, name: str) -> list[JudgedPair]:
    """The pairs of a set that verifiers are judged on."""
    return read_pairs(data / name / "pairs.jsonl")


def near_rows(data: Path, name: str) -> NDArray[np.bool_]:
    """Which of them share most words of their claim with one that may be trained on."""
    lines = (data / name / "pairs.jsonl").read_text("utf-8").splitlines()
    return np.array([bool(json.loads(line).get("near")) for line in lines if line.strip()])


def figures(name: str, fitted_on: Judged, judged_on: Judged, signals: Sequence[str]) -> dict[str, Figure]:
    """The figures of a set, by the model's own probabilities, or by a regression over other signals, fitted on other families.

    Where the set has rows of 50 families to fit on, these alone are used; else those of all sets, each counting alike.
    """
    labels = [pair.label for pair in judged_on.pairs]
    if tuple(signals) == MODEL_SIGNALS:
        probabilities = own_probabilities(judged_on.signals)
    else:
        probabilities = _fitted(name, fitted_on, signals, three="neutral" in labels).probabilities(judged_on.signals)
    score = probabilities[:, 0] / (probabilities[:, 0] + probabilities[:, 1]) if "contradict" in labels else probabilities[:, 0]
    found = f1_by_label(labels, _calls(labels, probabilities))
    found["AUC"] = auc_of(score, labels, _OPPOSITE.get(name, ["contradict", "not_support"]))
    return found


def own_probabilities(signals: Sequence[dict[str, float]]) -> NDArray[np.float64]:
    """``[pairs, 3]``: what a pair model says itself of support, contradict and neutral."""
    logits = np.array([[*(one[name] for name in MODEL_SIGNALS), 0.0] for one in signals])
    raised: NDArray[np.float64] = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return found


def _fitted(name: str, fitted_on: Judged, signals: Sequence[str], *, three: bool) -> Calibration:
    own = [number for number, pair in enumerate(fitted_on.pairs) if pair.collection == name]
    enough = len({fitted_on.pairs[number].family for number in own}) >= _FAMILIES
    rows = own if enough else list(range(len(fitted_on.pairs)))
    labels = [_as_third(fitted_on.pairs[row].label, three=three, own=enough) for row in rows]
    counts: dict[tuple[str, str], int] = {}
    for row, label in zip(rows, labels, strict=True):
        key = (fitted_on.pairs[row].collection, label)
        counts[key] = counts.get(key, 0) + 1
    # labels count alike where macro-F1 does
    weights = [1 / counts[fitted_on.pairs[row].collection, label] for row, label in zip(rows, labels, strict=True)]
    return fit_calibration([fitted_on.signals[row] for row in rows], labels, signals, weights, ridge=2.0)


def hits(judged_on: Judged) -> tuple[Figure, list[str]]:
    """Whether the deciding sentence is one that people named, over the rows where they named one; and their families."""
    rows = [number for number, pair in enumerate(judged_on.pairs) if pair.rationale]
    values = [float(any(_most_of(judged_on.sentences[row], one) for one in judged_on.pairs[row].rationale)) for row in rows]
    return mean_of(values), [judged_on.pairs[row].family for row in rows]


def _most_of(sentence: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans share more than half of the shorter one."""
    shared = min(sentence[1], other[1]) - max(sentence[0], other[0])
    return shared > 0.5 * min(sentence[1] - sentence[0], other[1] - other[0])


def _as_third(label: str, *, three: bool, own: bool) -> str:
    """Where a set's own rows say "not_support", that label takes the place of "contradict"."""
    return "contradict" if label == "not_support" and (own or three) else label


def _calls(labels: Sequence[str], probabilities: NDArray[np.float64]) -> list[str]:
    against = "not_support" if "not_support" in labels else "contradict"
    if "neutral" in labels:
        return [("support", against, "neutral")[number] for number in probabilities.argmax(axis=1)]
    if against == "not_support":
        return ["support" if one[0] >= 0.5 else against for one in probabilities]
    return ["support" if one[0] >= one[1] else against for one in probabilities]
