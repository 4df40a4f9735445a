"""Silence: whether the passages of a subject answer a question at all, and the sentence that answers it best.

The best passage of a subject that says nothing of a matter scores as high as that of one that does. So a sentence is compared
with what says nothing: sentences of other matters (``UNRELATED``), whose likeness to the question has a mean and a spread for
any encoder. And a plan is compared with the plans of other subjects: a question whose keywords they all use wants more of them.
``bench/POLICY.md`` tells how the weights were fitted, and what they are worth.
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

UNRELATED = tuple(
    line.strip()
    for line in """
    The plan was adopted after a public hearing and is reviewed every two years.
    This chapter describes how the document is organised.
    The council thanks everyone who took part in the survey.
    The annex lists the members of the working group.
    Copies can be ordered from the office of the secretary.
    The first part of the report covers the years of the last term.
    Each department names a person who answers for progress.
    The school year begins in September and ends in June.
    Pupils receive a free lunch on four days of the week.
    Teachers attend a course in reading and arithmetic.
    The library lends books, films and musical instruments.
    Twelve new playgrounds are opened before the summer holidays.
    The museum shows paintings of the nineteenth century.
    The orchestra plays in the town hall on Sunday evenings.
    The swimming pool is closed for repairs until March.
    The football club trains young players on Tuesdays.
    Visitors may park behind the station for two hours.
    The bridge was painted, and its lamps were replaced.
    Roads in the old town are swept twice a week.
    Passports are issued within ten working days.
    The court hears appeals against decisions of the tax office.
    The police answer emergency calls within nine minutes.
    Elections are held every four years by secret ballot.
    Members of parliament declare their income once a year.
    The army trains recruits for eleven months.
    The embassy moved to a larger building near the harbour.
    Pensions rise with the average wage.
    Unemployed people are offered a place in a course.
    The hospital has three hundred beds and a ward for children.
    Nurses work in shifts of eight hours.
    The dentist sees patients without an appointment on Fridays.
    The bank raised its interest rate by a quarter of a point.
    Exports of furniture rose by six per cent last year.
    The factory employs four hundred people and makes shoes.
    Prices of flats doubled within ten years.
    The airport handles nine million passengers a year.
    A new telephone network reaches most villages.
    The digital archive holds two million documents.
    The software is updated on the first Monday of the month.
    The university awards degrees in law and history.
    The language has three genders and six cases.
    The novel tells the story of two sisters in a fishing village.
    """.strip().splitlines()
)
"""Sentences that answer no question of a profile."""

_PASSAGES = 5
_SENTENCES = 12
_LONGEST = 600
_FEWEST_WORDS = 3
"""Passages of a question whose sentences are compared, sentences of each, characters of a sentence, and its fewest words."""

_SPOKEN, _LEAST = 3, 0.4
"""Sentences of a subject with the most keywords, and the least that they are compared with: silence of all is no measure."""

WEIGHTS = {"likeness": 0.713, "keywords": 6.657, "intercept": -0.7}
"""Weights of a logistic regression, fitted on every second country of three collections.

