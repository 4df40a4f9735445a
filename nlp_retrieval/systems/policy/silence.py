"""Silence: whether the passages of a subject answer a question at all, and the sentence that answers it best.

The best passage of a subject that says nothing of a matter scores as high as that of one that does. So a plan is compared with
the plans of other subjects: a question whose keywords they all use wants more of them, unless the value that it asks for is
there. ``bench/POLICY.md`` tells how the border was chosen, and what it is worth.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.rerankers import Profile, ProfileQuestion
from nlp_retrieval.systems.policy.answers import document_of
from nlp_retrieval.systems.policy.editions import editions_of
from nlp_retrieval.systems.policy.running_text import PlainPassages, unit_vectors
from nlp_retrieval.systems.policy.values import values_of
from nlp_retrieval.text import FUNCTION_WORDS, sentences_of, stems_of_language

_PASSAGES, _SENTENCES, _LONGEST, _FEWEST_WORDS = 5, 12, 600, 3
"""Passages of a question whose sentences are compared, sentences of each, characters of a sentence, and its fewest words."""

_SPOKEN, _LEAST = 3, 0.4
"""Sentences of a subject with the most keywords, and the least that they are compared with: silence of all is no measure."""

WEIGHT, INTERCEPT = 7.612, 3.0
"""Of a logistic regression: a plan with none of the keywords is just silent, the border that folds over countries give.

