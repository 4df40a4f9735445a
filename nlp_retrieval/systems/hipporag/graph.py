"""Knowledge graph of an index: its combined segments, and how they are written.

Entities and triples are numbered by their hashes, so the same passages give the same graph however they came into the index.
Nodes are the rows of the index and then the entities. Links are relations (subject and object of a triple, weighted by how many
passages state one of the two), synonyms (weighted by cosine), and mentions (a passage and the entities of its triples).
Statements of deleted passages only are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
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
    """The opened graph.

    Args:
        n_rows: rows of the index.
        n_unknown: number of passages without knowledge.
        entities: vectors of entities.
        triples: vectors of triples.
        ends: ``[triples, 2]``, numbers of their subjects and objects.
        statements: ``[statements, 2]``, row and triple, ascending.
        mentions: ``[mentions, 2]``, row and entity, ascending.
        synonyms: links among nodes.
        texts: of all segments, in the order of the stack.
    """

    n_rows: int
    n_unknown: int
    entities: Searched
    triples: Searched
    ends: Rows
    statements: Rows
    mentions: Rows
    synonyms: Links
    texts: Sequence[TextColumn]

    @property
    def n_entities(self) -> int:
        return len(self.entities.places)

    @cached_property
    def passages_of_entity(self) -> Rows:
        """Return ``[entities]``, the number of passages of each."""
        return np.bincount(self.mentions[:, 1], minlength=self.n_entities)

    @cached_property
    def _statement_offsets(self) -> Rows:
        return offsets_of(np.bincount(self.statements[:, 0], minlength=self.n_rows))

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

    def stated_by(self, row: int) -> Rows:
        """Return the triples that a passage states, ascending."""
        offsets = self._statement_offsets
        triples: Rows = self.statements[offsets[row] : offsets[row + 1], 1]
        return triples

    def _text(self, position: int) -> str:
        for column in self.texts:
            if position < len(column):
                return column[position]
            position -= len(column)
        raise IndexError(position)


def open_knowledge(segments: Sequence[SegmentFolder]) -> KnowledgeGraph:
    """Combine all segments of an index.

    Raises:
        IndexDamagedError: a file is missing or cannot be read, or the files contradict one another.
    """
    tables = [KnowledgeTables.open(segment) for segment in segments]
    blocks = [vectors_in(segment, table) for segment, table in zip(segments, tables, strict=True)]
    dimension = max((block.shape[1] for block in blocks if len(block)), default=1)
    if any(len(block) and block.shape[1] != dimension for block in blocks):
        raise damaged(segments[0].folder, "its segments hold vectors of different dimensions")
    stack = Stack(*(block if len(block) else block.reshape(0, dimension) for block in blocks))
    return assembled(segments, tables, stack)


def assembled(segments: Sequence[SegmentFolder], tables: Sequence[KnowledgeTables], stack: Stack) -> KnowledgeGraph:
    """Combine tables; see :func:`open_knowledge`."""
    first = segments[0].first_row
    starts = offsets_of([len(table.texts) for table in tables])[:-1].tolist()
    entities, entity_places = _in_order([table.entities for table in tables], starts)
    begins = [start + len(table.entities) for start, table in zip(starts, tables, strict=True)]
    triples, triple_places = _in_order([table.triples for table in tables], begins)
    ends = np.concatenate([table.ends for table in tables])[_order([table.triples for table in tables])]
    rows = np.concatenate([table.rows + part.first_row - first for table, part in zip(tables, segments, strict=True)])
    stated = _numbers(np.concatenate([table.stated for table in tables]), triples, segments)
    live = live_of(segments)
    known = np.concatenate([table.known for table in tables])
    statements = np.stack([rows, stated], axis=1)[live[rows]]
    live_triples = np.unique(statements[:, 1])
    statements[:, 1] = np.searchsorted(live_triples, statements[:, 1])
    ends = _numbers(ends[live_triples], entities, segments)
    live_entities = np.unique(ends)
    ends = np.searchsorted(live_entities, ends)
    mentions = np.unique(np.repeat(statements[:, 0], 2) * max(len(live_entities), 1) + ends[statements[:, 1]].ravel())
    mentions = np.stack(np.divmod(mentions, max(len(live_entities), 1)), axis=1)
    pairs = Synonyms.joined([table.synonyms for table in tables])
    return KnowledgeGraph(
        len(live),
        int((live & ~known).sum()),
        Searched(stack, entity_places[live_entities]),
        Searched(stack, triple_places[live_triples]),
        ends,
        statements,
        mentions,
        _synonym_links(pairs, entities[live_entities], len(live)),
        [table.texts for table in tables],
    )


def _order(parts: Sequence[Hashes]) -> Rows:
    return np.argsort(np.concatenate(parts), kind="stable")


def _in_order(parts: Sequence[Hashes], starts: Sequence[int]) -> tuple[Hashes, Rows]:
    """Return all hashes, ascending, and their positions in the stack."""
    order = _order(parts)
    places = np.concatenate([start + np.arange(len(part)) for start, part in zip(starts, parts, strict=True)])
    return np.concatenate(parts)[order], places[order]


def _numbers(wanted: Hashes, hashes: Hashes, segments: Sequence[SegmentFolder]) -> Rows:
    """Return the numbers of hashes in an ascending list.

    Raises:
        IndexDamagedError: one is not there.
    """
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
    """Join adjacent segments into one, without statements of deleted passages only; nothing is encoded again.

    If the first of the index is among them, synonyms are searched again.
    """
    opened, live = _opened(segments), live_of(segments)
    tables = [table for table, _ in opened]
    first = segments[0].first_row
    rows = np.concatenate([table.rows + part.first_row - first for table, part in zip(tables, segments, strict=True)])
    stated = np.concatenate([table.stated for table in tables])[live[rows]]
    rows = (np.cumsum(live) - 1)[rows[live[rows]]]
    triples_kept = [np.isin(table.triples, stated) for table in tables]
    mentioned = np.concatenate([table.ends[kept].ravel() for table, kept in zip(tables, triples_kept, strict=True)])
    entities_kept = [np.isin(table.entities, mentioned) for table in tables]
    order, entities, triples = _sorted_kept(tables, entities_kept, triples_kept)
    ends = np.concatenate([table.ends[kept] for table, kept in zip(tables, triples_kept, strict=True)])
    texts = [table.texts[number] for table in tables for number in range(len(table.texts))]
    _copy_vectors(opened, order, folder / VECTORS_FILE)
    removed = np.setdiff1d(np.concatenate([table.entities for table in tables]), entities)
    pairs = Synonyms.joined([table.synonyms for table in tables])
    pairs = pairs.where(~np.isin(pairs.sources, removed) & ~np.isin(pairs.targets, removed))
    phrases = TextColumn.of(texts[number] for number in order.tolist())
    if first == 0:
        vectors = mapped(folder / VECTORS_FILE, np.float32, (len(order), None))
        pairs = _synonyms(entities, phrases, vectors[: len(entities)], [], threshold)
    triple_order = np.argsort(np.concatenate([table.triples[k] for table, k in zip(tables, triples_kept, strict=True)]))
    known = np.concatenate([table.known for table in tables])[live]
    KnowledgeTables(known, entities, triples, ends[triple_order], phrases, rows, stated, pairs).write(folder)
    if first == 0:
        _write_graph(folder, int(live.sum()))


def _sorted_kept(
    tables: Sequence[KnowledgeTables], entities_kept: list[Mask], triples_kept: list[Mask]
) -> tuple[Rows, Hashes, Hashes]:
    """Return the kept texts, entities by hash and then triples by hash; and these hashes."""
    begin = 0
    entity_places, triple_places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for table, of_entities, of_triples in zip(tables, entities_kept, triples_kept, strict=True):
        entity_places.append(begin + np.flatnonzero(of_entities))
        triple_places.append(begin + len(table.entities) + np.flatnonzero(of_triples))
        begin += len(table.texts)
    entities = np.concatenate([table.entities[kept] for table, kept in zip(tables, entities_kept, strict=True)])
    triples = np.concatenate([table.triples[kept] for table, kept in zip(tables, triples_kept, strict=True)])
    by_entity, by_triple = np.argsort(entities), np.argsort(triples)
    order = np.r_[np.concatenate(entity_places)[by_entity], np.concatenate(triple_places)[by_triple]]
    return order, entities[by_entity], triples[by_triple]


def _copy_vectors(opened: Sequence[_Known], order: Rows, path: Path) -> None:
    """Write vectors of several segments in another order, a block at a time."""
    dimension = _dimension(opened)
    stack = Stack(*(vectors if len(vectors) else vectors.reshape(0, dimension) for _, vectors in opened))
    with Stream(path, np.float32, dimension) as stream:
        for first in range(0, len(order), _TEXTS_AT_ONCE):
            stream.write(stack.at(order[first : first + _TEXTS_AT_ONCE]))


def _opened(segments: Sequence[SegmentFolder]) -> list[_Known]:
    tables = [KnowledgeTables.open(segment) for segment in segments]
    return [(table, vectors_in(segment, table)) for segment, table in zip(segments, tables, strict=True)]


def _dimension(opened: Sequence[_Known]) -> int:
    return max((vectors.shape[1] for _, vectors in opened if len(vectors)), default=1)


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
    none = [np.zeros(0, np.uint64)]
    new = collected.without(
        np.concatenate(none + [table.entities for table, _ in before]),
        np.concatenate(none + [table.triples for table, _ in before]),
    )
    entities, triples = sorted(new.entities), sorted(new.triples)
    new_triples = [new.triples[key] for key in triples]
    texts = [new.entities[key] for key in entities]
    encoded = texts + [shown_triple(triple.subject, triple.predicate, triple.object) for triple in new_triples]
    _write_vectors(encoded, folder / VECTORS_FILE, encoder, _dimension(before) if any(len(v) for _, v in before) else None)
    by_phrase = {phrase: key for key, phrase in phrases.items()}
    ends = np.array([(by_phrase[triple.subject], by_phrase[triple.object]) for triple in new_triples], np.uint64).reshape(-1, 2)
    column = TextColumn.of(texts + [triple.predicate for triple in new_triples])
    hashes = np.array(entities, np.uint64)
    vectors = mapped(folder / VECTORS_FILE, np.float32, (len(encoded), None))[: len(entities)]
    pairs = _synonyms(hashes, column, vectors, before, threshold)
    stated = new.rows, new.stated
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
    batches = tracked("hipporag: encoding phrases and triples", _in_batches(texts), len(texts))
    write_passages(encoder, batches, len(texts), path, dimension, path.name)


def _in_batches(texts: list[str]) -> Iterator[list[str]]:
    return (texts[first : first + _TEXTS_AT_ONCE] for first in range(0, len(texts), _TEXTS_AT_ONCE))


def _write_graph(folder: Path, n_rows: int) -> None:
    """Write the graph of a whole index next to its tables, so that it is mapped, not built, on opening."""
    knowledge = open_knowledge([SegmentFolder(folder, 0, n_rows)])
    write_link_graph(folder, n_rows + knowledge.n_entities, knowledge.links())
