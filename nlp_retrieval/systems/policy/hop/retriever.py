"""Retrieval along relations between passages: from another retriever's hits to what stands beside, before or after them.

Relations are computed when passages are indexed, or read from a table. A search walks them best-first from the hits of any
retriever (HopRAG, Liu et al., 2025, https://arxiv.org/abs/2502.12442, also walks from passage to passage, over questions
written by a language model). A question about changes between editions is answered from the relations between them.
"""

from __future__ import annotations

import warnings
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
    Hits,
    ItemTable,
    Mask,
    MergeRule,
    Rows,
    Scores,
    SegmentFolder,
    Step,
    mapped,
    may_set,
    resolve_components,
    scaled,
    stage,
)
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, RetrievalWarning, SourceError
from nlp_retrieval.retrievers import Hashes, hash_of, live_among, live_of
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.finding import find_relations
from nlp_retrieval.systems.policy.hop.graph import RelationGraph, RelationPath
from nlp_retrieval.systems.policy.hop.ranking import (
    ChangeKind,
    ChangeQuestion,
    RankedPassages,
    change_asked,
    changed,
    changed_side,
    pooled,
)
from nlp_retrieval.systems.policy.hop.relation import TEMPORAL_FOLLOWS, Relation, Relations, RelationTables
from nlp_retrieval.text import changed_quantities

RELATION_WEIGHTS: Mapping[str, float] = {
    "SUPPORTS": 0.8, "EXPLAINS": 0.9, "CONTRADICTS": 0.7, "FOLLOWS": 0.9, "TEMPORAL_FOLLOWS": 0.7, "CAUSES": 0.9,
}  # fmt: skip
"""Default weights of relation types in a walk."""

_STARTS, _DEPTH, _DECAY, _HOP_WEIGHT = 10, 100, 0.9, 0.3
"""First hits that paths start from, hits that are ranked with what is reached, factor of a relation, and weight of paths."""

_RELATIONS_OF_A_PASSAGE, _STEPS, _CHANGED_AT_MOST = 16, 300, 1000
_SEEN = "told_by.npy"


