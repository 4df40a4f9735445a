"""Reranking by several signals: sentence vectors, word vectors, patterns, and similar words."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock, use_one_thread_after_fork
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalWarning, install
from nlp_retrieval.rerankers.multi_signal.features import (
    SIGNALS,
    AnalysedTexts,
    AskedNumbers,
    Features,
    ListedPassages,
    NumbersOfTexts,
    PassageSource,
    PatternMatch,
    Rarity,
    TablePassages,
    pattern_scores,
    weighted_mean,
)
from nlp_retrieval.rerankers.multi_signal.profile import Profile, load_profile, profile_path
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.words import Stems, stems_of_language

# The fuzzy signal: words of a passage that resemble those of the query, such as misspelt, inflected or compound ones.

_SHORTEST = 4
"""Shorter words, and words with a digit, have no similar words: 2030 is not 2035, and bus is not bau."""

_KEPT = 2048
_MOST_TERMS = 100
_GAP = 3
"""Most words from one word of a phrase to the next; function words may stand between them."""

_PHRASES = 0.15
"""Share of the score that phrases have: two words of the query that follow each other."""


class FuzzyWords:
    """Likeness of the words of queries to those of passages.

    Two words are compared by their stems: 1 - d / (n + m), where d is the smallest number of insertions and deletions of
    letters between them, and n and m are their lengths.

    Args:
        stems: splits texts into words.
        threshold: least likeness that counts, 0 to 1.
    """

    def __init__(self, stems: Stems, threshold: float) -> None:
        self._stems = stems
        self._threshold = threshold
        self._function_words = frozenset(map(stems.stem, FUNCTION_WORDS))
        self._known: OrderedDict[str, tuple[NDArray[np.int64], NDArray[np.float64], int]] = OrderedDict()
        self._epoch = -1

    def terms(self, query: str) -> list[str]:
        """Return the stems of a query's words without function words, each once; the first 100."""
        words = dict.fromkeys(word for word in self._stems.words(query) if word not in self._function_words)
        return list(words)[:_MOST_TERMS]

    def scores(self, query: str, texts: AnalysedTexts, slots: Rows, rarity: Rarity | None = None) -> Scores | None:
        """Score passages: the mean, over the words and the phrases of the query, of the likeness of what is most like it.

        Likeness is rescaled to 0 at the threshold and 1 for equal words, and squared, so that an equal word counts much more
        than a similar one. A phrase is two words of the query that follow each other, function words aside; it is as alike as
        the less alike of its words, where these follow each other in the passage. Rarer words count more, if their rarity is
        known. The score is between 0 and 1, and never lower with more text in the passage.

        Args:
            query: the query.
            texts: hold the passages.
            slots: ``[passages]``.
            rarity: of words; None to count all alike.

        Returns:
            ``[passages]``; None if the query has only function words.

        Raises:
            DependencyError: rapidfuzz is not installed.
        """
        terms = self.terms(query)
        if not terms:
            return None
        weights = [1.0 if rarity is None else rarity.of(texts.number_of(term)) for term in terms]
        alike = [self._similar_words(term, texts) for term in terms]
        met = np.unique(np.concatenate([words for words, _ in alike]))
        compact = np.full(len(texts.vocabulary), -1, np.int32)
        compact[met] = np.arange(len(met))
        likeness = np.zeros((len(terms), len(met)))
        for row, (words, values) in zip(likeness, alike, strict=True):
            row[compact[words]] = values
        sequence, owner = texts.sequence.of(slots)
        sequence = compact[sequence]
        places = np.flatnonzero(sequence >= 0)
        sequence, owner = sequence[places], owner[places]
        best = [_best_of(row[sequence], owner, len(slots)) for row in likeness]
        scores = _mean(best, weights)
        if len(terms) > 1:
            scores = (1 - _PHRASES) * scores + _PHRASES * _mean(
                *_phrases(likeness, weights, sequence, owner, places, len(slots))
            )
        within: Scores = np.minimum(scores, 1.0)
        return within

    def _similar_words(self, term: str, texts: AnalysedTexts) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The words of the vocabulary that resemble a term, with their likeness; earlier comparisons are remembered."""
        if self._epoch != texts.epoch:
            self._known.clear()
            self._epoch = texts.epoch
        words, values, compared = self._known.get(term, (np.zeros(0, np.int64), np.zeros(0), 0))
        if compared < len(texts.vocabulary):
            more, how = self._compare(term, texts.vocabulary[compared:])
            words, values = np.concatenate([words, compared + more]), np.concatenate([values, how])
            self._known[term] = words, values, len(texts.vocabulary)
        self._known.move_to_end(term)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return words, values

    def _compare(self, term: str, vocabulary: list[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if not _comparable(term) or self._threshold == 1:
            same = np.array([number for number, word in enumerate(vocabulary) if word == term], np.int64)
            return same, np.ones(len(same))
        ratios = _indel()([term], vocabulary)[0].astype(np.float64)
        close = np.flatnonzero(ratios > self._threshold)
        close = close[[_comparable(vocabulary[number]) for number in close.tolist()]] if len(close) else close
        return close, ((ratios[close] - self._threshold) / (1.0 - self._threshold)) ** 2


def _phrases(
    likeness: Scores, weights: Sequence[float], sequence: NDArray[np.int32], owner: Rows, places: Rows, n_passages: int
) -> tuple[list[Scores], list[float]]:
    """Return the likeness of each phrase of a query to those of passages, and the weights of the phrases."""
    pairs = []
    for step in range(1, _GAP + 1):
        first = np.flatnonzero((owner[step:] == owner[:-step]) & (places[step:] - places[:-step] <= _GAP))
        pairs.append((sequence[first], sequence[first + step], owner[first]))
    before, after, owners = (np.concatenate(column) for column in zip(*pairs, strict=True))
    best = [_best_of(np.minimum(one[before], other[after]), owners, n_passages) for one, other in pairwise(likeness)]
    return best, [(one + other) / 2 for one, other in pairwise(weights)]


def _best_of(values: Scores, owner: Rows, n_passages: int) -> Scores:
    """Return the highest value of each passage; 0 without any."""
    best = np.zeros(n_passages)
    there = np.flatnonzero(values)
    np.maximum.at(best, owner[there], values[there])
    return best


def _mean(columns: Sequence[Scores], weights: Sequence[float]) -> Scores:
    total = np.zeros(len(columns[0]))
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    mean: Scores = total / sum(weights)
    return mean


def _comparable(word: str) -> bool:
    return len(word) >= _SHORTEST and not any(letter.isdigit() for letter in word)


def _indel() -> Any:
    try:
        from rapidfuzz.distance import Indel
        from rapidfuzz.process import cdist
    except ImportError:
        raise DependencyError(f"fuzzy matching needs rapidfuzz: {install('signals')}") from None

    def ratios(terms: list[str], words: list[str]) -> Any:
        return cdist(terms, words, scorer=Indel.normalized_similarity, dtype=np.float32, workers=1)

    return ratios


# Vectors of passages, encoded once and kept by slot, and their cosine with a query's.

_AT_ONCE = 256


class PassageVectors:
    """Cosines of queries and passages; a text without a vector (one of length 0) has none.

    Args:
        encoder: gives the vectors.
    """

    def __init__(self, encoder: BaseEncoder) -> None:
        self._encoder = encoder
        self._epoch = -1
        self._known = np.zeros(0, np.bool_)
        self._vectors: Vectors = np.zeros((0, 0), np.float32)

    def queries(self, queries: list[str]) -> dict[str, Vectors]:
        """Return the vector of each distinct query, of length 1; all NaN if it has none."""
        distinct = list(dict.fromkeys(queries))

        def encode(texts: list[str]) -> Vectors:
            return checked_vectors(self._encoder.encode_queries(texts), texts, self._encoder, None)

        vectors = _of_length_one(current_stages().encoded(self._encoder, distinct, encode))
        return dict(zip(distinct, vectors, strict=True))

    def cosines(self, query: Vectors, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> Scores:
        """Return the cosine of a query with passages, at least 0 (opposite vectors are not alike); NaN without a vector.

        Args:
            query: ``[dimension]``, of :meth:`queries`.
            texts: hold the passages.
            slots: ``[passages]``.
            source: of passages that are not encoded yet.
            positions: ``[passages]``, their positions in the source.
        """
        self._encode(texts, slots, source, positions)
        every = len(slots) == len(self._vectors) and np.array_equal(slots, np.arange(len(slots)))
        vectors = self._vectors if every else self._vectors[slots]
        products = np.einsum("ij,j->i", vectors, query)  # row by row: a product of BLAS depends on the neighbouring rows
        cosines: Scores = np.clip(products, 0.0, 1.0).astype(np.float64)
        return cosines

    def _encode(self, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> None:
        if self._epoch != texts.epoch:
            self._epoch, self._known, self._vectors = texts.epoch, np.zeros(0, np.bool_), np.zeros((0, 0), np.float32)
        if len(self._known) < len(texts):
            more = len(texts) - len(self._known)
            self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
        missing, first = np.unique(slots[~self._known[slots]], return_index=True)
        if len(missing) == 0:
            return
        where = positions[~self._known[slots]][first]
        for begin in range(0, len(missing), _AT_ONCE):
            part = missing[begin : begin + _AT_ONCE]
            passages = source.texts(where[begin : begin + _AT_ONCE])
            dimension = self._vectors.shape[1] or None
            vectors = checked_vectors(self._encoder.encode_passages(passages), passages, self._encoder, dimension)
            if len(self._vectors) < len(texts):
                grown = np.full((len(texts), vectors.shape[1]), np.nan, np.float32)
                grown[: len(self._vectors)] = self._vectors if dimension else 0.0
                self._vectors = grown
            self._vectors[part] = _of_length_one(vectors)
        self._known[missing] = True


def _of_length_one(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1; NaN for vectors of length 0."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Vectors = np.where(lengths > 0, vectors / lengths, np.nan).astype(np.float32)
    return scaled


# Computing the signals of candidates, and remembering the reusable parts of texts: words, matches, vectors.


class SignalScoring:
    """Computes signals, in one thread at a time.

    Args:
        profile: its keywords and patterns.
        weights: by signal; those of weight 0 are not computed.
        fuzzy_threshold: least likeness of similar words.
        encoder: gives sentence vectors for candidates without a dense score; None for no encoder.
        word_vectors: gives word vectors; None for no encoder.
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
            name: PassageVectors(model) for name, model in encoders.items() if model is not None and weights.get(name, 0) > 0
        }
        self._computing = Lock()

    @property
    def n_texts(self) -> int:
        """Return how many texts are remembered."""
        return len(self._texts)

    def columns(
        self, queries: Sequence[str], offsets: Rows, dense: Scores, words: Scores, source: PassageSource
    ) -> dict[str, Scores]:
        """Return ``[candidates]`` by signal, 0 to 1; NaN if it cannot be computed.

        Args:
            queries: one per list of candidates.
            offsets: ``[lists + 1]``, where each list begins.
            dense: ``[candidates]``, their incoming cosines; NaN if missing.
            words: ``[candidates]``, their incoming cosines of word vectors; NaN if missing.
            source: of the passages.
        """
        columns = {name: np.full(len(dense), np.nan) for name in SIGNALS if self._weights[name]}
        if "transformer" in columns:
            columns["transformer"] = dense.copy()
        if "word_vectors" in columns:
            columns["word_vectors"] = words.copy()
        if all(name == "transformer" for name in columns) and not np.isnan(columns["transformer"]).any():
            return columns  # no text has to be read
        with self._computing:
            slots = source.slots(self._texts)
            if "fuzzy" in columns:
                source.rarity(self._texts)  # first: more texts must be read before their words are counted
            query_vectors = {
                name: vectors.queries(list(queries)) for name, vectors in self._vectors.items() if np.isnan(columns[name]).any()
            }
            for query, (begin, end) in zip(queries, pairwise(offsets.tolist()), strict=True):
                if end > begin:
                    list_columns = {name: column[begin:end] for name, column in columns.items()}
                    self._fill(query, list_columns, slots[begin:end], begin, source, query_vectors)
        return columns

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return the positions of keywords, patterns and numbers that count for a query in a text, in order."""
        matches = set(AskedNumbers.of(query).matches(text))
        if self.features is not None:
            matches.update(self.features.matches(self.features.focus(query), text))
        return sorted(matches, key=lambda match: (match.begin, match.end, match.group))

    def _fill(
        self,
        query: str,
        columns: Mapping[str, Scores],
        slots: Rows,
        begin: int,
        source: PassageSource,
        query_vectors: Mapping[str, Mapping[str, Vectors]],
    ) -> None:
        """Compute the missing signals of one query's candidates; each text once, in the order of the slots."""
        distinct, first, copies = np.unique(slots, return_index=True, return_inverse=True)
        for name, vectors in query_vectors.items():
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
            signal = pattern_scores(self.features, focus, self._texts, distinct, numbers)
            columns["patterns"][:] = np.nan if signal is None else signal[copies]
        if "fuzzy" in columns:
            rarity = source.rarity(self._texts)
            signal = self._fuzzy.scores(query, self._texts, distinct, rarity)
            columns["fuzzy"][:] = np.nan if signal is None else signal[copies]


