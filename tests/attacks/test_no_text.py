"""Half a surrogate pair, bytes that are no text and paths that cannot be written down: refused in words, where they come in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.commands import COMMAND

from nlp_retrieval import (
    Bm25Retriever,
    OverlapReranker,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.errors import ConfigurationError, QueryError

HALVES = ["\ud800", "fox \udcff", "\udfff\ud83d"]
ITEMS = [SearchableItem(item_id=str(n), content=text, metadata={"kind": "x"}) for n, text in enumerate(["red fox", "blue dog"])]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    """Two items."""
    made = Searcher([Bm25Retriever()])
    made.index(ITEMS, tmp_path / "index")
    return made


def test_half_a_pair_in_a_query_is_refused_by_every_way_to_search(
    searcher: Searcher, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    ways: dict[str, Callable[[str], object]] = {
        "search": lambda half: searcher.search(["fox", half]),
        "retrieve": lambda half: Bm25Retriever().retrieve([["fox"], ["fox", half]], tmp_path / "index", 3),
        "rerank": lambda half: OverlapReranker().rerank([half], [[]], 3),
        "explain": lambda half: searcher.explain(half, []),
    }
    for way, attempt in ways.items():
        for half in HALVES:
            with subtests.test(way=way, half=half), pytest.raises(QueryError, match="holds half of a surrogate pair"):
                attempt(half)


def test_half_a_pair_in_the_path_of_an_index_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="an index directory is named by its path"):
        Searcher.open("index\ud800")


def test_half_a_pair_in_a_filter_is_refused(searcher: Searcher, subtests: pytest.Subtests) -> None:
    for where in [
        {"kind": "\ud800"},
        {"\ud800": "x"},
        {"kind": {"gt": "\udcff"}},
        {"kind": {"in": ["x", "\udcff"]}},
        {"not": {"kind": "\ud800"}},
    ]:
        with subtests.test(where=where), pytest.raises(QueryError, match="holds half of a surrogate pair"):
            searcher.search("fox", where=where)


def test_bytes_that_are_no_text_on_a_command_line_are_shown(tmp_path: Path) -> None:
    command = [COMMAND.encode(), b"search", b"index", b"caf\xe9"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(rb"error: argument 3 is not text in utf-8: b'caf\xe9'")
    assert done.stderr.count(b"\n") == 1
    assert not list(tmp_path.iterdir())
