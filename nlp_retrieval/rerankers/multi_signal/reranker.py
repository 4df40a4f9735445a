"""Reranking by several signals: sentence vectors, word vectors, patterns, and similar words."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock, use_one_thread_after_fork
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.core.search.retriever import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder, require_cosine
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.rerankers.multi_signal.features import (
    MENTIONED,
    SIGNALS,
    AskedNumbers,
    Features,
    PatternMatch,
    group_scores,
    saturated,
    weighted_mean,
)
from nlp_retrieval.rerankers.multi_signal.fuzzy import FuzzyWords
from nlp_retrieval.rerankers.multi_signal.profile import Profile, SignalWeights, load_profile
from nlp_retrieval.rerankers.multi_signal.texts import KnownText, KnownTexts, Passages, joined
from nlp_retrieval.text.words import stems_of_language

_AT_ONCE = 256


def _of_length_one(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1; NaN for vectors of length 0."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Vectors = np.where(lengths > 0, vectors / lengths, np.nan).astype(np.float32)
    return scaled


class SignalScoring:
    """Computes the signals of passages, and remembers what it read; in one thread at a time."""

    def __init__(
        self, profile: Profile, weights: Mapping[str, float], fuzzy_threshold: float, encoders: Mapping[str, BaseEncoder | None]
    ) -> None:
        stems = stems_of_language(profile.language)
        has_features = bool(profile.groups or profile.patterns or profile.questions)
        self.features = Features(profile, stems) if has_features else None
        self.texts = KnownTexts(stems, self.features)
        self._weights = weights
        self._fuzzy = FuzzyWords(stems, fuzzy_threshold)
        self._encoders = {name: encoder for name, encoder in encoders.items() if encoder is not None and weights[name]}
        self._computing = Lock()

    def columns(
        self, queries: Sequence[str], offsets: Rows, incoming: Mapping[str, Scores], passages: Passages
    ) -> dict[str, Scores]:
        """Return ``[candidates]`` by signal, 0 to 1; NaN if it cannot be computed."""
        columns = {name: incoming.get(name, np.full(offsets[-1], np.nan)).copy() for name in SIGNALS if self._weights[name]}
        if all(name == "transformer" for name in columns) and not np.isnan(columns["transformer"]).any():
            return columns  # no text has to be read
        with self._computing:
            texts = self.texts.of(passages)
            lists = [(query, slice(*bounds)) for query, bounds in zip(queries, pairwise(offsets.tolist()), strict=True)]
            for name, encoder in self._encoders.items():
                if np.isnan(columns[name]).any():
                    vectors = _query_vectors(encoder, queries)
                    for query, part in lists:
                        _fill_cosines(name, encoder, vectors[query], texts[part], columns[name][part])
            for query, part in lists:
                if "patterns" in columns:
                    columns["patterns"][part] = self._pattern_scores(query, texts[part])
                if "fuzzy" in columns and part.stop > part.start:
                    rarity = None if passages.table is None else self.texts.rarity(passages.table)
                    scores = self._fuzzy.scores(query, self.texts, texts[part], rarity)
                    columns["fuzzy"][part] = np.nan if scores is None else scores
        return columns

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return the positions of keywords, patterns and numbers that count for a query in a text, in order."""
        matches = set(AskedNumbers.of(query).matches(text))
        if self.features is not None:
            matches.update(self.features.matches(self.features.focus(query), text))
        return sorted(matches, key=lambda match: (match.begin, match.end, match.group))

    def _pattern_scores(self, query: str, texts: Sequence[KnownText]) -> Scores:
        """The weighted mean of the groups that count, and of the numbers that the query names as one more; NaN without any."""
        total, weights = np.zeros(len(texts)), 0.0
        if self.features is not None and (focus := self.features.focus(query)):
            features, owner = joined(text.features for text in texts)
            counts, _ = joined(text.counts for text in texts)
            total, weights = group_scores(focus, self.features.n_keywords, features, counts, owner, len(texts))
        if asked := AskedNumbers.of(query):
            years = [number for year in asked.years if (number := self.texts.numbers.get(year)) is not None]
            counts_of_years = [np.count_nonzero(np.isin(years, text.words)) for text in texts] if years else [0] * len(texts)
            named = np.array(counts_of_years, np.float64)
            if asked.quantities:
                named += [asked.agreeing(text.quantities) for text in texts]
            total, weights = total + MENTIONED * saturated(named), weights + MENTIONED
        return total / weights if weights else np.full(len(texts), np.nan)


