"""Writing the segments of a knowledge graph: the first, those of added items, and merged ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core import ItemTable, Mask, Rows, SegmentFolder, Stream, mapped, tracked
from nlp_retrieval.encoders import BaseEncoder, Vectors, write_passages
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers import Hashes, Stack, live_of, write_link_graph
from nlp_retrieval.systems.hipporag.engine.collecting import Collected, collected, shown_triple
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import open_knowledge
from nlp_retrieval.systems.hipporag.engine.synonyms import SHORTEST, synonyms_of
from nlp_retrieval.systems.hipporag.engine.tables import VECTORS_FILE, KnowledgeTables, Synonyms, TextColumn, vectors_in
from nlp_retrieval.systems.hipporag.knowledge.statements import KnowledgeSource

_TEXTS_AT_ONCE = 1024
_Known = tuple[KnowledgeTables, Vectors]


def build_files(items: ItemTable, folder: Path, source: KnowledgeSource | None, encoder: BaseEncoder, threshold: float) -> None:
    """Write the first segment of an index, with its graph.

    Args:
        items: all items.
        folder: an empty folder.
        source: of their statements.
        encoder: of phrases and triples.
        threshold: the least cosine of synonyms.
    """
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
    """Write a segment of added items; only new phrases and triples are encoded.

    Args:
        items: the added ones.
        folder: an empty folder.
        segments: the segments before it.
        source: of their statements.
        encoder: of phrases and triples.
        threshold: the least cosine of synonyms.
    """
    _write(collected(items, source), folder, encoder, threshold, _opened(segments))


def join_files(segments: Sequence[SegmentFolder], folder: Path, threshold: float) -> None:
    """Join several segments into one, without statements of deleted passages only; nothing is encoded again.

    Args:
        segments: adjacent segments; if the first of the index is among them, synonyms are searched again.
        folder: an empty folder.
        threshold: the least cosine of synonyms.
    """
    opened, live = _opened(segments), live_of(segments)
    tables = [table for table, _ in opened]
    first = segments[0].first_row
    rows = np.concatenate([table.rows + part.first_row - first for table, part in zip(tables, segments, strict=True)])
    stated = np.concatenate([table.stated for table in tables])[live[rows]]
    rows = (np.cumsum(live) - 1)[rows[live[rows]]]
    triples_kept = [np.isin(table.triples, stated) for table in tables]
    named = np.concatenate([table.ends[kept].ravel() for table, kept in zip(tables, triples_kept, strict=True)])
    entities_kept = [np.isin(table.entities, named) for table in tables]
    order, entities, triples = _sorted_kept(tables, entities_kept, triples_kept)
    ends = np.concatenate([table.ends[kept] for table, kept in zip(tables, triples_kept, strict=True)])
    texts = [table.texts[number] for table in tables for number in range(len(table.texts))]
    _copy_vectors(opened, order, folder / VECTORS_FILE)
    gone = np.setdiff1d(np.concatenate([table.entities for table in tables]), entities)
    pairs = Synonyms.joined([table.synonyms for table in tables])
    pairs = pairs.where(~np.isin(pairs.sources, gone) & ~np.isin(pairs.targets, gone))
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


def _write(said: Collected, folder: Path, encoder: BaseEncoder, threshold: float, before: list[_Known]) -> None:
    n_unknown = int((~said.known).sum())
    if n_unknown:
        warnings.warn(
            f"hipporag: nothing is known of what {n_unknown:,} of {len(said.known):,} passages say; they are found by their "
            "own vectors. Give `knowledge`, a file of entities and triples extracted from these very texts",
            RetrievalWarning,
            stacklevel=4,
        )
    phrases = said.entities
    none = [np.zeros(0, np.uint64)]
    new = said.without(
        np.concatenate(none + [table.entities for table, _ in before]),
        np.concatenate(none + [table.triples for table, _ in before]),
    )
    entities, triples = sorted(new.entities), sorted(new.triples)
    spoken = [new.triples[key] for key in triples]
    texts = [new.entities[key] for key in entities]
    encoded = texts + [shown_triple(one.subject, one.predicate, one.object) for one in spoken]
    _write_vectors(encoded, folder / VECTORS_FILE, encoder, _dimension(before) if any(len(v) for _, v in before) else None)
    by_phrase = {phrase: key for key, phrase in phrases.items()}
    ends = np.array([(by_phrase[one.subject], by_phrase[one.object]) for one in spoken], np.uint64).reshape(-1, 2)
    column = TextColumn.of(texts + [one.predicate for one in spoken])
    hashes = np.array(entities, np.uint64)
    vectors = mapped(folder / VECTORS_FILE, np.float32, (len(encoded), None))[: len(entities)]
    pairs = _synonyms(hashes, column, vectors, before, threshold)
    stated = new.rows, new.stated
    KnowledgeTables(said.known, hashes, np.array(triples, np.uint64), ends, column, *stated, pairs).write(folder)


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
