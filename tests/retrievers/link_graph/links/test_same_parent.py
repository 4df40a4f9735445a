"""SameParent: neighbouring passages of one document."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.loaders.chunking import ChunkingLoader
from nlp_retrieval.loaders.tables import JsonlLoader
from nlp_retrieval.retrievers.link_graph.extractors import SameParent
from retrievers.link_graph.corpora import approximately, links_of, passage

PARENTS = st.sampled_from(["a", "b", None, 1, "1", True, 1.5, ["a"], {"a": 1}, "é"])


def chunk(parent: object, row: int) -> SearchableItem:
    return passage(None, "text", str(row), **({} if parent is None else {"parent_id": parent}))


@given(st.lists(PARENTS, min_size=1, max_size=14), st.integers(1, 4))
def test_passages_of_one_parent_are_linked_up_to_the_window(parents: list[object], window: int) -> None:
    members = defaultdict(list)
    for row, parent in enumerate(parents):
        if parent is not None:
            members[type(parent), repr(parent)].append(row)
    expected = {
        (str(rows[place]), str(rows[place + distance])): 1 / distance
        for rows in members.values()
        for distance in range(1, window + 1)
        for place in range(len(rows) - distance)
    }
    items = [chunk(parent, row) for row, parent in enumerate(parents)]
    assert links_of(SameParent(window=window), items) == approximately(expected)


def test_links_grow_with_the_passages_and_not_with_their_pairs() -> None:
    items = [chunk("a", row) for row in range(2_000)]
    assert len(links_of(SameParent(window=3), items)) == 3 * 2_000 - 6


def test_what_the_chunking_loader_cuts_is_linked(tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    source.write_text('{"id": "x", "text": "a b c d e f"}\n{"id": "y", "text": "a b"}\n', "utf-8")
    items = ChunkingLoader(JsonlLoader(source, content_field="text"), size=2, overlap=0).load()
    assert links_of(SameParent(), items) == {("x#0", "x#1"): 1.0, ("x#1", "x#2"): 1.0, ("x#0", "x#2"): 0.5}


def test_the_name_of_the_parent_is_a_parameter_and_no_sentence_shows_a_link() -> None:
    items = [passage(None, "One. Two.", str(row), document="d") for row in range(2)]
    assert links_of(SameParent(), items) == {}
    assert links_of(SameParent(parent="document"), items) == {("0", "1"): 1.0}
    assert SameParent(parent="document").evidence(*items) is None


@pytest.mark.parametrize("window", [0, 101, None, 1.5])
def test_a_window_that_is_none_or_would_link_all_pairs_is_refused(window: object) -> None:
    with pytest.raises(ConfigurationError, match="SameParent: window="):
        SameParent(window=window)  # type: ignore[arg-type]
