"""Retrieval along typed relations: from another retriever's hits to passages that follow, support, explain or contradict them.

Relations between passages are computed when they are indexed, or read from a table. A search walks them best-first from the
hits of any retriever (HopRAG, Liu et al., 2025, https://arxiv.org/abs/2502.12442, also walks from passage to passage, over
questions written by a language model). A question about changes between versions is answered from the relations between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval import Explanation, FaissRetriever, SearchableItem, SentenceTransformerEncoder
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
    Step,
    may_set,
    reads_model,
    resolve_components,
    scaled,
    stage,
)
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers import VectorRetriever
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.graph import RelationGraph, RelationPath, classes_of
from nlp_retrieval.systems.policy.hop.ranking import (
    ChangeQuestion,
    RankedPassages,
    VersionChanges,
    change_asked,
    changed,
    pooled,
)
from nlp_retrieval.systems.policy.hop.relation import (
    FOLLOWS,
    RELATION_TYPES,
    TEMPORAL_FOLLOWS,
    Relation,
    Relations,
    RelationTables,
)
from nlp_retrieval.systems.policy.hop.relation_files import FoundRelations, RelationFiles, RelationSettings, StoredRelations
from nlp_retrieval.systems.policy.hop.versions import RelationFields

RELATION_WEIGHTS: Mapping[str, float] = {
    "SUPPORTS": 0.8, "EXPLAINS": 0.9, "CONTRADICTS": 0.7, "FOLLOWS": 0.9, "TEMPORAL_FOLLOWS": 0.7, "CAUSES": 0.9,
}  # fmt: skip
"""Default weights of relation types in a walk."""


def encoder_of(start: BaseRetriever | None, encoder: str | BaseEncoder | None) -> BaseEncoder:
    """Return the encoder of passages: the given one, that of the starting retriever, or all-MiniLM-L6-v2."""
    if encoder is None:
        encoder = start.encoder if isinstance(start, VectorRetriever) else "sentence-transformers/all-MiniLM-L6-v2"
    return SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder


def source_of(relations: object) -> ChunkTablesLoader | None:
    """Return the loader of relations; None if they are computed.

    Raises:
        ConfigurationError: it is another loader.
    """
    if relations is not None and not isinstance(relations, ChunkTablesLoader):
        name = getattr(relations, "name", type(relations).__name__)
        raise ConfigurationError(f"hop: relations: {name!r} has no relations; use the loader chunk_tables")
    return relations


def checked_weights(weights: Mapping[str, float] | None, *, are_stored: bool) -> dict[str, float]:
    """Return weights of relation types.

    Args:
        weights: by type.
        are_stored: whether relations come from a table, which may name other types.

    Raises:
        ConfigurationError: there is no such type.
    """
    for kind in weights or {}:
        if kind not in RELATION_TYPES and not are_stored:
            raise ConfigurationError(f"hop: relation_weights: there is no type {kind!r}; {nearest(kind, RELATION_TYPES)}")
    return dict(weights or {})


# Explanations in words of a hop search's results: the start, and the relations from there.

_LONGEST = 300


def path_explained(path: RelationPath, relations: Relations, origin: str, items: ItemTable) -> Explanation:
    """Describe a path in words."""
    passages = items.items(np.array(path.rows, np.int64))
    by_row = dict(zip(path.rows, passages, strict=True))
    steps = tuple(
        _step(source, target, relations.at(number), by_row)
        for source, target, number in zip(path.rows, path.rows[1:], path.relations, strict=False)
    )
    return Explanation(passages[-1], origin, steps, path.strength)


def start_of(row: int, label: str, rows: Rows, scores: Scores) -> str:
    """Return why the search began at a passage, in words; empty if it did not."""
    places = np.flatnonzero(rows == row)
    if not len(places):
        return ""
    return f"{label} ranks it {int(places[0]) + 1} of {len(rows)} (score {scores[places[0]]:.3g})"


def change_in_words(kind: str, share: float, counterpart: Relation | None, asked: str) -> str:
    """Return what a version changed in a passage, in words.

    Args:
        kind: ``added`` or ``dropped``.
        share: of its words that are new, or gone.
        counterpart: the relation to its closest counterpart in the other version; None if it has none.
        asked: the subject of the question.
    """
    description = "new since the version before" if kind == "added" else "gone in the next version"
    if counterpart is None:
        edited = "it has no counterpart there"
    elif kind == "added":
        edited = f"its counterpart there keeps {counterpart.carried:.0%} of the words"
    else:
        edited = f"its counterpart there keeps {counterpart.carried:.0%} of the words"
    if counterpart is not None and counterpart.changed:
        edited += f", with {counterpart.changed} changed quantit{'y' if counterpart.changed == 1 else 'ies'}"
    return f'{share:.0%} of its words are {description}; {edited}; ranked by the rest of the question: "{asked}"'


def _step(source: int, target: int, relation: Relation, items: Mapping[int, SearchableItem]) -> Step:
    along = relation.source == source
    begin, end = relation.source_span
    evidence = items[relation.source].content[begin:end]
    sentence = evidence if len(evidence) <= _LONGEST else f"{evidence[: _LONGEST - 3]}..."
    return Step(items[source], items[target], relation.type, along, sentence, 0, len(sentence))


_RELATIONS_OF_A_PASSAGE, _STEPS = 16, 300
_OF_FINDING = frozenset(
    "encoder subject document position version version_order neighbours across min_similarity min_carried".split()
)
_CHANGED_AT_MOST = 1000


class HopRetriever(BaseRetriever):
    """Walks typed relations between passages, best first, from the hits of another retriever.

    The score of a passage is its scaled score in the starting retriever's list (0 if that did not find it), plus
    ``hop_weight`` times the strength of the strongest path that leads to it from another passage, plus ``centrality_weight``
    times the mean of its degree, PageRank and betweenness. Passages that are neither among the first ``depth`` hits nor
    reached follow in the starting retriever's order. Only passages that pass a filter are walked over.

    For a question about additions or removals between versions (``changes``), the passages changed by the version come first:
    by relevance to the rest of the question, which includes the neighbouring passages of the document, times the share that
    is new (or gone). The version is the last one of each subject among the passages that pass the filter.

    Added passages have the relations that they would have in an index built at once; nearly so beyond 20,000 passages. A
    deleted passage and its relations disappear at once; its effect on other versions' new and gone words, and on centrality,
    remains until the index is compacted.

    Args:
        start: the retriever whose hits the walk begins with; by default dense retrieval with ``encoder``.
        encoder: of passages, for finding those that may be related: a model's hub name, a local folder, or an encoder. By
            default that of the starting retriever, if that is faiss or pgvector; else all-MiniLM-L6-v2.
        relations: a ``chunk_tables`` loader whose table ``logical_relationships`` holds the relations. None are computed then:
            the parameters from ``subject`` to ``min_carried`` have no effect, ``encoder`` counts only for the default start,
            and questions about changes are answered like any other.
        subject: metadata key of the subject of passages, which has versions.
        document: metadata key of the document of a passage.
        position: metadata key of a number that orders the passages of a document.
        version: metadata keys that order versions, the first one first: numbers, dates (``2025``, ``2025-05``,
            ``2025-05-09``), or words of ``version_order``.
        version_order: words that order versions, the earliest first.
        neighbours: number of nearest neighbours in its version of its subject that a passage is judged with.
        across: number of those of other subjects; beyond 20,000 passages a few of these are missed, to save time.
        min_similarity: the least cosine of neighbours.
        min_carried: the least share of common words of corresponding passages of two versions.
        max_hops: the most relations of a path.
        max_starts: number of first hits that paths start from.
        depth: number of hits that are ranked together with reached passages.
        decay: factor of a path's strength for each relation.
        relation_weights: weights of relation types, 0 to 1, that differ from
            :data:`~nlp_retrieval.systems.policy.hop.retriever.RELATION_WEIGHTS`; with ``relations``, of its other types
            too, which have .7 otherwise.
        hop_weight: weight of paths.
        centrality_weight: weight of centrality.
        changes: the change that a query asks for: ``auto`` reads it from the query, ``none`` treats all queries alike.
        beside_weight: for changes, the weight of the passages before and after, compared with 1.
        newness_power: for changes, the exponent of the share that is new.
        merge: merging of sub-queries of one query: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> searcher = Searcher([HopRetriever("bm25", encoder, max_hops=1)])
        >>> report = searcher.index(plans, "hop")
        >>> [hit.item.item_id for hit in searcher.search("wind power of Ostland", k=2)[0]]
        ['ostland-2024-power', 'ostland-2019-power']
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
        parts = resolve_components(self, HopRetriever, start=start, relations=relations)
        start_given: BaseRetriever | None = parts["start"]
        self.told_by = source_of(parts["relations"])
        self.encoder = encoder_of(start_given, encoder)
        self.start = FaissRetriever(self.encoder) if start_given is None else start_given
        # an explicit default is the same; an unused encoder need not be available
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
        self.relation_weights = checked_weights(relation_weights, are_stored=self.told_by is not None)
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
        """Return the relations of an opened index, by rows, without those of deleted passages."""
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
        start_rows, scores = self._open_start.find([query], min(self.depth, self._n_rows), self._n_rows).of(0)
        asked = self._asked(query)
        is_changed = None if asked is None else self._changes.side(asked.kind, self._live)[1]
        paths = {path.row: path for path in self._paths(start_rows, scores, None)}
        own = dict(zip(start_rows.tolist(), scaled(scores, min(self.depth, self._n_rows)).tolist(), strict=True))
        explained: list[Explanation | None] = []
        for row in rows.tolist():
            origin = start_of(row, self._open_start.name, start_rows, scores)
            if asked is not None and is_changed is not None and is_changed[row]:
                (item,) = items.items(np.array([row], np.int64))
                explained.append(Explanation(item, self._change(row, asked), (), 1.0))
            elif row in paths and (not origin or own[row] < own[paths[row].rows[0]]):  # a path from a better hit
                first = start_of(paths[row].rows[0], self._open_start.name, start_rows, scores)
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
        is_start = rows[places] == ranked.rows if len(rows) else np.zeros(len(ranked.rows), bool)
        start = np.where(is_start, scores[places], np.nan) if len(rows) else np.full(len(ranked.rows), np.nan)
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
            return StoredRelations(self.told_by)
        words = tuple(self.version), tuple(self.version_order)
        fields = RelationFields(self.subject, self.document, self.position, *words)
        settings = RelationSettings(fields, self.neighbours, self.across, self.min_similarity, self.min_carried)
        return FoundRelations(self.encoder, settings)
