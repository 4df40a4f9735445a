"""Interleaving several ranked lists of a query: in turn, each document once, each list at most its quota."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch, offsets_of


def interleave(batch: CandidateBatch, counts: list[int], k: int, quota: int | None) -> CandidateBatch:
    """Interleave the lists of every query by rank.

    A document that is taken already gives its slot to the next of the same list. With a quota, each list gives at most
    that many. Without, each gives its even share (k divided by the number of lists, rounded up), and what short lists
    leave free is filled by the others, again in turn.

    Args:
        batch: the lists of all queries, one after another.
        counts: per query, how many lists it has.
        k: length of the result.
        quota: at most this many from each list; None for even shares.

    Returns:
        One list per query. ``score`` is 1 / rank, so that it falls strictly; the scores that led there are signals.
    """
    rows, bounds = batch.rows.tolist(), batch.offsets.tolist()
    taken_by_query: list[list[int]] = []
    owners: list[list[int]] = []
    first = 0
    for count in counts:
        lists = [range(bounds[number], bounds[number + 1]) for number in range(first, first + count)]
        share = quota if quota is not None else -(-k // max(count, 1))
        taken, owner = _take_in_turn(rows, lists, k, share, fill=quota is None)
        taken_by_query.append(taken)
        owners.append(owner)
        first += count
    positions = np.array([position for taken in taken_by_query for position in taken], np.int64)
    picked = batch.take(positions, offsets_of([len(taken) for taken in taken_by_query]))
    return CandidateBatch(
        picked.offsets,
        picked.rows,
        np.reciprocal(picked.ranks.astype(np.float64)),
        np.array([number for owner in owners for number in owner], np.int32),
        picked.signals,
    )


def _take_in_turn(rows: list[int], lists: list[range], k: int, share: int, *, fill: bool) -> tuple[list[int], list[int]]:
    """Positions taken, and the list that each came from."""
    taken: list[int] = []
    owner: list[int] = []
    seen: set[int] = set()
    cursor = [positions.start for positions in lists]
    given = [0] * len(lists)
    limits = [share, len(rows)] if fill else [share]
    for limit in limits:
        moved = True
        while moved and len(taken) < k:
            moved = False
            for number, positions in enumerate(lists):
                while cursor[number] < positions.stop and rows[cursor[number]] in seen:
                    cursor[number] += 1
                if cursor[number] == positions.stop or given[number] >= limit or len(taken) == k:
                    continue
                seen.add(rows[cursor[number]])
                taken.append(cursor[number])
                owner.append(number)
                given[number] += 1
                moved = True
    return taken, owner