def _query_vectors(encoder: BaseEncoder, queries: Sequence[str]) -> dict[str, Vectors]:
    """The vector of each distinct query, of length 1; all NaN if it has none."""
    require_cosine(encoder, "multi_signal")
    distinct = list(dict.fromkeys(queries))

    def encode(texts: list[str]) -> Vectors:
        return checked_vectors(encoder.encode_queries(texts), texts, encoder, None)

    vectors = _of_length_one(current_stages().encoded(encoder, distinct, encode))
    return dict(zip(distinct, vectors, strict=True))


def _fill_cosines(name: str, encoder: BaseEncoder, query: Vectors, texts: Sequence[KnownText], column: Scores) -> None:
    """Write the missing cosines of a query with passages, at least 0 (opposite vectors are not alike); NaN without a vector."""
    missing = np.flatnonzero(np.isnan(column))
    wanted = [texts[position] for position in missing.tolist()]
    new = [text for text in dict.fromkeys(wanted) if name not in text.vectors]
    for first in range(0, len(new), _AT_ONCE):
        part = new[first : first + _AT_ONCE]
        passages = [text.text for text in part]
        vectors = checked_vectors(encoder.encode_passages(passages), passages, encoder, len(query))
        for text, vector in zip(part, _of_length_one(vectors), strict=True):
            text.vectors[name] = vector
    if wanted:  # row by row: a product of BLAS depends on the neighbouring rows
        products = np.einsum("ij,j->i", np.stack([text.vectors[name] for text in wanted]), query)
        column[missing] = np.clip(products, 0.0, 1.0)


# The signal of sentence vectors: from a dense retriever's scores, or from an encoder where these are missing.

DENSE_SIGNALS = ("faiss.score", "pgvector.score", "chunk_vectors.transformer")
"""Signals of dense retrievers whose vectors have length 1, so that their inner product is the cosine."""

WORD_SIGNALS = ("chunk_vectors.word_vectors",)
"""Signals of retrievers that compare stored word vectors."""


_LARGEST_COSINE = 1.01
"""Rounding, and codes of quantised vectors, make cosines slightly larger than 1."""


