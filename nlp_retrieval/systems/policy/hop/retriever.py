"""Retrieval along typed relations: from what another retriever finds to what follows, supports, explains or contradicts it.

Relations between passages are found when they are indexed (:mod:`nlp_retrieval.systems.policy.relations.finding`), or taken
from a table (:mod:`nlp_retrieval.systems.policy.hop.told`). A search walks them
best-first from the hits of any retriever (HopRAG, Liu et al., 2025, https://arxiv.org/abs/2502.12442, walks from passage to
passage too, over questions that a language model wrote). A question about what changed between versions of a text is answered
from the relations between versions (:mod:`nlp_retrieval.systems.policy.hop.changes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval import Explanation, FaissRetriever
from nlp_retrieval.core import (
    BaseRetriever,
    ByName,
    Config,
    Hits,
    ItemTable,
    Mask,
    MergeRule,
    Rows,
    Scores,
    SegmentFolder,
    may_set,
    reads_model,
    scaled,
    stage,
    with_parts_made,
)
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.systems.policy.chunk_tables.loader import ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.changes import ChangeQuestion, change_asked
from nlp_retrieval.systems.policy.hop.explain import change_in_words, path_explained, start_of
from nlp_retrieval.systems.policy.hop.files import RelationFiles
from nlp_retrieval.systems.policy.hop.found import FoundRelations
from nlp_retrieval.systems.policy.hop.ranking import RankedPassages, VersionChanges, changed, pooled
from nlp_retrieval.systems.policy.hop.settings import RELATION_WEIGHTS, checked_weights, encoder_of, source_of
from nlp_retrieval.systems.policy.hop.told import ToldRelations
from nlp_retrieval.systems.policy.relations.best_first import RelationGraph, RelationPath
from nlp_retrieval.systems.policy.relations.centrality import classes_of
from nlp_retrieval.systems.policy.relations.finding import RelationSettings
from nlp_retrieval.systems.policy.relations.places import RelationFields
from nlp_retrieval.systems.policy.relations.relation import FOLLOWS, TEMPORAL_FOLLOWS, Relation, Relations
from nlp_retrieval.systems.policy.relations.tables import RelationTables

_RELATIONS_OF_A_PASSAGE, _STEPS = 16, 300
_OF_FINDING = frozenset(
    "encoder subject document position version version_order neighbours across min_similarity min_carried".split()
)
_CHANGED_AT_MOST = 1000


class HopRetriever(BaseRetriever):
    """Walks typed relations between passages, best first, from the hits of another retriever.

    The score of a passage is its scaled score in the starting retriever's list (0 where that did not find it), plus
    ``hop_weight`` times the strength of the strongest path that leads to it from another passage, plus ``centrality_weight``
    times the mean of its degree, PageRank and betweenness. Passages that are neither among the first ``depth`` hits nor
    reached follow in the starting retriever's order. Only passages that pass a filter are walked over.

    A question that asks what was added or dropped between versions (``changes``) gets first the passages that the version
    changed: by relevance to the rest of the question, in which the passages beside one in its document count too, times how
    much of it is new (or gone). The version is the last one of each subject among the passages that may be found.

    Passages that join an index have the relations they would have in one built at once; nearly so beyond 20,000 passages. A
    deleted passage and its relations are gone at once; what its versions' other passages have in common with it counts until
    the index is compacted, as does its share in their centrality.

    Args:
        start: the retriever with whose hits the walk begins; by default dense retrieval with ``encoder``.
        encoder: of passages, for finding those that may be related: a model's hub name, a local folder, or an encoder. By
            default that of the starting retriever, where that is faiss or pgvector; without one, all-MiniLM-L6-v2.
        relations: a ``chunk_tables`` loader whose table ``logical_relationships`` tells the relations. None are found then:
            parameters from ``subject`` to ``min_carried`` count for nothing, ``encoder`` for the default start alone, and no
            question is answered by what versions changed.
        subject: metadata key of what passages are about, of which there are versions.
        document: metadata key of the document of a passage.
        position: metadata key of a number that orders the passages of a document.
        version: metadata keys that order versions, the first one first: numbers, dates (``2025``, ``2025-05``,
            ``2025-05-09``), or words of ``version_order``.
        version_order: words that order versions, the earliest first.
        neighbours: with how many of its nearest neighbours in its version of its subject a passage is judged.
        across: with how many of other subjects; beyond 20,000 passages a few of these are missed, for the sake of time.
        min_similarity: the least cosine of neighbours.
        min_carried: passages of two versions correspond where they have at least this share of words in common.
        max_hops: the most relations of a path.
        max_starts: how many of the first hits paths start from.
        depth: how many hits are ranked together with what is reached.
        decay: what a path loses with each relation, as a factor.
        relation_weights: weights of relation types, 0 to 1, that differ from
            :data:`~nlp_retrieval.systems.policy.hop.settings.RELATION_WEIGHTS`.
        hop_weight: how much a path counts.
        centrality_weight: how much centrality counts.
        changes: what change a query asks for: ``auto`` reads it from the query, ``none`` answers all queries alike.
        beside_weight: of changes, how much the passages before and after count, compared with 1.
        newness_power: of changes, the share that is new counts to this power.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
    """

    name = "hop"
    manifest_may_set = may_set(
        *("start", "subject", "document", "position", "version", "version_order", "neighbours", "across", "min_similarity"),
        *("min_carried", "max_hops", "max_starts", "depth", "decay", "relation_weights", "hop_weight", "centrality_weight"),
        *("changes", "beside_weight", "newness_power", "merge", "relations"),
        encoder=reads_model,
    )
    format_version = 2
    search_only = frozenset(
        "start max_hops max_starts depth decay relation_weights hop_weight centrality_weight changes beside_weight "
        "newness_power merge".split()
    )

    def __init__(
        self,
        start: BaseRetriever | ByName | None = None,
        encoder: str | BaseEncoder | None = None,
        subject: Annotated[str, Field(min_length=1)] = "country",
        document: Annotated[str, Field(min_length=1)] = "document",
        position: Annotated[str, Field(min_length=1)] = "position",
        version: Sequence[str] = ("year", "edition", "version", "captured"),
        version_order: Sequence[str] = (),
        neighbours: Annotated[int, Field(ge=0, le=1000)] = 50,
        across: Annotated[int, Field(ge=0, le=1000)] = 5,
        min_similarity: Annotated[float, Field(ge=-1, le=1)] = 0.6,
        min_carried: Annotated[float, Field(gt=0, le=1)] = 0.25,
        max_hops: Annotated[int, Field(ge=1, le=3)] = 2,
        max_starts: Annotated[int, Field(ge=1, le=1000)] = 10,
        depth: Annotated[int, Field(ge=1)] = 100,
        decay: Annotated[float, Field(gt=0, le=1)] = 0.9,
        relation_weights: Mapping[str, Annotated[float, Field(ge=0, le=1)]] | None = None,
        hop_weight: Annotated[float, Field(ge=0, le=1000)] = 0.3,
        centrality_weight: Annotated[float, Field(ge=0, le=1000)] = 0.0,
        changes: Literal["auto", "added", "dropped", "none"] = "auto",
        beside_weight: Annotated[float, Field(ge=0, le=1000)] = 0.5,
        newness_power: Annotated[float, Field(ge=0, le=100)] = 0.1,
        merge: MergeRule = "alternate",
        relations: ChunkTablesLoader | ByName | None = None,
    ) -> None:
        made = with_parts_made(self, HopRetriever, start=start, relations=relations)
        given: BaseRetriever | None = made["start"]
        self.told_by = source_of(made["relations"])
        self.encoder = encoder_of(given, encoder)
        self.start = FaissRetriever(self.encoder) if given is None else given
        # a default, spelled out, is the same; an encoder that nothing asks for need not be there
        self._arguments |= {"start": self.start, "encoder": self.encoder if self.told_by is None else None}
        self.subject = subject
        self.document = document
        self.position = position
        self.version = list(version)
        self.version_order = list(version_order)
        self.neighbours = neighbours
        self.across = across
        self.min_similarity = min_similarity
        self.min_carried = min_carried
        self.max_hops = max_hops
        self.max_starts = max_starts
        self.depth = depth
        self.decay = decay
        self.relation_weights = checked_weights(relation_weights)
        self.hop_weight = hop_weight
        self.centrality_weight = centrality_weight
        self.changes = changes
        self.beside_weight = beside_weight
        self.newness_power = newness_power
        self.merge = merge

    def parts(self) -> list[BaseRetriever]:
        return [self.start]

    def index_identity(self) -> Config:
        unused = {"relations"} if self.told_by is None else _OF_FINDING
        return {key: value for key, value in super().index_identity().items() if key not in unused}

    def build(self, items: ItemTable, folder: Path) -> None:
        self._relation_files().build(items, folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        self._relation_files().extend(items, folder, segments, everything)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        self._relation_files().join(segments, items, folder)

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._relation_files().require(segments)

    def load(self, folder: Path) -> None:
        self.load_segments([SegmentFolder(folder, 0, self._relation_files().rows_in(folder))])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._relation_files().check(segments)
        tables = RelationTables.of_segments(segments)
        self._n_rows = segments[-1].end_row
        weights = dict(RELATION_WEIGHTS) | self.relation_weights
        self._graph = RelationGraph(tables.relations, self._n_rows, weights, _RELATIONS_OF_A_PASSAGE)
        self._centrality = tables.centrality
        self._central = tables.centrality.mean(1, dtype=np.float64)
        self._classes = classes_of(tables.centrality)
        versions, new, gone = tables.nodes.over(self._n_rows)
        _, families = np.unique(tables.families, return_inverse=True)
        following, followed = self._graph.adjacent(FOLLOWS)
        self._changes = VersionChanges(versions.astype(np.int64), families, new, gone, following, followed)
        (self._open_start,) = self._opened_parts or (self.start,)

    @property
    def relations(self) -> Relations:
        """The relations of an opened index, by rows; those of deleted passages are left out."""
        return self._graph.relations

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.start"):
            hits = self._open_start.find(queries, min(max(k, self.depth), self._n_rows), self._n_rows, allowed)
        lists = [self._ranked(query, *hits.of(number), k, allowed) for number, query in enumerate(queries)]
        keys = list(dict.fromkeys(key for ranked in lists for key in ranked.signals))
        signals = {
            key: np.concatenate([ranked.signals.get(key, np.full(len(ranked.rows), np.nan)) for ranked in lists])
            for key in keys
        }
        return replace(Hits.from_lists([(ranked.rows, ranked.scores) for ranked in lists]), signals=signals)

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        found, scores = self._open_start.find([query], min(self.depth, self._n_rows), self._n_rows).of(0)
        asked = self._asked(query)
        is_changed = None if asked is None else self._changes.side(asked.kind, self._live)[1]
        paths = {path.row: path for path in self._paths(found, scores, None)}
        own = dict(zip(found.tolist(), scaled(scores, min(self.depth, self._n_rows)).tolist(), strict=True))
        explained: list[Explanation | None] = []
        for row in rows.tolist():
            origin = start_of(row, self._open_start.name, found, scores)
            if asked is not None and is_changed is not None and is_changed[row]:
                (item,) = items.items(np.array([row], np.int64))
                explained.append(Explanation(item, self._change(row, asked), (), 1.0))
            elif row in paths and (not origin or own[row] < own[paths[row].rows[0]]):  # a path from a better hit
                first = start_of(paths[row].rows[0], self._open_start.name, found, scores)
                explained.append(path_explained(paths[row], self._graph.relations, first, items))
            elif origin:
                (item,) = items.items(np.array([row], np.int64))
                explained.append(Explanation(item, origin, (), 1.0))
            else:
                explained.append(None)
        return explained

    def _ranked(self, query: str, rows: Rows, scores: Scores, k: int, allowed: Mask | None) -> RankedPassages:
        with stage(f"{self.name}.walk"):
            paths = self._paths(rows, scores, allowed)
        own = scaled(scores[: self.depth], min(self.depth, self._n_rows))
        ranked = pooled(rows[: self.depth], own, paths, self.hop_weight, self.centrality_weight * self._central, k)
        ranked = ranked.then(RankedPassages(rows[self.depth :], scores[self.depth :], {}), k)
        asked = self._asked(query)
        if asked is not None:
            with stage(f"{self.name}.changes"):
                allow = self._live if allowed is None else allowed
                settings = min(_CHANGED_AT_MOST, self._n_rows), self.beside_weight, self.newness_power
                first = changed(self._changes, asked.kind, asked.rest, self._find, allow, *settings)
            ranked = first.head(k).then(ranked, k)
        order = np.argsort(rows)
        places = order[np.minimum(np.searchsorted(rows[order], ranked.rows), max(len(rows) - 1, 0))] if len(rows) else order
        found = rows[places] == ranked.rows if len(rows) else np.zeros(len(ranked.rows), bool)
        start = np.where(found, scores[places], np.nan) if len(rows) else np.full(len(ranked.rows), np.nan)
        signals = {"start": start} | ranked.signals
        for number, name in enumerate(("degree", "pagerank", "betweenness")):
            signals[name] = self._centrality[ranked.rows, number].astype(np.float64)
        signals["class"] = self._classes[ranked.rows].astype(np.float64)
        signals |= {"new": self._changes.new[ranked.rows], "gone": self._changes.gone[ranked.rows]}
        return replace(ranked, signals=signals)

    def _paths(self, rows: Rows, scores: Scores, allowed: Mask | None) -> list[RelationPath]:
        own = scaled(scores[: self.depth], min(self.depth, self._n_rows))[: self.max_starts]
        allowed = self._live if allowed is None else allowed
        return self._graph.walk(rows[: self.max_starts].tolist(), own.tolist(), self.max_hops, self.decay, allowed, _STEPS)

    def _asked(self, query: str) -> ChangeQuestion | None:
        return change_asked(query, self.changes)

    def _find(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Scores]:
        if not allowed.any():
            return np.zeros(0, np.int64), np.zeros(0)
        return self._open_start.find([query], k, self._n_rows, allowed).of(0)

    def _change(self, row: int, asked: ChangeQuestion) -> str:
        relations = self._graph.relations
        ends = relations.sources if asked.kind == "added" else relations.targets
        numbers = np.flatnonzero((ends == row) & (relations.types == TEMPORAL_FOLLOWS))
        closest: Relation | None = None
        if len(numbers):
            closest = relations.at(int(numbers[np.argmax(relations.carried[numbers])]))
        share = self._changes.new[row] if asked.kind == "added" else self._changes.gone[row]
        return change_in_words(asked.kind, float(share), closest, asked.rest)

    def _relation_files(self) -> RelationFiles:
        if self.told_by is not None:
            return ToldRelations(self.told_by)
        words = tuple(self.version), tuple(self.version_order)
        fields = RelationFields(self.subject, self.document, self.position, *words)
        settings = RelationSettings(fields, self.neighbours, self.across, self.min_similarity, self.min_carried)
        return FoundRelations(self.encoder, settings)
