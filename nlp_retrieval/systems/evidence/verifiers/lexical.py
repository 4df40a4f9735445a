"""Verification without a model: words, numbers, names, negation and opposites."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval.core import READS_FILE, may_set
from nlp_retrieval.systems.evidence.lookups.checks import check
from nlp_retrieval.systems.evidence.verifiers.base import CalibratedVerifier, Calibration, Judgement

_DEFAULT = Path(__file__).parent / "lexical.json"


class LexicalVerifier(CalibratedVerifier):
    """Judges without a model, by the words, numbers, names and negation of the claim and the passage.

    It recognises the subject of a passage, a missing number or name, a negation and a word of the opposite meaning, and
    nothing else: it cannot tell a contradiction in other words from support (``bench/EVIDENCE_LEXICAL.md`` has its
    accuracy). Its probabilities come from a logistic regression over these signals
    (:mod:`nlp_retrieval.systems.evidence.lookups.checks`).

    Args:
        calibration: a file of ``nlp-retrieval evidence calibrate`` with other weights.

    Examples:
        >>> passage = "The blue whale eats four tons of krill a day."
        >>> claims = ["The blue whale eats krill.", "The blue whale does not eat krill."]
        >>> first, second = LexicalVerifier().judge(claims, [passage, passage])
        >>> first.support > 0.5, second.contradict > 0.5
        (True, True)
    """

    name = "lexical"
    cannot_see = (
        "lexical compares words: it cannot see an error in other words, such as a swapped cause and effect, a condition, or an "
        "opposite that is in no list."
    )
    sees_contradictions = False
    manifest_may_set = may_set(calibration=READS_FILE)

    def __init__(self, calibration: str | None = None) -> None:
        self.calibration = calibration

    @property
    def weights(self) -> Calibration:
        """Return the calibration, read at first use: by default the package's own."""
        if self._weights is None:
            self._weights = Calibration.read(self.calibration or _DEFAULT)
        return self._weights

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        checks = [check(claim, passage) for claim, passage in zip(claims, passages, strict=True)]
        probabilities = self.weights.probabilities([checked.signals for checked in checks])
        return [
            Judgement(float(support), float(contradict), float(neutral), checked.sentence, checked.signals)
            for (support, contradict, neutral), checked in zip(probabilities, checks, strict=True)
        ]
