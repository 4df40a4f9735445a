"""What tells the code of components apart: an index or a result of other code is none of this component's."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from conformance.registering import registered_parts

from core.engines import SplitAt, TermCount
from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    KeywordExpansion,
    LinkGraphRetriever,
    RawScore,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.benchmarks.stage_store import identity_of
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.components.code import code_of
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError

PACKAGE = {
    "__init__.py": "",
    "words.py": "from . import shared\nfrom .splitting import split\nfrom nlp_retrieval import BaseUserQueryProcessor\n"
    "class Words(BaseUserQueryProcessor):\n    name = 'own-words'\n"
    "    def process(self, nlqs):\n        return [split(nlq) for nlq in nlqs]\n",
    "splitting.py": "def split(text):\n    from own.lazily.helper import SEPARATOR\n    return text.split(SEPARATOR)\n",
    "shared.py": "import json\nUNUSED = 1\n",
    "lazily/__init__.py": "",
    "lazily/helper.py": "SEPARATOR = ' '\n",
    "elsewhere.py": "NOT_IMPORTED = 1\n",
}
TELL = "import json; from own.words import Words; print(json.dumps(Words().identity))"


def told(folder: Path, script: str = TELL) -> str:
    """What a process says that imports a package from this folder."""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(folder: Path) -> Path:
    for name, text in PACKAGE.items():
        file = folder / "own" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a process says of the package as it was written."""
    return told(written(tmp_path_factory.mktemp("package")))


def test_the_code_is_the_same_in_every_process_and_every_folder(unchanged: str, tmp_path: Path) -> None:
    assert told(written(tmp_path)) == told(tmp_path) == unchanged
    assert '"class": "own.words:Words"' in unchanged


@pytest.mark.parametrize("file", list(PACKAGE))
def test_a_line_of_anything_that_it_imports_from_its_package_changes_the_identity(
    file: str, unchanged: str, tmp_path: Path
) -> None:
    with (written(tmp_path) / "own" / file).open("a") as opened:
        opened.write("CHANGED = 1\n")
    assert (told(tmp_path) == unchanged) == (file == "elsewhere.py"), "which it does not import"


def test_the_code_is_that_which_was_imported_and_not_what_is_in_the_file_now(unchanged: str, tmp_path: Path) -> None:
    edited = TELL.replace("; print", "; open('own/splitting.py', 'a').write('CHANGED = 1'); print")
    assert told(written(tmp_path), edited) == unchanged


def test_a_script_is_told_by_its_text_and_by_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("LENGTH = 3\n")
    script = tmp_path / "script.py"
    script.write_text(
        "from beside import LENGTH\nfrom nlp_retrieval import Bm25Retriever\n"
        "class Mine(Bm25Retriever):\n    name = 'mine'\nprint(Mine().identity)\n"
    )

    def run() -> str:
        return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout

    before = run()
    (tmp_path / "beside.py").write_text("LENGTH = 4\n")
    assert run() != before


def in_a_cell(text: str, **names: object) -> type[Component]:
    """A class as a notebook makes it: in no file."""
    scope: dict[str, object] = {"__name__": "__main__", "SplitAt": SplitAt, **names}
    exec(textwrap.dedent(text), scope)
    made = scope["Mine"]
    assert isinstance(made, type)
    return made


