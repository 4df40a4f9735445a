"""Knowledge graph of an index: its combined segments, and how they are written.

Entities and triples are numbered by their hashes, so the same passages give the same graph however they came into the index.
Nodes are the rows of the index and then the entities. Links are relations (subject and object of a triple, weighted by how many
passages state one of the two), synonyms (weighted by cosine), and mentions (a passage and the entities of its triples).
Statements of deleted passages only are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import CURE, ItemTable, Mask, Rows, Scores, SegmentFolder, Stream, damaged, mapped, offsets_of, tracked
from nlp_retrieval.encoders import BaseEncoder, Vectors, write_passages
from nlp_retrieval.errors import IndexDamagedError, RetrievalWarning
from nlp_retrieval.retrievers import Hashes, LinkGraph, Links, Stack, WeightedGraph, exact_search, live_of, write_link_graph
from nlp_retrieval.systems.hipporag.knowledge import KnowledgeSource
from nlp_retrieval.systems.hipporag.synonyms import SHORTEST, best_synonyms, synonyms_of
from nlp_retrieval.systems.hipporag.tables import (
    VECTORS_FILE,
    Collected,
    KnowledgeTables,
    Synonyms,
    TextColumn,
    collected,
    shown_triple,
    vectors_in,
)

RELATIONS, SYNONYMS, MENTIONS = "relations", "synonyms", "mentions"

WITH_PASSAGES = {RELATIONS: (1.0, 1.0), SYNONYMS: (1.0, 1.0), MENTIONS: (0.5, 0.5)}
"""The published program stores relations and synonyms once in either direction of an undirected graph, so they count twice."""

WITHOUT_PASSAGES = WITH_PASSAGES | {MENTIONS: (0.0, 0.0)}

_PAST_THE_CUT = 8


@dataclass(frozen=True, eq=False)
class Searched:
    """Vectors for nearest-neighbour search."""

    stack: Stack
    places: Rows

    @cached_property
    def _allowed(self) -> Mask:
        allowed = np.zeros(len(self.stack), np.bool_)
        allowed[self.places] = True
        return allowed

    @cached_property
    def _numbers(self) -> Rows:
        numbers = np.full(len(self.stack), -1, np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers

    def nearest(self, vectors: Vectors, k: int) -> list[tuple[Rows, Scores]]:
        """Return the k nearest of each vector, best first, as numbers and inner products; equal ones by number."""
        if len(self.places) == 0 or len(vectors) == 0:
            return [(np.zeros(0, np.int64), np.zeros(0))] * len(vectors)
        depth = min(k + _PAST_THE_CUT, len(self.places))
        while True:
            hits = exact_search(vectors, self.stack, depth, self._allowed)
            lists = [(self._numbers[hits.rows[a:b]], hits.scores[a:b]) for a, b in pairwise(hits.offsets.tolist())]
            if depth == len(self.places) or all(scores[k - 1] > scores[-1] for _, scores in lists):
                break
            depth = min(4 * depth, len(self.places))
        ordered = [(numbers, scores, np.lexsort((numbers, -scores))[:k]) for numbers, scores in lists]
        return [(numbers[order], scores[order]) for numbers, scores, order in ordered]

    def farthest(self, vectors: Vectors) -> Scores:
        """Return the lowest inner product of each vector with any of these."""
        return -exact_search(-vectors, self.stack, 1, self._allowed).scores


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """The opened graph."""

    n_rows: int  # rows of the index
    n_unknown: int  # number of passages without knowledge
    entities: Searched  # vectors of entities
    triples: Searched  # vectors of triples
    ends: Rows  # [triples, 2], numbers of their subjects and objects
    statements: Rows  # [statements, 2], row and triple, ascending
    mentions: Rows  # [mentions, 2], row and entity, ascending
    synonyms: Links  # links among nodes
    texts: Sequence[TextColumn]  # of all segments, in the order of the stack

    @property
    def n_entities(self) -> int:
        return len(self.entities.places)

    @cached_property
    def passages_of_entity(self) -> Rows:
        """Return ``[entities]``, the number of passages of each."""
        return np.bincount(self.mentions[:, 1], minlength=self.n_entities)

    def links(self) -> dict[str, Links]:
        """Return the links by kind, as :meth:`LinkGraph.of` takes them."""
        stated = np.bincount(self.statements[:, 1], minlength=len(self.ends)).astype(np.float32)
        ends = np.sort(self.ends, axis=1) + self.n_rows
        distinct = ends[:, 0] != ends[:, 1]
        relations = Links(ends[distinct, 0], ends[distinct, 1], stated[distinct])
        weights = np.ones(len(self.mentions), np.float32)
        mentions = Links(self.mentions[:, 0].copy(), self.mentions[:, 1] + self.n_rows, weights)
        return {RELATIONS: relations, SYNONYMS: self.synonyms, MENTIONS: mentions}

    def weighted(self, stored: Path | None, *, passages: bool) -> WeightedGraph:
        """Return the graph that walks follow, from the folder that was written for just these nodes, or built in memory."""
        n_nodes = self.n_rows + self.n_entities
        graph = LinkGraph.of(n_nodes, self.links()) if stored is None else LinkGraph.open(stored)
        if graph.n_nodes != n_nodes or list(graph.n_links) != list(WITH_PASSAGES):
            raise IndexDamagedError(f"the graph in {stored} does not match its tables; {CURE}")
        return graph.weighted(WITH_PASSAGES if passages else WITHOUT_PASSAGES)

    def phrase(self, entity: int) -> str:
        """Return the phrase of an entity."""
        return self._text(int(self.entities.places[entity]))

    def shown(self, triple: int) -> str:
        """Return a triple as a sentence."""
        subject, target = (self.phrase(int(entity)) for entity in self.ends[triple])
        return shown_triple(subject, self._text(int(self.triples.places[triple])), target)

    def _text(self, position: int) -> str:
        for column in self.texts:
            if position < len(column):
                return column[position]
            position -= len(column)
        raise IndexError(position)


def open_knowledge(segments: Sequence[SegmentFolder]) -> KnowledgeGraph:
    """Combine all segments of an index."""
    opened = _opened(segments)
    dimension = _dimension(opened)
    if any(len(vectors) and vectors.shape[1] != dimension for _, vectors in opened):
        raise damaged(segments[0].folder, "its segments hold vectors of different dimensions")
    stack, every = _stack(opened), _Columns.of(segments, [table for table, _ in opened])
    live_triples = np.unique(_numbers(every.stated, every.triples, segments))
    ends = _numbers(every.ends[live_triples], every.entities, segments)
    live_entities = np.unique(ends)
    ends = np.searchsorted(live_entities, ends)
    statements = np.stack([every.rows, np.searchsorted(every.triples[live_triples], every.stated)], axis=1)
    width = max(len(live_entities), 1)
    mentions = np.unique(np.repeat(statements[:, 0], 2) * width + ends[statements[:, 1]].ravel())
    return KnowledgeGraph(
        len(every.live),
        int((every.live & ~every.known).sum()),
        Searched(stack, every.entity_places[live_entities]),
        Searched(stack, every.triple_places[live_triples]),
        ends,
        statements,
        np.stack(np.divmod(mentions, width), axis=1),
        _synonym_links(every.synonyms, every.entities[live_entities], len(every.live)),
        [table.texts for table, _ in opened],
    )


@dataclass(frozen=True, eq=False)
class _Columns:
    """The tables of consecutive segments together: entities and triples by hash, ascending, with their places in the stack."""

    live: Mask
    known: Mask
    entities: Hashes
    entity_places: Rows
    triples: Hashes
    triple_places: Rows
    ends: Hashes
    rows: Rows
    stated: Hashes
    synonyms: Synonyms

    @classmethod
    def of(cls, segments: Sequence[SegmentFolder], tables: Sequence[KnowledgeTables]) -> _Columns:
        first, live = segments[0].first_row, live_of(segments)
        starts = offsets_of([len(table.texts) for table in tables])[:-1]
        begins = starts + np.array([len(table.entities) for table in tables], np.int64)
        entities, by_entity, entity_places = _in_order([table.entities for table in tables], starts)
        triples, by_triple, triple_places = _in_order([table.triples for table in tables], begins)
        rows = np.concatenate([table.rows + part.first_row - first for table, part in zip(tables, segments, strict=True)])
        return cls(
            live,
            np.concatenate([table.known for table in tables]),
            entities[by_entity],
            entity_places[by_entity],
            triples[by_triple],
            triple_places[by_triple],
            np.concatenate([table.ends for table in tables])[by_triple],
            rows[live[rows]],
            np.concatenate([table.stated for table in tables])[live[rows]],
            Synonyms.joined([table.synonyms for table in tables]),
        )


def _in_order(parts: Sequence[Hashes], starts: Rows) -> tuple[Hashes, Rows, Rows]:
    """Return all hashes, their order, and their places in the stack."""
    hashes = np.concatenate(parts)
    places = np.concatenate([start + np.arange(len(part)) for start, part in zip(starts.tolist(), parts, strict=True)])
    return hashes, np.argsort(hashes, kind="stable"), places


def _numbers(wanted: Hashes, hashes: Hashes, segments: Sequence[SegmentFolder]) -> Rows:
    """Return the numbers of hashes in an ascending list."""
    numbers = np.searchsorted(hashes, wanted)
    if not (numbers < len(hashes)).all() or not (hashes[numbers] == wanted).all():
        raise damaged(segments[0].folder, "a statement refers to an entity or triple that no segment holds")
    return numbers


def _synonym_links(pairs: Synonyms, hashes: Hashes, n_rows: int) -> Links:
    """Return the pairs with both entities present, as links; see :mod:`nlp_retrieval.systems.hipporag.synonyms`."""
    present: NDArray[np.bool_] = np.isin(pairs.sources, hashes) & np.isin(pairs.targets, hashes)
    pairs = pairs.where(present)
    sources, targets = np.searchsorted(hashes, pairs.sources), np.searchsorted(hashes, pairs.targets)
    kept = best_synonyms(sources, targets, pairs.similarities, hashes)
    low, high = np.minimum(sources, targets)[kept], np.maximum(sources, targets)[kept]
    return Links(low + n_rows, high + n_rows, pairs.similarities[kept].astype(np.float32))


_TEXTS_AT_ONCE = 1024
_Known = tuple[KnowledgeTables, Vectors]


def build_files(items: ItemTable, folder: Path, source: KnowledgeSource | None, encoder: BaseEncoder, threshold: float) -> None:
    """Write the first segment of an index, with its graph."""
    _write(collected(items, source), folder, encoder, threshold, [])
    _write_graph(folder, len(items))


def extend_files(
    items: ItemTable,
    folder: Path,
    segments: Sequence[SegmentFolder],
    source: KnowledgeSource | None,
    encoder: BaseEncoder,
    threshold: float,
) -> None:
    """Write a segment of added items; only new phrases and triples are encoded."""
    _write(collected(items, source), folder, encoder, threshold, _opened(segments))


def join_files(segments: Sequence[SegmentFolder], folder: Path, threshold: float) -> None:
    """Join adjacent segments into one, without statements of deleted passages only; nothing is encoded again."""
    opened, first = _opened(segments), segments[0].first_row
    tables = [table for table, _ in opened]
    every, stack, path = _Columns.of(segments, tables), _stack(opened), folder / VECTORS_FILE
    triples_kept = np.isin(every.triples, every.stated)
    ends = every.ends[triples_kept]
    entities_kept = np.isin(every.entities, ends)
    entities, triples = every.entities[entities_kept], every.triples[triples_kept]
    order = np.r_[every.entity_places[entities_kept], every.triple_places[triples_kept]]
    with Stream(path, np.float32, _dimension(opened)) as stream:
        for begin in range(0, len(order), _TEXTS_AT_ONCE):
            stream.write(stack.at(order[begin : begin + _TEXTS_AT_ONCE]))
    texts = [table.texts[number] for table in tables for number in range(len(table.texts))]
    phrases = TextColumn.of(texts[number] for number in order.tolist())
    if first == 0:
        vectors = mapped(path, np.float32, (len(order), None))
        pairs = _synonyms(entities, phrases, vectors[: len(entities)], [], threshold)
    else:
        removed = every.entities[~entities_kept]
        pairs = every.synonyms.where(~np.isin(every.synonyms.sources, removed) & ~np.isin(every.synonyms.targets, removed))
    rows = (np.cumsum(every.live) - 1)[every.rows]
    known = every.known[every.live]
    KnowledgeTables(known, entities, triples, ends, phrases, rows, every.stated, pairs).write(folder)
    if first == 0:
        _write_graph(folder, int(every.live.sum()))


def _opened(segments: Sequence[SegmentFolder]) -> list[_Known]:
    tables = [KnowledgeTables.open(segment) for segment in segments]
    return [(table, vectors_in(segment, table)) for segment, table in zip(segments, tables, strict=True)]


def _dimension(opened: Sequence[_Known]) -> int:
    return max((vectors.shape[1] for _, vectors in opened if len(vectors)), default=1)


def _stack(opened: Sequence[_Known]) -> Stack:
    return Stack(*(vectors if len(vectors) else vectors.reshape(0, _dimension(opened)) for _, vectors in opened))


def _write(collected: Collected, folder: Path, encoder: BaseEncoder, threshold: float, before: list[_Known]) -> None:
    n_unknown = int((~collected.known).sum())
    if n_unknown:
        warnings.warn(
            f"hipporag: there is no knowledge of {n_unknown:,} of {len(collected.known):,} passages; they are found by their "
            "own vectors. Give `knowledge`, a file of entities and triples extracted from the same texts",
            RetrievalWarning,
            stacklevel=4,
        )
    phrases = collected.entities
    entities = sorted(phrases.keys() - {key for table, _ in before for key in table.entities.tolist()})
    triples = sorted(collected.triples.keys() - {key for table, _ in before for key in table.triples.tolist()})
    new_triples = [collected.triples[key] for key in triples]
    texts = [phrases[key] for key in entities]
    encoded = texts + [shown_triple(triple.subject, triple.predicate, triple.object) for triple in new_triples]
    _write_vectors(encoded, folder / VECTORS_FILE, encoder, _dimension(before) if any(len(v) for _, v in before) else None)
    by_phrase = {phrase: key for key, phrase in phrases.items()}
    ends = np.array([(by_phrase[triple.subject], by_phrase[triple.object]) for triple in new_triples], np.uint64).reshape(-1, 2)
    column = TextColumn.of(texts + [triple.predicate for triple in new_triples])
    hashes = np.array(entities, np.uint64)
    vectors = mapped(folder / VECTORS_FILE, np.float32, (len(encoded), None))[: len(entities)]
    pairs = _synonyms(hashes, column, vectors, before, threshold)
    stated = collected.rows, collected.stated
    KnowledgeTables(collected.known, hashes, np.array(triples, np.uint64), ends, column, *stated, pairs).write(folder)


def _synonyms(hashes: Hashes, phrases: TextColumn, vectors: Vectors, before: list[_Known], threshold: float) -> Synonyms:
    """Return the synonyms of new entities; phrases that are too short have none."""
    kept = phrases.n_letters()[: len(hashes)] >= SHORTEST
    old = []
    for table, known in before:
        long = table.texts.n_letters()[: len(table.entities)] >= SHORTEST
        if long.any():
            old.append((known[: len(table.entities)][long], table.entities[long]))
    return synonyms_of(vectors[kept], hashes[kept], old, threshold)


def _write_vectors(texts: list[str], path: Path, encoder: BaseEncoder, dimension: int | None) -> None:
    if not texts:
        np.save(path, np.zeros((0, dimension or 1), np.float32), allow_pickle=False)
        return
    parts = (texts[first : first + _TEXTS_AT_ONCE] for first in range(0, len(texts), _TEXTS_AT_ONCE))
    batches = tracked("hipporag: encoding phrases and triples", parts, len(texts))
    write_passages(encoder, batches, len(texts), path, dimension, path.name)


def _write_graph(folder: Path, n_rows: int) -> None:
    """Write the graph of a whole index next to its tables, so that it is mapped, not built, on opening."""
    knowledge = open_knowledge([SegmentFolder(folder, 0, n_rows)])
    write_link_graph(folder, n_rows + knowledge.n_entities, knowledge.links())