class HopRetriever(BaseRetriever):
    """Walks relations between passages, best first, from the hits of another retriever.

    Two relations are computed: FOLLOWS, from a passage to the one before it in its document, and TEMPORAL_FOLLOWS, to its
    counterpart in the edition before. With ``relations``, a table says them, of any type, and none are computed.

    The score of a passage is its scaled score in the starting retriever's list (0 if that did not find it), plus .3 times the
    strength of the strongest path that leads to it from one of the first 10 hits. Passages that are neither among the first
    100 hits nor reached follow in the starting retriever's order. Only passages that pass a filter are walked over.

    For a question about additions or removals between editions (``changes``), the passages changed by the edition come first:
    by relevance to the rest of the question, which includes the neighbouring passages of the document, times the share that
    is new (or gone). The edition is the last one of each subject among the passages that pass the filter.

    Documents are named by the metadata ``document``, ``doc_id`` or ``parent_id``, their passages ordered by ``position`` or
    ``chunk``, and editions by ``year``, ``edition``, ``version``, ``date`` and ``captured``. What a deleted passage had in
    common with other editions counts until the index is compacted.

    Args:
        start: the retriever whose hits the walk begins with; by default dense retrieval.
        subject: metadata key of the subject of passages, which has editions.
        relations: a ``chunk_tables`` loader whose table ``logical_relationships`` holds the relations. Questions about
            changes are then answered like any other.
        max_hops: the most relations of a path.
        changes: the change that a query asks for: ``auto`` reads it from the query, ``none`` treats all queries alike.
        merge: merging of sub-queries of one query: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> searcher = Searcher([HopRetriever("bm25", max_hops=1)])
        >>> report = searcher.index(plans, "hop")
        >>> [hit.item.item_id for hit in searcher.search("wind power of Ostland", k=2)[0]]
        ['ostland-2019-power', 'ostland-2024-power']
    """

    name = "hop"
    manifest_may_set = may_set("start", "subject", "relations", "max_hops", "changes", "merge")
    format_version = 5
    search_only = frozenset("start max_hops changes merge".split())

    def __init__(
        self,
        start: BaseRetriever | ByName | None = None,
        subject: Annotated[str, Field(min_length=1)] = "country",
        relations: ChunkTablesLoader | ByName | None = None,
        max_hops: Annotated[int, Field(ge=1, le=3)] = 2,
        changes: Literal["auto", "added", "dropped", "none"] = "auto",
        merge: MergeRule = "alternate",
    ) -> None:
        parts = resolve_components(self, HopRetriever, start=start, relations=relations)
        self.start: BaseRetriever = parts["start"] or FaissRetriever()
        self._arguments["start"] = self.start  # an explicit default is the same
        self.told_by: ChunkTablesLoader | None = parts["relations"]
        if self.told_by is not None and not isinstance(self.told_by, ChunkTablesLoader):
            raise ConfigurationError(f"hop: relations: {self.told_by!r} has no relations; use the loader chunk_tables")
        self.subject = subject
        self.max_hops = max_hops
        self.changes = changes
        self.merge = merge

    def parts(self) -> list[BaseRetriever]:
        return [self.start]

    def build(self, items: ItemTable, folder: Path) -> None:
        self._tables(items, np.ones(len(items), bool), None, folder).write(folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del items
        before = RelationTables.of_segments(segments)
        self._tables(everything, live_among(everything, segments), before, folder).write(folder)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        if segments[0].first_row == 0 and self.told_by is None:
            self.build(items, folder)
            return
        live = np.concatenate([np.ones(segments[0].first_row, bool), live_of(segments)])
        RelationTables.of_segments(segments).among(live).write(folder)
        if self.told_by is not None:
            np.save(folder / _SEEN, mapped(segments[-1].folder / _SEEN, np.uint64, (2,)), allow_pickle=False)

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        if self.told_by is None:
            return
        seen = mapped(segments[-1].folder / _SEEN, np.uint64, (2,))
        if not np.array_equal(_sum_of(list(self.told_by.relations())), seen):
            raise IndexDamagedError(
                f"hop: the table logical_relationships of {self.told_by!r} has changed since the index was built; index again "
                "with replace=True"
            )

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        if self.told_by is not None:
            mapped(segments[-1].folder / _SEEN, np.uint64, (2,))
        self._known = RelationTables.of_segments(segments)
        self._graph = RelationGraph(self._known.relations, self._n_rows, RELATION_WEIGHTS, _RELATIONS_OF_A_PASSAGE)
        (self._open_start,) = self._opened_parts or (self.start,)

    @property
    def relations(self) -> Relations:
        """Return the relations of an opened index, by rows, without those of deleted passages."""
        return self._known.relations

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.start"):
            hits = self._open_start.find(queries, min(max(k, _DEPTH), self._n_rows), allowed)
        lists = [self._ranked(query, *hits.of(number), k, allowed) for number, query in enumerate(queries)]
        keys = dict.fromkeys(key for ranked in lists for key in ranked.signals)
        signals = {
            key: np.concatenate([ranked.signals.get(key, np.full(len(ranked.rows), np.nan)) for ranked in lists])
            for key in keys
        }
        return replace(Hits.from_lists([(ranked.rows, ranked.scores) for ranked in lists]), signals=signals)

    def _ranked(self, query: str, rows: Rows, scores: Scores, k: int, allowed: Mask | None) -> RankedPassages:
        with stage(f"{self.name}.walk"):
            own = self._scaled(scores)
            ranked = pooled(rows[:_DEPTH], own, self._paths(rows, own, allowed), _HOP_WEIGHT, k)
        ranked = ranked.then(RankedPassages(rows[_DEPTH:], scores[_DEPTH:], {}), k)
        asked = change_asked(query, self.changes)
        if asked is not None:
            with stage(f"{self.name}.changes"):
                allow = self._live if allowed is None else allowed
                first = changed(self._known, asked, self._find, allow, min(_CHANGED_AT_MOST, self._n_rows))
            ranked = first.head(k).then(ranked, k)
        start = np.full(self._n_rows, np.nan)
        start[rows] = scores
        of_rows = {"start": start, "new": self._known.new, "gone": self._known.gone}
        return replace(ranked, signals=ranked.signals | {key: column[ranked.rows] for key, column in of_rows.items()})

    def _scaled(self, scores: Scores) -> Scores:
        return scaled(scores[:_DEPTH], min(_DEPTH, self._n_rows))

    def _paths(self, rows: Rows, own: Scores, allowed: Mask | None) -> list[RelationPath]:
        allowed = self._live if allowed is None else allowed
        starts, strengths = rows[:_STARTS].tolist(), own[:_STARTS].tolist()
        return self._graph.walk(starts, strengths, self.max_hops, _DECAY, allowed, _STEPS)

    def _find(self, query: str, k: int, allowed: Mask) -> tuple[Rows, Scores]:
        if not allowed.any():
            return np.zeros(0, np.int64), np.zeros(0)
        return self._open_start.find([query], k, allowed).of(0)

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        start_rows, scores = self._open_start.find([query], min(_DEPTH, self._n_rows)).of(0)
        own = self._scaled(scores)
        paths = {path.row: path for path in self._paths(start_rows, own, None)}
        asked = change_asked(query, self.changes)
        is_changed = None if asked is None else changed_side(self._known, asked.kind, self._live)[1]
        places = {row: place for place, row in enumerate(start_rows.tolist())}

        def origin(row: int) -> str:
            place = places[row]
            return f"{self._open_start.name} ranks it {place + 1} of {len(places)} (score {scores[place]:.3g})"

        explained: list[Explanation | None] = []
        for row, item in zip(rows.tolist(), items.items(rows), strict=True):
            path = paths.get(row)
            if asked is not None and is_changed is not None and is_changed[row]:
                explained.append(Explanation(item, self._change_in_words(row, asked, items), (), 1.0))
            elif path is not None and (row not in places or own[places[row]] < own[places[path.rows[0]]]):
                explained.append(Explanation(item, origin(path.rows[0]), self._steps(path, items), path.strength))
            else:
                explained.append(Explanation(item, origin(row), (), 1.0) if row in places else None)
        return explained

    def _steps(self, path: RelationPath, items: ItemTable) -> tuple[Step, ...]:
        passages = items.items(np.array(path.rows, np.int64))
        steps = []
        for place, number in enumerate(path.relations):
            along = int(self.relations.sources[number]) == path.rows[place]
            steps.append(Step(passages[place], passages[place + 1], self.relations.kind(number), along))
        return tuple(steps)

    def _change_in_words(self, row: int, asked: ChangeQuestion, items: ItemTable) -> str:
        """Return what an edition changed in a passage, in words."""
        share, when = _SIDES[asked.kind]
        change = f"{getattr(self._known, share)[row]:.0%} of its words are {when}"
        own, others = (self.relations.sources, self.relations.targets)[:: 1 if asked.kind == "added" else -1]
        numbers = np.flatnonzero((own == row) & (self.relations.types == TEMPORAL_FOLLOWS))
        counterpart = "it has no counterpart there"
        if len(numbers):
            best = numbers[np.argmax(self.relations.confidences[numbers])]
            here, there = items.items(np.array([row, others[best]], np.int64))
            counterpart = f"its counterpart there keeps {self.relations.confidences[best]:.0%} of the words"
            if figures := len(changed_quantities(there.content, here.content)):
                counterpart += f", with {figures} changed quantit{'y' if figures == 1 else 'ies'}"
        return f'{change}; {counterpart}; ranked by the rest of the question: "{asked.rest}"'

    def _tables(self, everything: ItemTable, live: Mask, before: RelationTables | None, folder: Path) -> RelationTables:
        """Return the tables of a whole index; of stored relations a checksum is written too."""
        if self.told_by is None:
            return find_relations(everything, live, self.subject, before)
        rows = {item_id: row for row, item_id in enumerate(everything.ids()) if live[row]}
        stored = list(self.told_by.relations())
        np.save(folder / _SEEN, _sum_of(stored), allow_pickle=False)
        kept = [one for one in stored if one.source_id in rows and one.target_id in rows]
        if before is None and not kept:
            raise SourceError(
                f"hop: none of the {len(stored):,} relations in the table logical_relationships of {self.told_by!r} connects "
                "two items of this index; index the chunks of the same tables (the loader chunk_tables), or omit `relations`"
            )
        if before is None and len(kept) < len(stored):
            warnings.warn(
                f"hop: {len(stored) - len(kept):,} relations of {self.told_by!r} are left out: they lead from or to chunks "
                "that are not among the items that are indexed",
                RetrievalWarning,
                stacklevel=2,
            )
        relations = (Relation(rows[one.source_id], rows[one.target_id], one.type, one.confidence) for one in kept)
        return replace(RelationTables.empty(len(everything)), relations=Relations.of(relations))


_SIDES: Mapping[ChangeKind, tuple[str, str]] = {
    "added": ("new", "new since the version before"),
    "dropped": ("gone", "gone in the next version"),
}


def _sum_of(relations: Sequence[ChunkRelation]) -> Hashes:
    """Return the number of relations, and the sum of their hashes, which does not depend on their order."""
    texts = (f"{one.source_id}\0{one.target_id}\0{one.type}\0{one.confidence!r}" for one in relations)
    total = sum(hash_of(text.encode(errors="replace").decode()) for text in texts)
    return np.array([len(relations), total % 2**64], np.uint64)
