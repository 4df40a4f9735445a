"""Verification by a language model that must prove its answer with a quote.

An answer counts only if its quote is in the passage, so that no answer can put words into a source.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, ValidationError

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import READS_FILE, add_note, has_no_words, may_set
from nlp_retrieval.lm import LONGEST_ANSWER, read_object
from nlp_retrieval.systems.evidence.lookups.checks import Checks, check
from nlp_retrieval.systems.evidence.verifiers.base import ABSTAINED, Judgement, Span, window_spans
from nlp_retrieval.systems.evidence.verifiers.calibration import CalibratedVerifier
from nlp_retrieval.text import fenced, located, sentences_around, words_of

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.prompts import PassageJudgement

__all__ = ["LanguageModelVerifier"]

Probabilities = tuple[float, float, float]

_MOST_CLAIM = 2000
_SUREST = 0.98
_UNPROVEN: Probabilities = (0.1, 0.1, 0.8)
"""Probabilities without a usable answer, or with a quote that is not in the passage; no calibration changes them."""

_VERDICTS = {
    "supports": "support", "supported": "support", "contradicts": "contradict", "contradicted": "contradict",
    "contradiction": "contradict",
}  # fmt: skip
_LEFT_OUT = "(text is left out here)"


@dataclass(frozen=True)
class _Answer:
    """Evaluated answer of the model for one pair; the sentence is the span of the quote."""

    probabilities: Probabilities
    sentence: Span | None = None
    quote_missing: bool = False
    abstained: bool = False

    @property
    def proven(self) -> bool:
        return not (self.quote_missing or self.abstained)


class LanguageModelVerifier(CalibratedVerifier):
    """Judges by a language model, which gives a verdict on a claim and a passage, its confidence, and the deciding words.

    The words must be in the passage word for word (white space, and the shape of quotation marks and dashes, may differ); the
    deciding sentence is the one of the passage that contains them. An answer of "support" or "contradict" with other words
    counts as neutral (signal ``quote_missing``), and so does a pair without a usable answer (signal ``abstained``). A warning
    per call counts the answers with an invented quote, another the unusable ones. For a claim of more than 2,000 characters
    the model is not called, and the verifier abstains. The confidence is used as the probability of the verdict, at most
    0.98, and the rest is divided between the other two; models tend to be too confident, so calibrate.

    Args:
        lm: the language model; its answers are cached on disk, its calls counted and limited.
        calibration: a file of ``nlp-retrieval evidence calibrate``; by default the probabilities are as described.
        window: the longest window of neighbouring sentences, in characters.
        most_characters: the most characters of a passage that are shown: the windows that share most words with the claim,
            in the order of the text.

    Examples:
        >>> LanguageModelVerifier(LanguageModel("openai/gpt-4o-mini"), most_characters=4000)
        LanguageModelVerifier(lm=LanguageModel(model='openai/gpt-4o-mini'), most_characters=4000)
    """

    name = "language_model"
    manifest_may_set = may_set("lm", "window", "most_characters", calibration=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel,
        calibration: str | None = None,
        window: Annotated[int, Field(ge=50)] = 800,
        most_characters: Annotated[int, Field(ge=50)] = 6000,
    ) -> None:
        self.lm = LanguageModel.of_client(lm)
        self.calibration = calibration
        self.window = window
        self.most_characters = most_characters
        self._predictor: Any = None

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        weights = self.weights
        answers = self._answers(claims, passages)
        checks = [check(claim, passage) for claim, passage in zip(claims, passages, strict=True)]
        signals = [_signals(answer, seen) for answer, seen in zip(answers, checks, strict=True)]
        probabilities = np.array([answer.probabilities for answer in answers])
        if weights is not None:
            proven = np.array([answer.proven for answer in answers])
            probabilities = np.where(proven[:, None], weights.probabilities(signals), probabilities)
        return [
            Judgement(float(support), float(contradict), float(neutral), answer.sentence or seen.sentence, signal)
            for (support, contradict, neutral), answer, seen, signal in zip(
                probabilities, answers, checks, signals, strict=True
            )
        ]

    def _answers(self, claims: list[str], passages: list[str]) -> list[_Answer]:
        from nlp_retrieval.lm import ask_all, dspy
        from nlp_retrieval.systems.evidence.prompts import JudgeClaim

        answers = [_Answer(_UNPROVEN, abstained=True)] * len(claims)
        asked = [n for n in range(len(claims)) if _is_read(claims[n]) and fenced(passages[n]).strip()]
        if not asked:
            return answers
        if self._predictor is None:
            self._predictor = dspy.Predict(JudgeClaim)
        judgements = ask_all(
            self.lm,
            self._predictor,
            [self._question(claims[n], passages[n]) for n in asked],
            "judgement",
            _read,
            self.name,
            "are claims beside passages, and count as neutral",
        )
        invented = 0
        for n, judgement in zip(asked, judgements, strict=True):
            if judgement is not None:
                answers[n] = _answer(judgement, passages[n])
                invented += answers[n].sentence is None and bool(judgement.quote.strip())
        if invented:
            add_note(
                f"{self.name}: {self.lm.model} gave a quote that is not in the passage for {invented:,} of {len(asked):,} "
                "claims beside passages, which count as neutral"
            )
        return answers

    def _question(self, claim: str, passage: str) -> dict[str, str]:
        """Return the input fields: no text can contain the mark around it, because the mark is derived from all of the text."""
        shown = fenced(claim)
        lines = self._excerpts(claim, passage)
        mark = hashlib.sha256("\n".join([shown, *lines]).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return {"claim": shown, "passage": "\n".join([f"{mark} begin", *lines, f"{mark} end"])}

    def _excerpts(self, claim: str, passage: str) -> list[str]:
        """Return the lines of a passage to show: the windows nearest to the claim, neighbours joined, in order."""
        wanted = set(words_of(claim))
        spans = window_spans(passage, self.window) or [(0, len(passage))]
        nearest = sorted(range(len(spans)), key=lambda n: (-len(wanted & set(words_of(passage[slice(*spans[n])]))), spans[n]))
        chosen: list[int] = []
        characters_left = self.most_characters
        for n in nearest:
            length = spans[n][1] - spans[n][0]
            if length <= characters_left or not chosen:
                chosen.append(n)
                characters_left -= length
        lines: list[str] = []
        before = -1
        for n in sorted(chosen):
            text = fenced(passage[slice(*spans[n])][: self.most_characters])
            if lines and n == before + 1:
                lines[-1] += f" {text}"
            else:
                lines += [_LEFT_OUT] * (n > before + 1) + [text]
            before = n
        return lines + [_LEFT_OUT] * (before + 1 < len(spans))


def _answer(judgement: PassageJudgement, passage: str) -> _Answer:
    quoted = located(judgement.quote[:LONGEST_ANSWER], passage)
    sentence = None if quoted is None else sentences_around(quoted, passage)
    if sentence is None and judgement.verdict != "neutral":
        return _Answer(_UNPROVEN, quote_missing=True)
    sure = min(max(judgement.confidence, 1 / 3), _SUREST)
    rest = (1 - sure) / 2
    support, contradict = (sure if judgement.verdict == verdict else rest for verdict in ("support", "contradict"))
    return _Answer((support, contradict, 1 - support - contradict), sentence)


def _is_read(claim: str) -> bool:
    return len(claim) <= _MOST_CLAIM and not has_no_words(claim)


def _signals(answer: _Answer, checks: Checks) -> dict[str, float]:
    support, contradict, neutral = answer.probabilities
    own = {
        "model_support": math.log(support / neutral),
        "model_contradict": math.log(contradict / neutral),
        "quote_missing": float(answer.quote_missing),
        ABSTAINED: float(answer.abstained),
    }
    return own | checks.signals


def _read(_: Mapping[str, Any], answer: object) -> PassageJudgement | None:
    """Return the judgement in an answer, even if it is JSON among other words; None if there is none."""
    from nlp_retrieval.systems.evidence.prompts import PassageJudgement

    if isinstance(answer, PassageJudgement):
        return answer
    value = read_object(answer[:LONGEST_ANSWER]) if isinstance(answer, str) else None
    if value is None:
        return None
    verdict = str(value.get("verdict")).strip().lower()
    try:
        return PassageJudgement.model_validate(value | {"verdict": _VERDICTS.get(verdict, verdict)})
    except ValidationError:
        return None