CELL = """
LIMIT = 2
def helper(text):
    return text.split()[:LIMIT]
class Mine(SplitAt):
    name = "mine"
    def process(self, nlqs):
        return [helper(nlq) for nlq in nlqs]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 2", "LIMIT = 3"),
        ("split()", "split(',')"),
        ("helper(nlq) for", "helper(nlq)[::-1] for"),
        ('"mine"', '"other"'),
    ],
)
def test_a_class_of_a_notebook_is_told_by_what_its_functions_do_and_name(old: str, new: str) -> None:
    assert code_of(in_a_cell(CELL)) == code_of(in_a_cell(CELL)), "a cell that is run again"
    assert code_of(in_a_cell(CELL.replace(old, new))) != code_of(in_a_cell(CELL))


def closing_over(word: str) -> type[SplitAt]:
    class Closing(SplitAt):
        name = "closing"

        def process(self, nlqs: list[str]) -> list[list[str]]:
            return [nlq.split(word) for nlq in nlqs]

    return Closing


def test_classes_of_one_text_differ_by_what_they_close_over() -> None:
    assert code_of(closing_over("a")) == code_of(closing_over("a"))
    assert code_of(closing_over("a")) != code_of(closing_over("b"))


def test_using_a_class_changes_nothing_in_its_code(tmp_path: Path) -> None:
    class Counting(TermCount):
        name = "counting"

    before = code_of(Counting)
    Searcher([Counting()]).index([SearchableItem(item_id="a", content="x")], tmp_path)
    assert code_of(Counting) == before


def test_our_own_components_have_no_code_in_their_identity() -> None:
    """What they write is told by their ``format_version``, so that an index outlives a release."""
    components = [Bm25Retriever(), KeywordExpansion({"a": ["b"]}), LinkGraphRetriever([Bm25Retriever()], encoder=None)]
    for component in components:
        assert code_of(type(component)) is None
        assert '"code"' not in str(component.identity)


def test_a_part_in_a_list_or_a_mapping_is_told_by_its_code_too() -> None:
    class Holding(BaseRetriever):
        name = "holding"

        def __init__(self, parts: list[BaseRetriever], named: dict[str, BaseRetriever]) -> None:
            self.parts_ = parts

        build = load = search_batch = None

    Holding.__abstractmethods__ = frozenset()
    identity = Holding([TermCount()], {"one": TermCount()}).identity
    assert "core.engines:TermCount" in str(identity["parts"])
    assert "core.engines:TermCount" in str(identity["named"])


class OwnBuild(Bm25Retriever):
    """A subclass that builds something else, and forgot to take a name of its own."""


class OwnBuildNamed(Bm25Retriever):
    name = "own-build"


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
            module = ModuleType("editing")
            edited = type("Edited", (Bm25Retriever,), {"name": "edited", "version": version, "__module__": "editing"})
            module.Edited = edited  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "editing", module)
            Searcher([edited(), edited(language="de"), Bm25Retriever()]).index(items, tmp_path / "index")
        assert Searcher.open(tmp_path / "index", trust=True).retrievers == {
            "edited": edited(),
            "edited-2": edited(language="de"),
            "bm25": Bm25Retriever(),
        }


def test_one_name_is_one_class() -> None:
    with pytest.raises(
        ConfigurationError, match=r"core\.components\.test_code:OwnBuild is called 'bm25', as nlp_retrieval\.retrievers"
    ):
        Searcher([OwnBuild()])
    with pytest.raises(ConfigurationError, match="give the class a name of its own"):
        OwnBuild().index([SearchableItem(item_id="a", content="x")], "never-written")
    first, second = type("Same", (TermCount,), {"name": "same"}), type("Other", (TermCount,), {"name": "same"})
    with pytest.raises(ConfigurationError, match=r"Other is called 'same', as .*:Same is"):
        Searcher([first(), second()])
    Searcher([OwnBuildNamed(), Bm25Retriever(), FaissRetriever(), TermCount()])


class OwnFusion(RawScore):
    name = "own-fusion"


def test_the_code_of_every_part_is_in_the_fingerprint_of_a_searcher_and_in_the_key_of_a_stage() -> None:
    fused = Searcher([Bm25Retriever(), TermCount()], fusion=OwnFusion())
    changed = type("OwnFusion", (RawScore,), {"name": "own-fusion", "__module__": "elsewhere"})
    other = Searcher([Bm25Retriever(), TermCount()], fusion=changed())
    assert fused.config == other.config
    assert fused.fingerprint != other.fingerprint
    assert identity_of(fused) != identity_of(other)