# The signal of sentence vectors: from a dense retriever's scores, or from an encoder where these are missing.

DENSE_SIGNALS = ("faiss.score", "pgvector.score", "chunk_vectors.transformer")
"""Signals of dense retrievers whose vectors have length 1, so that their inner product is the cosine."""

WORD_SIGNALS = ("chunk_vectors.word_vectors",)
"""Signals of retrievers that compare stored word vectors."""


def dense_scores(batch: CandidateBatch, names: Iterable[str]) -> Scores:
    """Return the cosine that came with each candidate, clipped to 0 and 1: vectors that point apart are not alike.

    Args:
        batch: the candidates.
        names: of signals; the first that a candidate has counts.

    Returns:
        ``[candidates]``, NaN if there is none.
    """
    scores = np.full(len(batch.rows), np.nan)
    for name in names:
        if name in batch.signals:
            missing = np.isnan(scores)
            scores[missing] = batch.signals[name][missing]
    within: Scores = np.clip(scores, 0.0, 1.0)
    return within


Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None


def _reads_profile(profile: Any) -> str | None:
    """Allow the name of a profile of the package, or its content, but not a path, which would be read."""
    return f"read {profile!r}" if isinstance(profile, str) and not re.fullmatch(r"[a-z_]+", profile, re.ASCII) else None


