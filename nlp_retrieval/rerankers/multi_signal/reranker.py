"""Passages scored by several signals: sentence vectors, word vectors, patterns, and words that are alike."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.forks import Lock, compute_alone
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.rerankers.multi_signal.features import PatternMatch
from nlp_retrieval.rerankers.multi_signal.profile import Profile, load_profile, profile_path
from nlp_retrieval.rerankers.multi_signal.scoring import SignalScoring
from nlp_retrieval.rerankers.multi_signal.signals import SIGNALS, weighted_mean
from nlp_retrieval.rerankers.multi_signal.texts import ListedPassages, PassageSource, TablePassages
from nlp_retrieval.rerankers.multi_signal.transformer import DENSE_SIGNALS, dense_scores

Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None


def _reads_profile(profile: Any) -> str | None:
    """Allow the name of a profile of the package, or its content; a path would be read."""
    return f"read {profile!r}" if isinstance(profile, str) and not re.fullmatch(r"[a-z_]+", profile, re.ASCII) else None


class MultiSignalReranker(BaseReranker):
    """Scores passages by the weighted mean of four signals, each between 0 and 1.

    ``transformer``: the cosine of sentence vectors, as a dense retriever found it (``transformer_signal``), or by ``encoder``
    for passages that it did not find. ``word_vectors``: the cosine of word vectors. ``patterns``: keywords and patterns of the
    profile, of the groups that the query asks for, and the years and numbers with units that it names. ``fuzzy``: words like
    those of the query; those that are rare in the index count more. A signal that cannot be computed for a passage is
    missing, never 0: the mean is that of the others, and a warning says so once. A signal of weight 0 is not computed. With
    a searcher of depth ``all``, every passage that fulfils the filter is scored.

    What of a profile a setting does not overrule, the profile decides; without one, the defaults of profiles do.

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
        fuzzy_threshold: words less alike than this are not alike.
        min_similarity: passages that score less are left out.
        n_per_document: at most so many passages of one document.
        document_field: the metadata that names the document of a passage; passages without it are not counted.
        blend: what happens to the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.
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
        given = (transformer_weight, word_vectors_weight, patterns_weight, fuzzy_weight)
        if not any(weight is None or weight > 0 for weight in given):
            raise ConfigurationError("MultiSignalReranker: all weights are 0; at least one must be above 0")
        self._given = dict(zip(SIGNALS, given, strict=True))
        self._profile = profile
        self._fuzzy_threshold, self._min_similarity, self._n_per_document = fuzzy_threshold, min_similarity, n_per_document
        self.encoder = encoder
        self.word_vectors = word_vectors
        self.transformer_signal = transformer_signal
        self.document_field = document_field
        self.blend: Blend = blend
        self._opening = Lock()
        self.told: set[str] = set()
        """Signals that were missing and were warned of, or whose absence is expected."""

    @cached_property
    def profile(self) -> Profile:
        """The profile, read when it is first needed."""
        if self._profile is None:
            return Profile(name="none", subject="subject")
        return load_profile(self._profile) if isinstance(self._profile, str) else Profile.from_mapping(self._profile)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weights by signal.

        Raises:
            ConfigurationError: all of them are 0.
        """
        own = self.profile.weights.as_dict()
        weights = {name: own[name] if weight is None else float(weight) for name, weight in self._given.items()}
        if not any(weights.values()):
            raise ConfigurationError("MultiSignalReranker: with those of the profile, all weights are 0; set one above 0")
        return weights

    @property
    def fuzzy_threshold(self) -> float:
        """Words less alike than this are not alike."""
        return self.profile.fuzzy_threshold if self._fuzzy_threshold is None else self._fuzzy_threshold

    @property
    def min_similarity(self) -> float:
        """Passages that score less are left out."""
        return self.profile.min_similarity if self._min_similarity is None else self._min_similarity

    @property
    def n_per_document(self) -> int | None:
        """At most so many passages of one document; None for any number."""
        return self.profile.n_per_document if self._n_per_document is None else self._n_per_document

    @cached_property
    def _scoring(self) -> SignalScoring:
        return SignalScoring(self.profile, self.weights, self.fuzzy_threshold, self.encoder, self.word_vectors)

    @property
    def scoring(self) -> SignalScoring:
        """What computes the signals, with all that it has computed; opened at first use."""
        with self._opening:
            return self._scoring

    def index_identity(self) -> Config:
        content = canonical_json(self.profile.model_dump(mode="json"))
        return super().index_identity() | {"profile": hashlib.sha256(content.encode()).hexdigest()}

    def matches(self, query: str, text: str) -> list[PatternMatch]:
        """Return where keywords, patterns and numbers that count for a query stand in a text, to mark them there.

        Args:
            query: what was asked.
            text: of a passage.
        """
        return self.scoring.matches(query, text)

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        """Score pairs without what came with them: the transformer signal is the encoder's, if there is one."""
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
        """Reorder candidates in rows of an index, as :meth:`rerank_batch`; only texts that are new are read."""
        return self._reranked(queries, batch, TablePassages(items, batch.rows), label)

    def _reranked(
        self, queries: Sequence[str], batch: CandidateBatch, source: PassageSource, label: str | None
    ) -> CandidateBatch:
        if len(batch.rows) == 0:
            return batch
        compute_alone()
        columns = self._columns(queries, batch, source)
        mean = weighted_mean(columns, self.weights, len(batch.rows))
        self._tell(columns, mean)
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
        """``[candidates]`` by signal, of those whose weight is above 0; NaN where there is none."""
        names = DENSE_SIGNALS if self.transformer_signal is None else (self.transformer_signal,)
        return self.scoring.columns(queries, batch.offsets, dense_scores(batch, names), source)

    def _tell(self, columns: Mapping[str, Scores], mean: Scores) -> None:
        """Warn of signals that are missing, of each once."""
        missing = {name: int(np.isnan(column).sum()) for name, column in columns.items()}
        new = [name for name, count in missing.items() if count and name not in self.told]
        if not new:
            return
        self.told.update(new)
        told = "; ".join(f"{name!r} of {missing[name]:,} of {len(mean):,} candidates ({self._reason(name)})" for name in new)
        alone = int(np.isnan(mean).sum())
        without = f"; {alone:,} have no signal at all" if alone else ""
        warnings.warn(
            f"{self.name}: signals that are missing: {told}{without}. Their weights are left out (this is said once; a signal "
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


def _first_of_document(
    documents: list[object], order: Rows, owner: Rows, kept: NDArray[np.bool_], most: int
) -> NDArray[np.bool_]:
    """``[candidates]``, which of those kept are among the first so many of their document in their list."""
    counts: dict[tuple[int, object], int] = {}
    chosen = kept.copy()
    lists = owner.tolist()
    for place in np.flatnonzero(kept).tolist():
        document = documents[order[place]]
        if isinstance(document, str | int | float):
            key = lists[place], document
            counts[key] = counts.get(key, 0) + 1
            chosen[place] = counts[key] <= most
    return chosen
