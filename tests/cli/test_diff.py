"""``nlp-retrieval diff``: two rankings of a query side by side."""

from __future__ import annotations

import io

from evaluation.test_rankings import Hit, lists_of
from rich.console import Console

from nlp_retrieval.evaluation.ranking_difference import QueryDifference, difference
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.terminal import difference_view


def printed(found: QueryDifference) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    Console(file=file, width=80, highlight=False).print(difference_view(found))
    file.flush()
    return file.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined, no-any-return]


def small() -> RunLists:
    one: list[Hit] = [
        ("a", 3.0, {"bm25.score": 9.0, "bm25.rank": 1.0}),
        ("b", 2.0, {"bm25.score": 8.0, "bm25.rank": 2.0}),
        ("c", 1.0, {"bm25.score": 7.0, "bm25.rank": 3.0}),
    ]
    other: list[Hit] = [
        ("d", 3.0, {"bm25.score": 3.0, "bm25.rank": 9.0, "overlap.score": 0.9}),
        ("a", 2.0, {"bm25.score": 9.0, "bm25.rank": 1.0, "overlap.score": 0.5}),
        ("b", 1.0, {"bm25.score": 8.0, "bm25.rank": 2.0, "overlap.score": 0.1}),
    ]
    return lists_of({"one": [one], "other": [other]}, {"q0": {"d": 1, "gold alone": 1}}, 1)


def test_what_entered_left_and_moved_is_said_in_words_at_any_width() -> None:
    text = printed(difference(small(), "one", "other", "q0", 2))
    assert max(map(len, text.splitlines())) <= 80
    said = " ".join(text.split())
    assert "q0: what is q0?" in said
    assert "1 | aa | d [gold] entered" in said
    assert "2 | bb left, rank 3 there | aa down 1, from 1" in said
    assert "| recall@2 0.000 | recall@2 0.500" in said
    assert "Gold that neither has in its first 2: Its title (gold alone)" in said
    assert "d [gold]: not in the list to rank 1" in said
    assert "overlap.score: not in the list -> 0.9, rank 1" in said
    assert "aa (a): rank 1 to rank 2 overlap.score: no such signal -> 0.5, rank 2" in said
    assert "bb (b): rank 2 to rank 3 (beyond 2) overlap.score: no such signal -> 0.1, rank 3" in said
    assert "bm25.score: 9, rank 1" not in said, "a signal that ranks a hit as before did not move"
