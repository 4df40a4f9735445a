"""Verification by a language model, whose answer counts only if its quote is in the passage."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import READS_FILE, add_note, has_no_words, may_set
from nlp_retrieval.lm import LONGEST_ANSWER, read_object
from nlp_retrieval.systems.evidence.lookups.checks import check
from nlp_retrieval.systems.evidence.verifiers.base import Judgement, Span, nearest_windows
from nlp_retrieval.systems.evidence.verifiers.lexical import CalibratedVerifier
from nlp_retrieval.text import fenced, located, sentences_around

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.prompts import PassageJudgement

_MOST_CLAIM, _WINDOW = 2000, 800
_SUREST = 0.98
_UNPROVEN = (0.1, 0.1, 0.8)
"""Probabilities without a usable answer, or with a quote that is not in the passage; no calibration changes them."""
_LEFT_OUT = "(text is left out here)"


class LanguageModelVerifier(CalibratedVerifier):
    """Judges by a language model, which gives a verdict on a claim and a passage, its confidence, and the deciding words.

    The words must be in the passage word for word (white space, and the shape of quotation marks and dashes, may differ); an
    answer of "support" or "contradict" with other words counts as neutral (signal ``quote_missing``), and so does a pair
    without a usable answer; warnings count both. For a claim of more than 2,000 characters the model is not called. The
    confidence, at most 0.98, is the probability of the verdict; models tend to be too confident, so calibrate.

    Args:
        lm: the language model; its answers are cached on disk, its calls counted and limited.
        calibration: a file of ``nlp-retrieval evidence calibrate``; by default the probabilities are as described.
        most_characters: the most characters of a passage that are shown: the windows that share most words with the claim,
            in the order of the text.

    Examples:
        >>> LanguageModelVerifier(LanguageModel("openai/gpt-4o-mini"), most_characters=4000)
        LanguageModelVerifier(lm=LanguageModel(model='openai/gpt-4o-mini'), most_characters=4000)
    """

    name = "language_model"
    manifest_may_set = may_set("lm", "most_characters", calibration=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel,
        calibration: str | None = None,
        most_characters: Annotated[int, Field(ge=_WINDOW)] = 6000,
    ) -> None:
        self.lm = LanguageModel.of_client(lm)
        self.calibration = calibration
        self.most_characters = most_characters

    def judge_pairs(self, claims: list[str], passages: list[str]) -> list[Judgement]:
        from nlp_retrieval.lm import ask_all, dspy
        from nlp_retrieval.systems.evidence.prompts import JudgeClaim

        _ = self.weights  # a file that cannot be read is noticed before the model is asked
        pairs = list(zip(claims, passages, strict=True))
        asked = [
            number
            for number, (claim, passage) in enumerate(pairs)
            if len(claim) <= _MOST_CLAIM and not has_no_words(claim) and fenced(passage).strip()
        ]
        questions = [{"claim": fenced(pairs[n][0]), "passage": self._marked(*pairs[n])} for n in asked]
        otherwise, predict = "are claims beside passages, and count as neutral", dspy.Predict(JudgeClaim)
        answers = ask_all(self.lm, predict, questions, "judgement", _read, self.name, otherwise) if asked else []
        answered = {n: (a, _quoted(a.quote, passages[n])) for n, a in zip(asked, answers, strict=True) if a is not None}
        judgements = [self._judgement(*pair, *answered.get(number, (None, None))) for number, pair in enumerate(pairs)]
        if invented := sum(bool(a.quote.strip()) and sentence is None for a, sentence in answered.values()):
            add_note(
                f"{self.name}: {self.lm.model} gave a quote that is not in the passage for {invented:,} of {len(asked):,} "
                "claims beside passages, which count as neutral"
            )
        return judgements

    def _judgement(self, claim: str, passage: str, answer: PassageJudgement | None, sentence: Span | None) -> Judgement:
        checked, probabilities = check(claim, passage), _UNPROVEN
        is_proven = answer is not None and (sentence is not None or answer.verdict == "neutral")
        if answer is not None and is_proven:
            sure = min(max(answer.confidence, 1 / 3), _SUREST)
            rest = (1 - sure) / 2
            support, contradict = (sure if answer.verdict == verdict else rest for verdict in ("support", "contradict"))
            probabilities = support, contradict, 1 - support - contradict
        signals = {
            "model_support": math.log(probabilities[0] / probabilities[2]),
            "model_contradict": math.log(probabilities[1] / probabilities[2]),
            "quote_missing": float(answer is not None and not is_proven),
        } | checked.signals
        if is_proven and self.weights is not None:
            probabilities = tuple(self.weights.probabilities([signals])[0].tolist())
        return Judgement(*probabilities, sentence or checked.sentence, signals, answer is not None)

    def _marked(self, claim: str, passage: str) -> str:
        """Return the windows nearest to a claim, between marks that no text can contain: they are derived from all of it."""
        most = self.most_characters
        spans = nearest_windows(claim, passage, _WINDOW, most // _WINDOW, room=most)
        ends = [(0, 0), *spans, (len(passage), len(passage))]
        left_out = [bool(passage[before[1] : after[0]].strip()) for before, after in pairwise(ends)]
        lines = [_LEFT_OUT] * left_out[0]
        for span, is_followed in zip(spans, left_out[1:], strict=True):
            lines += [fenced(passage[slice(*span)][:most])] + [_LEFT_OUT] * is_followed
        mark = hashlib.sha256("\n".join([fenced(claim), *lines]).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return "\n".join([f"{mark} begin", *lines, f"{mark} end"])


def _quoted(quote: str, passage: str) -> Span | None:
    """Return the sentences of a passage with a quote; None if it does not have it."""
    span = located(quote[:LONGEST_ANSWER], passage)
    return None if span is None else sentences_around(span, passage)


def _read(_: Mapping[str, Any], answer: object) -> PassageJudgement | None:
    """Return the judgement in an answer, even if it is JSON among other words; None if there is none."""
    from nlp_retrieval.systems.evidence.prompts import PassageJudgement

    value = read_object(answer[:LONGEST_ANSWER]) if isinstance(answer, str) else answer
    try:
        return PassageJudgement.model_validate(value)
    except ValidationError:
        return None
