"""What tells the code of components apart: an index or a result of other code is none of this component's."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from conformance.registering import registered_parts

from core.engines import SplitAt
from nlp_retrieval import (
    Bm25Retriever,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.components.component import Component, code_of
from nlp_retrieval.errors import IndexMismatchError

MODULE = """
from nlp_retrieval.core import BaseUserQueryProcessor
SEPARATOR = " "
class Words(BaseUserQueryProcessor):
    name = "own-words"
    def process(self, nlqs):
        return [nlq.split(SEPARATOR) for nlq in nlqs]
"""
TELL = "import json; from own_words import Words; print(json.dumps(Words().identity))"


def told(folder: Path, text: str = MODULE, script: str = TELL) -> str:
    """What a process says that imports a module with this text."""
    folder.mkdir(exist_ok=True)
    (folder / "own_words.py").write_text(text)
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_code_is_that_of_the_module_as_it_was_imported(tmp_path: Path) -> None:
    before = told(tmp_path / "one")
    assert told(tmp_path / "two") == before
    assert '"class": "own_words:Words"' in before
    assert told(tmp_path / "one", MODULE + "CHANGED = 1\n") != before
    assert told(tmp_path / "one", script=TELL.replace("; print", "; open('own_words.py', 'a').write('X = 1'); print")) == before


CELL = """
class Mine(SplitAt):
    name = "mine"
    def process(self, nlqs):
        return [nlq.split() for nlq in nlqs]
"""


def in_a_cell(text: str) -> type[Component]:
    """A class as a notebook makes it: in no file."""
    scope: dict[str, object] = {"__name__": "__main__", "SplitAt": SplitAt}
    exec(text, scope)
    made = scope["Mine"]
    assert isinstance(made, type)
    return made


def test_a_class_of_a_notebook_is_told_by_what_its_functions_do() -> None:
    assert code_of(in_a_cell(CELL)) == code_of(in_a_cell(CELL)), "a cell that is run again"
    assert code_of(in_a_cell(CELL.replace("split()", "split(',')"))) != code_of(in_a_cell(CELL))


class OwnBuild(Bm25Retriever):
    """A subclass that builds something else, and forgot to take a name of its own."""


def test_a_subclass_does_not_search_the_index_of_its_base(tmp_path: Path) -> None:
    items = [SearchableItem(item_id="a", content="red fox")]
    Searcher([Bm25Retriever()]).index(items, tmp_path)
    with pytest.raises(IndexMismatchError, match="OwnBuild"):
        OwnBuild().retrieve([["fox"]], tmp_path, 1)


def test_a_component_that_was_edited_and_indexed_again_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [SearchableItem(item_id="a", content="red fox"), SearchableItem(item_id="b", content="whale")]
    with registered_parts(tmp_path / "package", retrievers={"edited": "editing:Edited"}):
        for version in range(3):
            text = "from nlp_retrieval import Bm25Retriever\nclass Edited(Bm25Retriever):\n    name = 'edited'\n"
            (tmp_path / "package" / "editing.py").write_text(f"{text}VERSION = {version}\n")
            monkeypatch.delitem(sys.modules, "editing", raising=False)
            importlib.invalidate_caches()
            edited = importlib.import_module("editing").Edited
            searcher = Searcher([edited(), edited(language="de"), Bm25Retriever()])
            report = searcher.index(items, tmp_path / "index")
        assert report.fingerprints == {record.fingerprint for record in searcher.index_records()[:2]}
        opened = Searcher.open(tmp_path / "index", trust=True)
        assert list(opened.retrievers.values()) == [edited(), edited(language="de"), Bm25Retriever()]