class MultiSignalReranker(BaseReranker):
    """Scores passages by the weighted mean of four signals, each between 0 and 1.

    ``transformer``: the cosine of sentence vectors, as a dense retriever found it (``transformer_signal``), or by ``encoder``
    for other passages. ``word_vectors``: the cosine of word vectors. ``patterns``: keywords and patterns of the profile, of the
    groups that the query asks for, and the years and numbers with units that it names. ``fuzzy``: words similar to those of the
    query; those that are rare in the index count more. A signal that cannot be computed for a passage is missing, never 0: the
    mean is taken over the others, with one warning. A signal of weight 0 is not computed. With a searcher of depth ``all``,
    every passage that fulfils the filter is scored.

    Settings that are not given come from the profile, or without one from the defaults of profiles.

    Args:
        profile: the name of one that comes with the package, the path of a YAML file, or its content.
        transformer_weight: weight of ``transformer``.
        word_vectors_weight: weight of ``word_vectors``.
        patterns_weight: weight of ``patterns``.
        fuzzy_weight: weight of ``fuzzy``.
        encoder: gives sentence vectors where no dense retriever did.
        word_vectors: gives word vectors, such as ``WordVectorEncoder``.
        transformer_signal: the signal of the dense retriever, which is a cosine; by default ``faiss.score`` or
            ``pgvector.score``.
        fuzzy_threshold: least likeness of similar words.
        min_similarity: lowest score of a passage.
        n_per_document: most passages of one document.
        document_field: the metadata field with the document of a passage; passages without it are not counted.
        blend: use of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.

    Examples:
        >>> fuzzy = MultiSignalReranker(transformer_weight=0, word_vectors_weight=0, patterns_weight=0)
        >>> searcher = Searcher(["bm25"], reranker=fuzzy)
        >>> report = searcher.index(items, "index")
        >>> searcher.search("krill", k=1)[0][0].item.item_id
        'whale'
    """

    name = "multi_signal"
    manifest_may_set = may_set(
        *("transformer_weight", "word_vectors_weight", "patterns_weight", "fuzzy_weight", "encoder", "word_vectors"),
        *("transformer_signal", "fuzzy_threshold", "min_similarity", "n_per_document", "document_field", "blend"),
        profile=_reads_profile,
    )

    def __init__(
        self,
        profile: str | Mapping[str, Any] | None = None,
        transformer_weight: Weight = None,
        word_vectors_weight: Weight = None,
        patterns_weight: Weight = None,
        fuzzy_weight: Weight = None,
        encoder: BaseEncoder | None = None,
        word_vectors: BaseEncoder | None = None,
        transformer_signal: str | None = None,
        fuzzy_threshold: Share = None,
        min_similarity: Share = None,
        n_per_document: Annotated[int, Field(ge=1)] | None = None,
        document_field: str = "document",
        blend: Blend = "replace",
    ) -> None:
        if isinstance(profile, str):
            profile_path(profile)
        weights = (transformer_weight, word_vectors_weight, patterns_weight, fuzzy_weight)
        if not any(weight is None or weight > 0 for weight in weights):
            raise ConfigurationError("MultiSignalReranker: all weights are 0; at least one must be above 0")
        self._given = dict(zip(SIGNALS, weights, strict=True))
        self._profile = profile
        self._fuzzy_threshold, self._min_similarity, self._n_per_document = fuzzy_threshold, min_similarity, n_per_document
        self.encoder = encoder
        self.word_vectors = word_vectors
        self.transformer_signal = transformer_signal
        self.document_field = document_field
        self.blend: Blend = blend
        self._opening = Lock()
        self.warned: set[str] = set()
        """Missing signals that were warned of, or whose absence is expected."""

    @cached_property
    def profile(self) -> Profile:
        """The profile, read at first use."""
        if self._profile is None:
            return Profile(name="none", subject="subject")
        return load_profile(self._profile) if isinstance(self._profile, str) else Profile.from_mapping(self._profile)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weights by signal.

        Raises:
            ConfigurationError: all of them are 0.
        """
        of_profile = self.profile.weights.as_dict()
        weights = {name: of_profile[name] if weight is None else float(weight) for name, weight in self._given.items()}
        if not any(weights.values()):
            raise ConfigurationError("MultiSignalReranker: together with the profile's, all weights are 0; set one above 0")
        return weights

    @property
    def fuzzy_threshold(self) -> float:
        """Least likeness of similar words."""
        return self.profile.fuzzy_threshold if self._fuzzy_threshold is None else self._fuzzy_threshold

    @property
    def min_similarity(self) -> float:
        """Lowest score of a passage."""
        return self.profile.min_similarity if self._min_similarity is None else self._min_similarity

    @property
    def n_per_document(self) -> int | None:
        """Most passages of one document; None for any number."""
        return self.profile.n_per_document if self._n_per_document is None else self._n_per_document

    @cached_property
    def _scoring(self) -> SignalScoring:
        return SignalScoring(self.profile, self.weights, self.fuzzy_threshold, self.encoder, self.word_vectors)

    @property
    def scoring(self) -> SignalScoring:
        """Return the object that computes the signals, with all earlier results; opened at first use."""
        with self._opening:
            return self._scoring

    def index_identity(self) -> Config:
        content = canonical_json(self.profile.model_dump(mode="json"))
        return super().index_identity() | {"profile": hashlib.sha256(content.encode()).hexdigest()}

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return the positions of keywords, patterns and numbers that count for a query in a text, to highlight them.

        Args:
            query: the query.
            text: of a passage.
        """
        return self.scoring.matches(query, text)

    def beyond(
        self,
        query: str,
        results: Sequence[RetrievalResult],
        running: Sequence[str],
        cosines: Sequence[float],
        shared: Sequence[int],
        silent: Sequence[bool],
        table: ItemTable,
    ) -> list[RetrievalResult]:
        """Return results of this reranker with what their passages have beyond a text that all of a document have.

        Of what is left of a signal, the share that the passage has; a signal that the running text has in full is missing.
        Of a cosine, the running text's part in the vector of both is taken off.

        Args:
            query: of the results.
            results: with the signals of this reranker.
            running: texts that stand in every passage of some document.
            cosines: of the query and each of these texts.
            shared: ``[results]``, which of these texts a passage has.
            silent: ``[results]``, whether it has no other text.
            table: the index, for the rarity of words.
        """
        items = [SearchableItem(item_id=str(place), content=text or " ") for place, text in enumerate(running)]
        dense = np.clip(np.asarray(cosines, np.float64), 0.0, 1.0)
        unknown = np.full(len(items), np.nan)
        base = self.scoring.columns([query], offsets_of([len(items)]), dense, unknown, _RunningTexts(items, table))
        empty, has_no_more = np.array([not text for text in running]), np.array(silent, np.bool_)
        columns = {
            name: np.array([result.signals.get(f"{self.name}.{name}", np.nan) for result in results]) for name in self.weights
        }
        for name, column in columns.items():
            if name in base:
                of_running = np.where(empty, 0.0, np.nan_to_num(base[name]))[np.asarray(shared)]
                column[:] = _beyond(column, of_running, is_cosine=name == "transformer")
            column[has_no_more & ~np.isnan(column)] = 0.0
        mean = np.nan_to_num(weighted_mean(columns, self.weights, len(results)))
        scored = []
        for place, result in enumerate(results):
            signals = {name: value for name, value in result.signals.items() if not name.startswith(f"{self.name}.")}
            signals[f"{self.name}.score"] = float(mean[place])
            own = {name: float(column[place]) for name, column in columns.items() if not np.isnan(column[place])}
            signals |= {f"{self.name}.{name}": value for name, value in own.items()}
            scored.append(result.model_copy(update={"score": float(mean[place]), "signals": signals}))
        return scored

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        """Score pairs without signals of a retriever: the transformer signal is the encoder's, if there is one."""
        batch = CandidateBatch(
            offsets_of([1] * len(items)), np.arange(len(items)), np.zeros(len(items)), np.zeros(len(items), np.int32)
        )
        columns = self._columns(queries, batch, ListedPassages(items))
        return {"score": np.nan_to_num(weighted_mean(columns, self.weights, len(items)))}

    def rerank_batch(
        self, queries: Sequence[str], batch: CandidateBatch, items: list[SearchableItem], label: str | None = None
    ) -> CandidateBatch:
        """Reorder candidates, and leave out those below ``min_similarity`` or beyond ``n_per_document``; see the base."""
        return self._reranked(queries, batch, ListedPassages(items), label)

    def rerank_rows(
        self, queries: Sequence[str], batch: CandidateBatch, items: ItemTable, label: str | None = None
    ) -> CandidateBatch:
        """Reorder candidates in rows of an index, as :meth:`rerank_batch`; only new texts are read."""
        return self._reranked(queries, batch, TablePassages(items, batch.rows), label)

    def _reranked(
        self, queries: Sequence[str], batch: CandidateBatch, source: PassageSource, label: str | None
    ) -> CandidateBatch:
        if len(batch.rows) == 0:
            return batch
        use_one_thread_after_fork()
        columns = self._columns(queries, batch, source)
        mean = weighted_mean(columns, self.weights, len(batch.rows))
        self._warn_of_missing(columns, mean)
        prefix = label or self.name
        places = np.arange(len(batch.rows), dtype=np.float64)
        signals = {f"{prefix}.score": np.nan_to_num(mean)}
        signals |= {f"{prefix}.{name}": column for name, column in columns.items() if not np.isnan(column).all()}
        scores = self._blended(batch, signals[f"{prefix}.score"])
        ranked = batch.with_scores(scores, signals | {_PLACE: places})
        order = ranked.signals.pop(_PLACE).astype(np.int64)
        kept = ranked.signals[f"{prefix}.score"] >= self.min_similarity
        if self.min_similarity > 0:
            kept &= ~np.isnan(mean[order])
        if self.n_per_document is not None:
            kept &= _first_of_document(source.values(self.document_field), order, ranked.owner, kept, self.n_per_document)
        if kept.all():
            return ranked
        counts = np.bincount(ranked.owner[kept], minlength=ranked.n_lists)
        return ranked.take(np.flatnonzero(kept), offsets_of(counts))

    def _columns(self, queries: Sequence[str], batch: CandidateBatch, source: PassageSource) -> dict[str, Scores]:
        """``[candidates]`` by signal, for weights above 0; NaN if it is missing."""
        names = DENSE_SIGNALS if self.transformer_signal is None else (self.transformer_signal,)
        return self.scoring.columns(
            queries, batch.offsets, dense_scores(batch, names), dense_scores(batch, WORD_SIGNALS), source
        )

    def _warn_of_missing(self, columns: Mapping[str, Scores], mean: Scores) -> None:
        """Warn of missing signals, of each once."""
        missing = {name: int(np.isnan(column).sum()) for name, column in columns.items()}
        new = [name for name, count in missing.items() if count and name not in self.warned]
        if not new:
            return
        self.warned.update(new)
        missing_signals = "; ".join(
            f"{name!r} of {missing[name]:,} of {len(mean):,} candidates ({self._reason(name)})" for name in new
        )
        n_without = int(np.isnan(mean).sum())
        without = f"; {n_without:,} have no signal at all" if n_without else ""
        warnings.warn(
            f"{self.name}: missing signals: {missing_signals}{without}. Their weights are left out (shown once; a signal "
            "of weight 0 is not missed)",
            RetrievalWarning,
            stacklevel=4,
        )

    def _reason(self, name: str) -> str:
        if name == "transformer":
            if self.encoder is not None:
                return "the encoder gave no vector"
            signal = " or ".join(DENSE_SIGNALS) if self.transformer_signal is None else self.transformer_signal
            return f"no signal {signal} came with them, and no encoder is given"
        if name == "word_vectors":
            return "no word_vectors are given" if self.word_vectors is None else "no word has a vector"
        if name == "patterns":
            return "the query names no number and " + (
                "no profile is given" if self.scoring.features is None else "asks for no group of the profile"
            )
        return "the query has no words but function words"