def dense_scores(batch: Hits, names: Iterable[str]) -> Scores:
    """Return the cosine that came with each candidate, clipped to 0 and 1: vectors that point apart are not alike."""
    scores = np.full(len(batch.rows), np.nan)
    for name in names:
        if name in batch.signals:
            largest = np.nanmax(np.abs(batch.signals[name]), initial=0.0)
            if largest > _LARGEST_COSINE:
                raise ConfigurationError(
                    f"multi_signal: {name} is no cosine (found: {largest:.4g}): its model compares by other products; use a "
                    "model of cosines, or name another signal with transformer_signal and give an encoder"
                )
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
        weights: those not given come from the ``profile``, or are ``described``: .25, .20, .30 and .25.

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
        *("transformer_signal", "fuzzy_threshold", "min_similarity", "n_per_document", "document_field", "blend", "weights"),
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
        weights: Literal["profile", "described"] = "profile",
    ) -> None:
        if profile is None:
            self.profile = Profile(name="none", subject="subject")
        else:
            self.profile = load_profile(profile) if isinstance(profile, str) else Profile.from_mapping(profile)
        of_signals = (transformer_weight, word_vectors_weight, patterns_weight, fuzzy_weight)
        usual = (self.profile.weights if weights == "profile" else SignalWeights()).as_dict()
        given = {name: weight for name, weight in zip(SIGNALS, of_signals, strict=True) if weight is not None}
        self.weights = usual | given
        if not any(self.weights.values()):
            raise ConfigurationError("MultiSignalReranker: with the profile's, all weights are 0; set one above 0")
        self.fuzzy_threshold = self.profile.fuzzy_threshold if fuzzy_threshold is None else fuzzy_threshold
        self.min_similarity = self.profile.min_similarity if min_similarity is None else min_similarity
        self.n_per_document = self.profile.n_per_document if n_per_document is None else n_per_document
        self.encoder = None if encoder is None else as_encoder(encoder)
        self.word_vectors = None if word_vectors is None else as_encoder(word_vectors)
        self.transformer_signal = transformer_signal
        self.document_field = document_field
        self.blend: Blend = blend
        encoders = {"transformer": self.encoder, "word_vectors": self.word_vectors}
        self.scoring = SignalScoring(self.profile, self.weights, self.fuzzy_threshold, encoders)
        self.warned: set[str] = set()
        """Missing signals that were warned of, or whose absence is expected."""

    def index_identity(self) -> Config:
        content = canonical_json(self.profile.model_dump(mode="json"))
        return super().index_identity() | {"profile": hashlib.sha256(content.encode()).hexdigest()}

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return the positions of keywords, patterns and numbers that count for a query in a text, to highlight them."""
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

        ``running`` are such texts, ``cosines`` theirs with the query, and ``shared`` says which of them each passage has; a
        ``silent`` one has no other text. Of what is left of a signal, the share that the passage has; a signal that the running
        text has in full is missing. Of a cosine, the running text's part in the vector of both is taken off.
        """
        items = [SearchableItem(item_id=str(place), content=text or " ") for place, text in enumerate(running)]
        dense = np.clip(np.asarray(cosines, np.float64), 0.0, 1.0)
        base = self.scoring.columns([query], offsets_of([len(items)]), {"transformer": dense}, Passages(table, items=items))
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
        batch = Hits(offsets_of([1] * len(items)), np.arange(len(items)), np.zeros(len(items)))
        columns = self._columns(queries, batch, Passages(None, items=items))
        return {"score": np.nan_to_num(weighted_mean(columns, self.weights, len(items)))}

    def rerank_batch(self, queries: Sequence[str], batch: Hits, items: list[SearchableItem], label: str | None = None) -> Hits:
        """Reorder candidates, and leave out those below ``min_similarity`` or beyond ``n_per_document``; see the base."""
        return self._reranked(queries, batch, Passages(None, items=items), label)

    def rerank_rows(self, queries: Sequence[str], batch: Hits, items: ItemTable, label: str | None = None) -> Hits:
        """Reorder candidates in rows of an index, as :meth:`rerank_batch`; only new texts are read."""
        return self._reranked(queries, batch, Passages(items, batch.rows), label)

    def _reranked(self, queries: Sequence[str], batch: Hits, passages: Passages, label: str | None) -> Hits:
        if len(batch.rows) == 0:
            return batch
        use_one_thread_after_fork()
        columns = self._columns(queries, batch, passages)
        mean = weighted_mean(columns, self.weights, len(batch.rows))
        self._warn_of_missing(columns)
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
            kept &= _first_of_document(passages.values(self.document_field), order, ranked.owner, kept, self.n_per_document)
        if kept.all():
            return ranked
        counts = np.bincount(ranked.owner[kept], minlength=ranked.n_lists)
        return ranked.take(np.flatnonzero(kept), offsets_of(counts))

    def _columns(self, queries: Sequence[str], batch: Hits, passages: Passages) -> dict[str, Scores]:
        """``[candidates]`` by signal, for weights above 0; NaN if it is missing."""
        names = DENSE_SIGNALS if self.transformer_signal is None else (self.transformer_signal,)
        incoming = {"transformer": dense_scores(batch, names), "word_vectors": dense_scores(batch, WORD_SIGNALS)}
        return self.scoring.columns(queries, batch.offsets, incoming, passages)

    def _warn_of_missing(self, columns: Mapping[str, Scores]) -> None:
        """Warn of missing signals, of each once."""
        missing = {name: int(np.isnan(column).sum()) for name, column in columns.items() if name not in self.warned}
        shown = [f"{name} of {count:,} ({_MISSING[name]})" for name, count in missing.items() if count]
        if shown:
            self.warned.update(name for name, count in missing.items() if count)
            warnings.warn(
                f"{self.name}: signals are missing of candidates: {', '.join(shown)}; their weights are left out (shown once)",
                RetrievalWarning,
                stacklevel=4,
            )


_MISSING = {
    "transformer": "no score of a dense retriever came with them, and there is no encoder",
    "word_vectors": "no word has a vector, or there are no word_vectors",
    "patterns": "the query names no number, and nothing of the profile",
    "fuzzy": "the query has no words but function words",
}
_PLACE = "multi_signal place"

_OF_RUNNING, _OF_PASSAGE, _FULL = 0.5, 0.7, 0.999
"""Parts of a title and a passage in the vector of both (bench/POLICY.md); and from when on a text has a signal in full."""


def _beyond(scores: Scores, base: Scores, *, is_cosine: bool) -> Scores:
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = (scores - _OF_RUNNING * base) / _OF_PASSAGE if is_cosine else (scores - base) / (1.0 - base)
    beyond: Scores = np.where(base > 0, np.clip(rest, 0.0, 1.0), scores)
    return beyond if is_cosine else np.where(base > _FULL, np.nan, beyond)


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
