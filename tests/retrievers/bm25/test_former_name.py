"""The engine's former name, bm25s: what was stored, written or imported under it works and gives the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import nlp_retrieval
from nlp_retrieval import Bm25Retriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.index.generation import open_generation
from tests.hashed_words import items_of

ITEMS = items_of(["The Old Tower is by a red fox", "a fox and a dog of Red Hill", "a boat"], ["Red Hill", "Old Tower", "Boat"])


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_an_index_of_one_name_is_found_by_the_other(tmp_path: Path) -> None:
    assert Searcher(["bm25s"]).index(ITEMS, tmp_path / "former").built == ["bm25s"]
    assert Searcher(["bm25"]).index(ITEMS, tmp_path / "now").built == ["bm25"]
    former, now = (open_generation(tmp_path / name).manifest.retrievers[0] for name in ("former", "now"))
    assert former.fingerprint == now.fingerprint
    assert (former.config["name"], now.config["name"]) == ("bm25s", "bm25")
    assert files_of(tmp_path / "former" / former.segments[0].folder) == files_of(tmp_path / "now" / now.segments[0].folder)
    report = Searcher([Bm25Retriever(k1=2.0), LinkGraphRetriever(["bm25"])]).index(ITEMS, tmp_path / "former")
    assert (report.built, report.found) == (["link_graph"], ["bm25"])
    assert Searcher(["bm25s", LinkGraphRetriever(["bm25s"])]).index(ITEMS, tmp_path / "former").built == []


def test_signals_carry_the_name_that_was_given(tmp_path: Path) -> None:
    Searcher(["bm25s"]).index(ITEMS, tmp_path)
    for searcher, name in ((Searcher.open(tmp_path), "bm25s"), (Searcher(["bm25s"]), "bm25s"), (Searcher(["bm25"]), "bm25")):
        searcher.index(ITEMS, tmp_path)
        assert set(searcher.search("fox")[0][0].signals) == {f"{name}.score", f"{name}.rank"}


def test_the_former_class_warns_and_answers() -> None:
    with pytest.warns(DeprecationWarning, match="Bm25sRetriever is now called Bm25Retriever"):
        former = nlp_retrieval.Bm25sRetriever  # type: ignore[attr-defined]
    assert former(k1=1.2).config == Bm25Retriever(k1=1.2).config | {"name": "bm25s"}
