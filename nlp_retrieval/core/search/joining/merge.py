"""How the hits of several sub-queries become one ranked list per query, without duplicates.

``alternate``, the default, gives every other place to the first sub-query, which with most processors is the query itself,
and those between to the others in turn. ``round_robin`` takes the items of all lists in turn. ``max`` keeps an item's best
score: with scores that grow with the words of a query, such as BM25's, parts of a query then change nothing that the query
itself finds. ``rrf`` adds reciprocal ranks (Cormack et al., SIGIR 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import CandidateBatch, Hits, Rows, Scores, offsets_of
from nlp_retrieval.core.notes import add_note, warns_of_empty
from nlp_retrieval.core.queries import has_no_words

MergeRule = Literal["alternate", "max", "rrf", "round_robin"]

RRF_K = 60
"""The constant of reciprocal rank fusion, from Cormack et al., SIGIR 2009."""


def merge_candidates(
    find: Callable[[list[str]], Hits],
    processed: list[list[str]],
    k: int,
    rule: MergeRule,
    label: str,
    retriever: str,
    ignored: Callable[[str], str | None] = lambda _: None,
) -> CandidateBatch:
    """Search for every distinct sub-query of a batch once, and merge those of each query.

    Args:
        find: searches for distinct queries, each with a letter or a digit.
        processed: for each query its sub-queries.
        k: length of the lists after merging.
        rule: see the module.
        label: the names of the signals begin with it.
        retriever: its registry name, for the warning if a query finds nothing.
        ignored: why the index has none of a query's words, and which setting keeps them; None where it may have some.
    """
    unrepeated = [list(dict.fromkeys(subqueries)) for subqueries in processed]  # a repeated sub-query counts once
    flat = [subquery for subqueries in unrepeated for subquery in subqueries]
    distinct = {query: place for place, query in enumerate(dict.fromkeys(q for q in flat if not has_no_words(q)))}
    hits = find(list(distinct)) if distinct else Hits.from_lists([])
    # sub-queries without words share one empty list after those that were searched
    hits = Hits(np.append(hits.offsets, hits.offsets[-1]), hits.rows, hits.scores, hits.signals)
    places = np.fromiter((distinct.get(query, len(distinct)) for query in flat), np.int64, len(flat))
    counts = np.fromiter(map(len, unrepeated), np.int64, len(unrepeated))
    batch = merge_subqueries(hits, places, counts, rule, label, k)
    empty = np.flatnonzero(np.diff(batch.offsets) == 0)
    if len(empty) and warns_of_empty():
        reasons = _why_empty([unrepeated[number] for number in empty.tolist()], ignored)
        add_note(f"{retriever} found nothing for {len(empty)} of {len(processed)} queries: {reasons}")
    return batch


def _why_empty(processed: list[list[str]], ignored: Callable[[str], str | None]) -> str:
    """Count why queries, each with its sub-queries, found nothing, with the first query of each reason."""
    counted: dict[str, tuple[int, str]] = {}
    for subqueries in processed:
        asked = [subquery for subquery in subqueries if not has_no_words(subquery)]
        notes = list(map(ignored, asked))
        reason = "empty or without a letter or digit"
        if None in notes:
            reason = "no item that may be found matches"
        elif notes:
            reason = str(notes[0])
        count, first = counted.get(reason, (0, repr((asked or subqueries)[0][:60]) if subqueries else "no sub-queries"))
        counted[reason] = count + 1, first
    return "; ".join(f"{count}: {reason} (the first: {first})" for reason, (count, first) in counted.items())


def merge_subqueries(
    hits: Hits, places: Rows, counts: NDArray[np.integer], rule: MergeRule, label: str, k: int
) -> CandidateBatch:
    """Merge the hits of sub-queries into one list per query, cut to the best k.

    Args:
        hits: one list per distinct sub-query.
        places: per sub-query of the batch, in order of queries, its list in ``hits``.
        counts: per query, how many sub-queries it has.
        rule: see the module.
        label: of the retriever; begins its signals.
        k: length of the lists.
    """
    lengths = np.diff(hits.offsets)[places]
    offsets = offsets_of(lengths)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    positions = np.repeat(hits.offsets[:-1][places], lengths) + within
    rows, scores = hits.rows[positions], hits.scores[positions]
    if counts.size == 0 or counts.max() <= 1:  # one list each: nothing to merge
        list_offsets = np.concatenate([[0], offsets[np.cumsum(counts)]]).astype(np.int64)
        signals = {f"{label}.{key}": column[positions] for key, column in hits.signals.items()}
        batch = CandidateBatch(list_offsets, rows, scores, np.zeros(len(rows), np.int32), signals)
        return _signed(batch.head(k), label)
    query_of = np.repeat(np.repeat(np.arange(len(counts)), counts), lengths)
    first = np.cumsum(counts) - counts
    subquery = np.repeat(np.arange(len(places)) - np.repeat(first, counts), lengths).astype(np.int32)
    value = _values(rule, scores, within, subquery, np.repeat(np.repeat(counts, counts), lengths))
    width = int(rows.max()) + 1 if len(rows) else 1
    key = query_of * width + rows
    order = np.lexsort((subquery, -value, key))
    sorted_key = key[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])) if len(order) else order
    best = order[begins]
    merged = np.add.reduceat(value[order], begins) if rule == "rrf" and len(begins) else value[best]
    batch = CandidateBatch(
        offsets_of(np.bincount(query_of[best], minlength=len(counts))),
        rows[best],
        merged,
        subquery[best],
        _subquery_signals(label, key, key[best], subquery, scores, int(counts.max()))
        | {f"{label}.{name}": column[positions][best] for name, column in hits.signals.items()},
    )
    return _signed(batch.with_scores(merged, {}).head(k), label)


def _values(
    rule: MergeRule, scores: Scores, within: Rows, subquery: NDArray[np.int32], n_subqueries: NDArray[np.integer]
) -> Scores:
    """What each hit counts, ``[hits]``, given its place in its list, from 0, its sub-query, and how many its query has."""
    if rule == "max":
        return scores
    if rule == "rrf":
        value = np.reciprocal(RRF_K + 1.0 + within.astype(np.float64))
    else:
        turn = within * n_subqueries + subquery
        if rule == "alternate":
            turn = np.where(subquery == 0, 2 * within, 2 * (within * (n_subqueries - 1) + subquery - 1) + 1)
        value = np.reciprocal(1.0 + turn.astype(np.float64))
    return np.where(n_subqueries == 1, scores, value)  # with one there is nothing to merge, whatever the other queries have


def _subquery_signals(
    label: str, key: Rows, kept: Rows, subquery: NDArray[np.int32], scores: Scores, n_subqueries: int
) -> dict[str, Scores]:
    """Per sub-query, the engine's own score of every candidate that it found (``kept`` is ascending)."""
    columns = np.full((n_subqueries, len(kept)), np.nan)
    columns[subquery, np.searchsorted(kept, key)] = scores
    return {f"{label}[{number}].score": column for number, column in enumerate(columns)}


def _signed(batch: CandidateBatch, label: str) -> CandidateBatch:
    signals = {f"{label}.score": batch.scores, f"{label}.rank": batch.ranks.astype(np.float64)} | batch.signals
    return CandidateBatch(batch.offsets, batch.rows, batch.scores, batch.subquery, signals)
