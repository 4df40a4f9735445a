"""What IPython shows of this package: completion, help, and objects at the end of a cell."""

from __future__ import annotations

import contextlib
import io

import pytest
from IPython.core.interactiveshell import InteractiveShell

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.core.components.component import parameters_of

from .shells import own_shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> InteractiveShell:
    made = own_shell(tmp_path_factory.mktemp("ipython"))
    made.run_cell("from nlp_retrieval import *").raise_error()
    return made


def help_of(shell: InteractiveShell, name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shell.run_cell(f"{name}?")
    return printed.getvalue()


ITEM = SearchableItem(item_id="a", content="red fox", metadata={"title": "Fox"})


def test_help_of_a_component_says_what_each_parameter_does(shell):
    for name in ("Searcher", "Bm25Retriever", "FaissRetriever", "OverlapReranker", "LinkGraphRetriever"):
        told = help_of(shell, name)
        assert "Init docstring" not in told
        for parameter in parameters_of(shell.user_ns[name]):
            assert told.count(f"\n    {parameter}: ") == 2, "in the signature and in the documentation"
    assert "trust: let the index use" in help_of(shell, "Searcher.open")
    shell.run_cell("made = Searcher(['bm25'])")
    assert "retrievers: at least one" in help_of(shell, "made")
    assert "k: at most this many" in help_of(shell, "made.search")


def test_a_cell_ends_with_what_was_found(shell, tmp_path):
    shell.user_ns |= {"items": [ITEM], "path": tmp_path / "index"}
    shell.run_cell("searcher = Searcher(['bm25'])\nreport = searcher.index(items, path)").raise_error()
    assert shell.display_formatter.format(shell.user_ns["searcher"].search("fox"))[0]["text/plain"] == "<1 query: 1 results>"
    assert (
        shell.display_formatter.format(shell.user_ns["searcher"])[0]["text/plain"] == "Searcher(retrievers=[Bm25Retriever()])"
    )
    assert shell.display_formatter.format(shell.user_ns["report"])[0]["text/plain"].startswith("IndexReport(path=")
    assert isinstance(Searcher.open(tmp_path / "index"), Searcher)