The border calls few answers silent on purpose, 1.5% of those of these countries: an answer that is taken for silence is lost,
while silence that is not recognised is read. Silence on one question among others of its field is often missed; see
``bench/POLICY.md``.
"""

WITHOUT_VECTORS = {"keywords": 7.612, "intercept": 1.903}
"""The same where sentences have no vectors: 5% are called silent, as nothing else tells a plan of other matters."""

_SAME = 0.7
"""Words that a sentence shares with one of a later edition that took its place, at least; figures are none."""

RULE = [WEIGHTS, WITHOUT_VECTORS, _SAME]
"""What decides on an answer: answers of another rule are asked for again."""

_WORD = re.compile(r"[^\W\d]+")

_VALUE = 2.0
"""What a sentence gains by holding a value, in standard deviations of likeness."""


@dataclass(frozen=True)
class Evidence:
    """What the sentences of a subject have for a question.

    Args:
        likeness: the highest: standard deviations above what unrelated sentences have; NaN without vectors.
        keywords: how much more the sentences speak in the question's keywords than those of other subjects (:func:`beyond`).
    """

    likeness: float
    keywords: float

    @property
    def score(self) -> float:
        """Return how surely the question is addressed, 0 to 1; 0.5 is the border."""
        weights = WITHOUT_VECTORS if math.isnan(self.likeness) else WEIGHTS
        total = weights["intercept"] + weights["keywords"] * self.keywords
        if "likeness" in weights:
            total += weights["likeness"] * self.likeness
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total))))


@dataclass(frozen=True)
class Finding:
    """Whether a question is addressed, and by which sentence.

    Args:
        score: how surely it is addressed, 0 to 1.
        item: the passage of the sentence; None if there is no sentence at all.
        sentence: the best one; empty if there is none.
    """

    score: float
    item: SearchableItem | None
    sentence: str

    @property
    def addressed(self) -> bool:
        """Return whether the question is addressed."""
        return self.score >= 0.5


class Silence:
    """Finds the best sentence for a profile's questions, and whether it answers.

    Args:
        profile: whose questions are asked.
        encoder: of sentence vectors; None to compare words alone.
    """

    def __init__(self, profile: Profile, encoder: BaseEncoder | None) -> None:
        self._profile = profile
        self._encoder = encoder
        self._stems = stems_of_language(profile.language)
        self._function_words = frozenset(map(self._stems.stem, FUNCTION_WORDS))
        self._keywords = [self._wanted(question) for question in profile.questions]
        self._lengths = {len(keyword) for wanted in self._keywords for keyword in wanted}
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._shares: dict[str, list[float]] = {}

    def findings(
        self,
        questions: Sequence[ProfileQuestion],
        lists: Sequence[Sequence[RetrievalResult]],
        plain: PlainPassages,
        others: Sequence[NDArray[np.float64]],
    ) -> list[Finding]:
        """Return the finding of each question.

        Args:
            questions: of the profile.
            lists: the hits of each, best first, in all passages of the subject; the sentences of the first five are compared.
            plain: gives what each passage says.
            others: :meth:`covered` of other subjects.
        """
        read = [self.sentences([hit.item for hit in hits[:_PASSAGES]], plain) for hits in lists]
        self._encode([sentence for sentences in read for _, sentence in sentences])
        passages = {hit.item.item_id: hit.item for hits in lists for hit in hits}.values()
        more = beyond(self.covered(passages, plain), others)
        editions = {document: place for place, (document, _) in enumerate(editions_of(passages))}
        return [self._finding(question, sentences, more, editions) for question, sentences in zip(questions, read, strict=True)]

    def covered(self, items: Iterable[SearchableItem], plain: PlainPassages) -> NDArray[np.float64]:
        """Return 1 - 2^-m for m distinct keywords of a question in a sentence: ``[sentences, questions of the profile]``."""
        rows = [self._covered(sentence) for _, sentence in self.sentences(items, plain)]
        return np.array(rows, np.float64).reshape(len(rows), len(self._keywords))

    def evidence(self, question: ProfileQuestion, sentences: Sequence[str], more: NDArray[np.float64]) -> tuple[Evidence, int]:
        """Return what sentences have for a question, and which of them is the best: one with a value, if one is asked for.

        Args:
            question: of the profile.
            sentences: at least one.
            more: what :func:`beyond` returns.
        """
        place = next(place for place, other in enumerate(self._profile.questions) if other.number == question.number)
        covered = np.array([self._covered(sentence)[place] for sentence in sentences])
        held = np.zeros(len(sentences))
        if question.value is not None:
            held = np.array([_VALUE * bool(values_of(sentence, question.value)) for sentence in sentences])
        if self._encoder is None:
            return Evidence(math.nan, float(more[place])), int(np.argmax(covered + held))
        self._encode(sentences)
        vectors = np.array([self._vectors[sentence] for sentence in sentences])
        mean, spread = self._background
        likeness = (np.einsum("ij,j->i", vectors, self._queries[place]) - mean[place]) / spread
        return Evidence(float(likeness.max()), float(more[place])), int(np.argmax(likeness + covered + held))

    @cached_property
    def _queries(self) -> NDArray[np.float64]:
        """``[questions, dimension]``: each with its keywords, and with no subject's name."""
        assert self._encoder is not None  # noqa: S101
        texts = [
            " ".join([question.asked_of(f"the {self._profile.subject}"), *question.keywords])
            for question in self._profile.questions
        ]
        return unit_vectors(self._encoder.encode_queries(texts))

    @cached_property
    def _background(self) -> tuple[NDArray[np.float64], float]:
        """The mean likeness of each question to unrelated sentences, and its spread, of all questions."""
        assert self._encoder is not None  # noqa: S101
        likeness = unit_vectors(self._encoder.encode_passages(list(UNRELATED))) @ self._queries.T
        return likeness.mean(axis=0), max(float(likeness.std(axis=0).mean()), 1e-6)

    def _finding(
        self,
        question: ProfileQuestion,
        sentences: list[tuple[SearchableItem, str]],
        more: NDArray[np.float64],
        editions: Mapping[str, int],
    ) -> Finding:
        if not sentences:
            return Finding(0.0, None, "")
        evidence, best = self.evidence(question, [sentence for _, sentence in sentences], more)
        return Finding(evidence.score, *_latest(sentences, best, editions))

    @staticmethod
    def sentences(items: Iterable[SearchableItem], plain: PlainPassages) -> list[tuple[SearchableItem, str]]:
        """Return the sentences of passages, each with its passage, in their order; of each passage the first twelve.

        A title of the document that is printed in it is none.
        """
        sentences = []
        for item in items:
            text = plain.split(item)[0].removeprefix(item.title)
            own = [" ".join(text[begin:end].split())[:_LONGEST] for begin, end in sentences_of(text)]
            title = " ".join(str(item.metadata.get("document_title", "")).casefold().split())
            own = [each for each in own if len(each.split()) >= _FEWEST_WORDS and each.casefold() != title]
            sentences += [(item, sentence) for sentence in own[:_SENTENCES]]
        return sentences

    def _encode(self, sentences: Sequence[str]) -> None:
        missing = list(dict.fromkeys(sentence for sentence in sentences if sentence not in self._vectors))
        if self._encoder is not None and missing:
            self._vectors |= dict(zip(missing, unit_vectors(self._encoder.encode_passages(missing)), strict=True))

    def _wanted(self, question: ProfileQuestion) -> frozenset[tuple[str, ...]]:
        """Return the keywords of a question, as stems; without any, the words of its text."""
        if question.keywords:
            return frozenset(tuple(self._stems.words(keyword)) for keyword in question.keywords)
        return frozenset((stem,) for stem in self._stems.words(question.asked_of(None)) if stem not in self._function_words)

    def _covered(self, sentence: str) -> list[float]:
        """Return 1 - 2^-m for the m distinct keywords of each question in a sentence."""
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
    """Return by question how much more a subject speaks of it than the median of others, in as many of their sentences.

    A subject speaks of a question as much as the three sentences that cover its keywords best do on average.

    Args:
        own: ``[sentences, questions]``: how far each covers the keywords of each question, 0 to 1.
        others: the same of other subjects.

    Examples:
        >>> beyond(np.full((4, 1), 0.75), [np.full((9, 1), 0.5)])
        array([0.25])
    """
    rows = [np.linspace(0, len(other) - 1, min(len(own), len(other))).astype(int) for other in others]
    usual = [_spoken(other[some]) for other, some in zip(others, rows, strict=True) if len(some)]
    return _spoken(own) - (np.maximum(np.median(usual, axis=0), _LEAST) if usual else _LEAST)


def _spoken(covered: NDArray[np.float64]) -> NDArray[np.float64]:
    best = np.sort(covered, axis=0)[-_SPOKEN:]
    return np.asarray(best.sum(axis=0) / max(1, len(best)))
