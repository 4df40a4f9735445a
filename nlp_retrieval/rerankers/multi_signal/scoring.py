"""Computes the signals of candidates, and remembers what of texts is needed again: words, matches, vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.rerankers.multi_signal.features import Features, PatternMatch
from nlp_retrieval.rerankers.multi_signal.fuzzy import FuzzyWords
from nlp_retrieval.rerankers.multi_signal.patterns import pattern_scores
from nlp_retrieval.rerankers.multi_signal.profile import Profile
from nlp_retrieval.rerankers.multi_signal.quantities import AskedNumbers, NumbersOfTexts
from nlp_retrieval.rerankers.multi_signal.signals import SIGNALS
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts, PassageSource
from nlp_retrieval.rerankers.multi_signal.vectors import PassageVectors
from nlp_retrieval.text.stems import stems_of_language

__all__ = ["SignalScoring"]


class SignalScoring:
    """Computes signals; one thread at a time, whoever calls.

    Args:
        profile: its keywords and patterns.
        weights: by signal; those of weight 0 are not computed.
        fuzzy_threshold: words less alike than this are not alike.
        encoder: gives sentence vectors where no score came with a candidate; None for nobody.
        word_vectors: gives word vectors; None for nobody.
    """

    def __init__(
        self,
        profile: Profile,
        weights: Mapping[str, float],
        fuzzy_threshold: float,
        encoder: BaseEncoder | None,
        word_vectors: BaseEncoder | None,
    ) -> None:
        stems = stems_of_language(profile.language)
        has_features = bool(profile.groups or profile.patterns or profile.questions)
        self.features = Features(profile, stems) if has_features else None
        self._weights = weights
        self._fuzzy = FuzzyWords(stems, fuzzy_threshold)
        self._texts = AnalysedTexts(stems, self.features)
        self._numbers = NumbersOfTexts()
        encoders = {"transformer": encoder, "word_vectors": word_vectors}
        self._vectors = {
            name: PassageVectors(one) for name, one in encoders.items() if one is not None and weights.get(name, 0) > 0
        }
        self._computing = Lock()

    @property
    def n_texts(self) -> int:
        """How many texts are remembered."""
        return len(self._texts)

    def columns(self, queries: Sequence[str], offsets: Rows, dense: Scores, source: PassageSource) -> dict[str, Scores]:
        """Return ``[candidates]`` by signal, 0 to 1, NaN where it cannot be computed.

        Args:
            queries: one per list of candidates.
            offsets: ``[lists + 1]``, where each list begins.
            dense: ``[candidates]``, the cosines that came with them; NaN where none did.
            source: where the passages are read.
        """
        columns = {name: np.full(len(dense), np.nan) for name in SIGNALS if self._weights[name]}
        if "transformer" in columns:
            columns["transformer"] = dense.copy()
        if all(name == "transformer" for name in columns) and not np.isnan(columns["transformer"]).any():
            return columns  # no text has to be read
        with self._computing:
            slots = source.slots(self._texts)
            if "fuzzy" in columns:
                source.rarity(self._texts)  # now: what reads more texts comes before what counts their words
            asked = {
                name: vectors.queries(list(queries)) for name, vectors in self._vectors.items() if np.isnan(columns[name]).any()
            }
            for query, (begin, end) in zip(queries, pairwise(offsets.tolist()), strict=True):
                if end > begin:
                    list_columns = {name: column[begin:end] for name, column in columns.items()}
                    self._fill(query, list_columns, slots[begin:end], begin, source, asked)
        return columns

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return where keywords, patterns and numbers that count for a query stand in a text, in order."""
        found = set(AskedNumbers.of(query).matches(text))
        if self.features is not None:
            found.update(self.features.matches(self.features.focus(query), text))
        return sorted(found, key=lambda match: (match.begin, match.end, match.group))

    def _fill(
        self,
        query: str,
        columns: Mapping[str, Scores],
        slots: Rows,
        begin: int,
        source: PassageSource,
        asked: Mapping[str, Mapping[str, Vectors]],
    ) -> None:
        """Compute what is missing in the columns of one query's candidates; each text once, in the order of the slots."""
        distinct, first, copies = np.unique(slots, return_index=True, return_inverse=True)
        for name, vectors in asked.items():
            missing = np.flatnonzero(np.isnan(columns[name]))
            if len(missing) == len(slots):
                cosines = self._vectors[name].cosines(vectors[query], self._texts, distinct, source, begin + first)
                columns[name][:] = cosines[copies]
            elif len(missing):
                columns[name][missing] = self._vectors[name].cosines(
                    vectors[query], self._texts, slots[missing], source, begin + missing
                )
        if "patterns" in columns:
            focus = None if self.features is None else self.features.focus(query)
            named = AskedNumbers.of(query)
            numbers = self._numbers.counts(named, self._texts, distinct, source, begin + first) if named else None
            found = pattern_scores(self.features, focus, self._texts, distinct, numbers)
            columns["patterns"][:] = np.nan if found is None else found[copies]
        if "fuzzy" in columns:
            rarity = source.rarity(self._texts)
            found = self._fuzzy.scores(query, self._texts, distinct, rarity)
            columns["fuzzy"][:] = np.nan if found is None else found[copies]