_PLACE = "multi_signal place"

_OF_RUNNING, _OF_PASSAGE, _FULL = 0.5, 0.7, 0.999
"""Parts of a title and a passage in the vector of both (bench/POLICY.md); and from when on a text has a signal in full."""


def _beyond(scores: Scores, base: Scores, *, is_cosine: bool) -> Scores:
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = (scores - _OF_RUNNING * base) / _OF_PASSAGE if is_cosine else (scores - base) / (1.0 - base)
    beyond: Scores = np.where(base > 0, np.clip(rest, 0.0, 1.0), scores)
    return beyond if is_cosine else np.where(base > _FULL, np.nan, beyond)


class _RunningTexts(ListedPassages):
    """Running texts, with the rarity of words in an index."""

    def __init__(self, items: Sequence[SearchableItem], table: ItemTable) -> None:
        super().__init__(items)
        self._index = table

    def rarity(self, analysed: AnalysedTexts) -> Rarity:
        return analysed.rarity(self._index)


def _first_of_document(
    documents: list[object], order: Rows, owner: Rows, kept: NDArray[np.bool_], most: int
) -> NDArray[np.bool_]:
    """``[candidates]``, True for kept ones among the first ``n_per_document`` of their document in their list."""
    counts: dict[tuple[int, object], int] = {}
    chosen = kept.copy()
    lists = owner.tolist()
    for position in np.flatnonzero(kept).tolist():
        document = documents[order[position]]
        if isinstance(document, str | int | float):
            key = lists[position], document
            counts[key] = counts.get(key, 0) + 1
            chosen[position] = counts[key] <= most
    return chosen
