"""Tables from texts to rows: joined over segments they are those of the items that are there."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.tables import HashedRows, hash_of

PAIRS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 5)), max_size=20)


def told(table: HashedRows) -> dict[int, list[int]]:
    return {key: table.rows_of(number).tolist() for number, key in enumerate(table.hashes.tolist())}


def by_hand(pairs: list[tuple[str, int]]) -> dict[int, list[int]]:
    return {hash_of(key): sorted({row for other, row in pairs if other == key}) for key in {key for key, _ in pairs}}


@given(PAIRS)
def test_rows_by_hash_are_rows_by_key(pairs: list[tuple[str, int]]) -> None:
    table = HashedRows.of(pairs)
    for key, number in zip("abcdef", table.find(np.array([hash_of(key) for key in "abcdef"], np.uint64)), strict=True):
        expected = sorted({row for other, row in pairs if other == key})
        assert (table.rows_of(number).tolist() if number >= 0 else []) == expected


@given(PAIRS, PAIRS, st.lists(st.booleans(), min_size=6, max_size=6), st.one_of(st.none(), st.sets(st.sampled_from("abcdef"))))
def test_tables_are_joined_without_deleted_rows(
    one: list[tuple[str, int]], other: list[tuple[str, int]], live: list[bool], keys: set[str] | None
) -> None:
    placed = [(HashedRows.of(one), 0, None), (HashedRows.of(other), 6, np.array(live))]
    wanted = None if keys is None else np.array(sorted(map(hash_of, keys)), np.uint64)
    pairs = [*one, *((key, row + 6) for key, row in other if live[row])]
    assert told(HashedRows.joined(placed, wanted)) == by_hand([pair for pair in pairs if keys is None or pair[0] in keys])
