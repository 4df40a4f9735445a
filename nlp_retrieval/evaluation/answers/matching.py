"""How far two answers, or two sets of supporting facts, agree.

Answers are compared as SQuAD does (Rajpurkar et al., 2016): in lower case, without punctuation and articles. F1 is HotpotQA's
(Yang et al., 2018): "yes", "no" and "noanswer" agree with themselves alone.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from nlp_retrieval.core.answer import Fact

__all__ = ["Agreement", "answers_agree", "facts_agree", "normalize_answer"]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ALONE = frozenset({"yes", "no", "noanswer"})


class Agreement(NamedTuple):
    """How far an answer, or its facts, agrees with the gold; each from 0 to 1."""

    exact: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.precision * self.recall / (self.precision + self.recall) if self.precision + self.recall else 0.0

    def joint(self, other: Agreement) -> Agreement:
        """The agreement of both: exact where both are, precision and recall multiplied, as HotpotQA does."""
        return Agreement(self.exact * other.exact, self.precision * other.precision, self.recall * other.recall)


NONE, FULL = Agreement(0.0, 0.0, 0.0), Agreement(1.0, 1.0, 1.0)


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared: lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def answers_agree(text: str, answers: Sequence[str]) -> Agreement:
    """Return how far an answer agrees with the right one that it agrees with most.

    Args:
        text: the answer; empty where there is none.
        answers: texts that are right; none where no answer is.
    """
    if not answers:
        return NONE if text else FULL
    agreed = [_agreement(text, answer) for answer in answers]
    best = max(agreed, key=lambda one: (one.f1, one.exact))
    return best._replace(exact=max(one.exact for one in agreed))


def facts_agree(cited: Collection[Fact], gold: Collection[Fact]) -> Agreement:
    """Return how far cited sentences are those that support the answer."""
    found, wanted = set(cited), set(gold)
    both = len(found & wanted)
    precision = both / len(found) if found else 0.0
    recall = both / len(wanted) if wanted else 0.0
    return Agreement(float(found == wanted), precision, recall)


def _agreement(text: str, answer: str) -> Agreement:
    one, other = normalize_answer(text), normalize_answer(answer)
    exact = float(one == other)
    if not exact and ({one, other} & _ALONE):
        return NONE
    words, wanted = one.split(), other.split()
    both = sum((Counter(words) & Counter(wanted)).values())
    return Agreement(exact, both / len(words), both / len(wanted)) if both else Agreement(exact, 0.0, 0.0)
