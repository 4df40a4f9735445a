"""Titles in queries: the same rules as for texts, from files that are mapped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from text.test_surfaces import TEXT, TITLES

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.retrievers.link_graph.tables import TitleTable
from nlp_retrieval.text.surfaces import Surface, SurfaceMatcher, surface_of


def surfaces(titles: Iterable[str]) -> list[tuple[int, Surface]]:
    return [(row, surface) for row, title in enumerate(titles) if (surface := surface_of(title, 1)) is not None]


def written(titles: Iterable[str], folder: Path) -> TitleTable:
    TitleTable.of(surfaces(titles)).write(folder)
    return TitleTable.open_all([SegmentFolder(folder, 0, 1_000)])


def found(table: TitleTable, query: str) -> list[tuple[list[int], str]]:
    return [(mention.rows.tolist(), query[mention.start : mention.end]) for mention in table.find(query)]


def test_a_query_without_capitals_needs_two_words_or_six_characters(tmp_path: Path) -> None:
    table = written(["Heat", "Kubrick", "Barry Lyndon", "Paths of Glory", "iPod", "The Who", "東京"], tmp_path)
    assert found(table, "was barry lyndon by kubrick better than heat on an ipod in paths of glory (東京) for the who") == [
        ([2], "barry lyndon"),
        ([1], "kubrick"),
        ([4], "ipod"),
        ([3], "paths of glory"),
        ([6], "東京"),
        ([5], "the who"),
    ]
    assert found(table, "Was barry lyndon by kubrick better than Heat?") == [([0], "Heat")]


@given(
    st.lists(TEXT, max_size=4),
    TITLES,
    TITLES,
    st.lists(st.booleans(), min_size=20, max_size=20),
    st.sampled_from([" ", "-", ", "]),
)
def test_tables_of_several_segments_name_what_one_table_of_the_live_titles_names(
    texts: list[list[str]], first: list[str], second: list[str], live: list[bool], between: str
) -> None:
    kept = np.array(live[: len(second)], bool)
    joined = TitleTable.joined([(TitleTable.of(surfaces(first)), 0, None), (TitleTable.of(surfaces(second)), len(first), kept)])
    wanted = [*surfaces(first), *((row + len(first), surface) for row, surface in surfaces(second) if kept[row])]
    matcher, read = SurfaceMatcher(wanted), [between.join(parts) for parts in texts]
    expected = [
        sorted(matcher.rows[matcher.offsets[number] : matcher.offsets[number + 1]].tolist() for number in found)
        for found in ({number for number, _, _ in matcher.mentions(text)} for text in read)
    ]
    assert [sorted(joined.table.rows_of(number).tolist() for number in found) for found in joined.named_in(read)] == expected
