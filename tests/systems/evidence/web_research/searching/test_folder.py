"""A folder is searched by the words of its pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.errors import QueryError, RetrievalWarning, SourceError
from nlp_retrieval.systems.evidence.web_research.searching import FolderSearch, find_pages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "lakes.example"
    site.mkdir()
    (site / "index.html").write_text("<html><title>Lakes</title><p>The lake freezes over in January.</p></html>")
    (site / "bridge.txt").write_text("Ferries were slow. " * 40 + "\n\nThe bridge over the strait was opened in 1932.")
    return tmp_path


def test_pages_are_found_by_their_words_with_the_passage_that_speaks_of_them(folder: Path) -> None:
    found = FolderSearch(folder).search("When was the bridge opened?", 5)
    assert [one.url for one in found] == ["https://lakes.example/bridge.txt"]
    assert found[0].snippet.endswith("The bridge over the strait was opened in 1932.")
    (lake,) = FolderSearch(folder).search("lake January")
    assert (lake.url, lake.title) == ("https://lakes.example/", "Lakes")


def test_at_most_k_are_found_and_none_for_nothing(folder: Path) -> None:
    one = FolderSearch(folder)
    assert len(find_pages(one, "lake bridge", 1)) == 1
    assert find_pages(one, "  ") == []
    with pytest.raises(QueryError, match="at least 1"):
        find_pages(one, "lake", 0)


def test_a_page_that_cannot_be_read_is_left_out_with_a_warning(folder: Path) -> None:
    (folder / "lakes.example" / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.warns(RetrievalWarning, match="pages not searched"):
        found = FolderSearch(folder).search("lake")
    assert len(found) == 1


def test_an_empty_folder_finds_nothing_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert FolderSearch(tmp_path).search("lake") == []
    with pytest.raises(SourceError, match="not a folder"):
        FolderSearch(tmp_path / "nowhere").search("lake")


def test_a_folder_whose_pages_have_no_address_says_how_to_give_them_one(tmp_path: Path) -> None:
    (tmp_path / "lake.html").write_text("<p>The lake freezes.</p>")
    with pytest.raises(SourceError, match=r"none of the 1 readable files .* manifest\.csv.*a\.example/b\.html"):
        FolderSearch(tmp_path).search("lake")
    (tmp_path / "manifest.csv").write_text("file,url\nlake.html,https://a.example/\n")
    assert [one.url for one in FolderSearch(tmp_path).search("lake")] == ["https://a.example/"]