The border calls few answers silent on purpose: an answer that is taken for silence is lost, while silence that is not
recognised is read. Silence on one question among others of its field is often missed; see ``bench/POLICY.md``.
"""

ADDRESSED = 0.5
"""The border of the score; a question whose best sentence holds the value that it asks for is addressed."""

_SAME = 0.7
"""Words that a sentence shares with one of a later edition that took its place, at least; figures are none."""

_VALUE, _LIKENESS = 2.0, 12.0
"""What a sentence gains by holding a value, and by a cosine of 1 with the question."""

RULE = [WEIGHT, INTERCEPT, ADDRESSED, _SAME, _VALUE, _LIKENESS]
"""What decides on an answer: answers of another rule are asked for again."""

_WORD = re.compile(r"[^\W\d]+")


@dataclass(frozen=True)
class Finding:
    """How surely a question is addressed, 0 to 1, and the best sentence with its passage; None if there is no sentence."""

    score: float
    item: SearchableItem | None
    sentence: str

    @property
    def addressed(self) -> bool:
        """Return whether the question is addressed."""
        return self.score >= ADDRESSED


class Silence:
    """Finds the best sentence for a profile's questions, and whether they are addressed; without an encoder by words alone."""

    def __init__(self, profile: Profile, encoder: BaseEncoder | None) -> None:
        self._profile = profile
        self._encoder = encoder
        self._stems = stems_of_language(profile.language)
        self._function_words = frozenset(map(self._stems.stem, FUNCTION_WORDS))
        self._places = {question.number: place for place, question in enumerate(profile.questions)}
        self._keywords = [self._wanted(question) for question in profile.questions]
        self._lengths = {len(keyword) for wanted in self._keywords for keyword in wanted}
        self._shares: dict[str, list[float]] = {}

    def findings(
        self,
        questions: Sequence[ProfileQuestion],
        lists: Sequence[Sequence[RetrievalResult]],
        plain: PlainPassages,
        others: Sequence[NDArray[np.float64]],
    ) -> list[Finding]:
        """Return the finding of each question."""
        passages = {hit.item.item_id: hit.item for hits in lists for hit in hits}.values()
        more = beyond(self.covered(passages, plain), others)
        editions = {document_of(item): place for place, (_, own) in enumerate(editions_of(passages)) for item in own}
        findings = []
        for question, hits in zip(questions, lists, strict=True):
            sentences = self.sentences([hit.item for hit in hits[:_PASSAGES]], plain)
            if not sentences:
                findings.append(Finding(0.0, None, ""))
                continue
            best = self._best(question, [sentence for _, sentence in sentences])
            item, sentence = _latest(sentences, best, editions)
            score = 1.0 / (1.0 + math.exp(-WEIGHT * float(more[self._places[question.number]]) - INTERCEPT))
            if question.value is not None and values_of(sentence, question.value):
                score = max(score, ADDRESSED)
            findings.append(Finding(score, item, sentence))
        return findings

    def covered(self, items: Iterable[SearchableItem], plain: PlainPassages) -> NDArray[np.float64]:
        """Return 1 - 2^-m for m distinct keywords of a question in a sentence: ``[sentences, questions of the profile]``."""
        rows = [self._covered(sentence) for _, sentence in self.sentences(items, plain)]
        return np.array(rows, np.float64).reshape(len(rows), len(self._keywords))

    @staticmethod
    def sentences(items: Iterable[SearchableItem], plain: PlainPassages) -> list[tuple[SearchableItem, str]]:
        """Return the first sentences of passages, each with its passage; a title that is printed in a document is none."""
        sentences = []
        for item in items:
            text = plain.split(item)[0].removeprefix(item.title)
            own = [" ".join(text[begin:end].split())[:_LONGEST] for begin, end in sentences_of(text)]
            title = " ".join(str(item.metadata.get("document_title", "")).casefold().split())
            own = [each for each in own if len(each.split()) >= _FEWEST_WORDS and each.casefold() != title]
            sentences += [(item, sentence) for sentence in own[:_SENTENCES]]
        return sentences

    def _best(self, question: ProfileQuestion, sentences: Sequence[str]) -> int:
        """Return which sentence answers best: by likeness, keywords, and a value if one is asked for."""
        place = self._places[question.number]
        worth = np.array([self._covered(sentence)[place] for sentence in sentences])
        if question.value is not None:
            worth += [_VALUE * bool(values_of(sentence, question.value)) for sentence in sentences]
        if self._encoder is not None:
            vectors = unit_vectors(self._encoder.encode_passages(list(sentences)))
            worth += _LIKENESS * np.einsum("ij,j->i", vectors, self._queries[place])
        return int(np.argmax(worth))

    @cached_property
    def _queries(self) -> NDArray[np.float64]:
        """``[questions, dimension]``: each with its keywords, and with no subject's name."""
        about = f"the {self._profile.subject}"
        texts = [" ".join([question.asked_of(about), *question.keywords]) for question in self._profile.questions]
        return unit_vectors(self._encoder.encode_queries(texts)) if self._encoder is not None else np.zeros((0, 0))

    def _wanted(self, question: ProfileQuestion) -> frozenset[tuple[str, ...]]:
        """Return the keywords of a question, as stems; without any, the words of its text."""
        if question.keywords:
            return frozenset(tuple(self._stems.words(keyword)) for keyword in question.keywords)
        return frozenset((stem,) for stem in self._stems.words(question.asked_of(None)) if stem not in self._function_words)

    def _covered(self, sentence: str) -> list[float]:
        if sentence not in self._shares:
            words = self._stems.words(sentence)
            runs = {run for length in self._lengths for run in zip(*(words[skip:] for skip in range(length)), strict=False)}
            self._shares[sentence] = [1.0 - 0.5 ** len(runs & wanted) for wanted in self._keywords]
        return self._shares[sentence]


def _latest(
    sentences: Sequence[tuple[SearchableItem, str]], best: int, editions: Mapping[str, int]
) -> tuple[SearchableItem, str]:
    """Return the best sentence as the latest edition has it, with other figures perhaps; else as it is."""
    bags = [Counter(_WORD.findall(sentence.lower())) for _, sentence in sentences]
    likeness = [(bags[best] & bag).total() / max(bags[best].total(), bag.total(), 1) for bag in bags]
    alike = [place for place, share in enumerate(likeness) if place == best or share >= _SAME]
    return sentences[max(alike, key=lambda place: (editions.get(document_of(sentences[place][0]), -1), likeness[place]))]


def beyond(own: NDArray[np.float64], others: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return by question how much more a subject speaks of it than the median of others, in as many of their sentences."""
    rows = [np.linspace(0, len(other) - 1, min(len(own), len(other))).astype(int) for other in others]
    usual = [_spoken(other[some]) for other, some in zip(others, rows, strict=True) if len(some)]
    return _spoken(own) - (np.maximum(np.median(usual, axis=0), _LEAST) if usual else _LEAST)


def _spoken(covered: NDArray[np.float64]) -> NDArray[np.float64]:
    best = np.sort(covered, axis=0)[-_SPOKEN:]
    return np.asarray(best.sum(axis=0) / max(1, len(best)))
