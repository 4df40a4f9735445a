"""The rules of a retriever's index: built once, found again, plain files, and untouched by what only searching needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.index.generation import verify_index
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import RetrievalError
from nlp_retrieval.testing.other_values import others_of
from nlp_retrieval.testing.retriever_base import RetrieverChecks
from nlp_retrieval.testing.verdict import broken, difference, ids_of, shown, without_warnings

_CODE = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth")
_PICKLE_PROTOCOLS = range(2, 6)


class IndexRules(RetrieverChecks):
    """Rules of building, keeping and opening an index."""

    def test_an_index_is_found_again_by_a_new_object(self) -> None:
        fresh = self.make()
        found = self.ask([[query] for query in self.queries], retriever=fresh)
        self._compare("a new object that opens the index answers as the one before", self.ask_each(), found)

    def test_indexing_twice_is_free(self) -> None:
        path = self.index_into("main")
        before = _state(path)
        with without_warnings():
            report = self.make().index(self.items, path)
        if report.built:
            broken("indexing the same items again builds nothing", self.opened, f"built {report.built}")
        self._unchanged("indexing the same items again changes no file", before, _state(path))

    def test_searching_changes_no_file_and_the_index_verifies(self) -> None:
        path = self.index_into("main")
        before = _state(path)
        self.ask_each()
        self._unchanged("searching changes no file of an index", before, _state(path))
        if damaged := verify_index(path):
            broken("the files of an index are what their checksums say", self.opened, "; ".join(damaged))

    def test_two_builds_of_the_same_items_answer_alike(self) -> None:
        path = self.index_into("second build")
        with without_warnings():
            found = self.make().retrieve([[query] for query in self.queries], path, len(self.items))
        self._compare("two indexes of the same items give the same answers", self.ask_each(), found)

    def test_search_parameters_change_no_index_and_the_others_do(self) -> None:
        made, path = self.make(), self.index_into("main")
        identity = canonical_json(made.identity)
        for parameter, other in others_of(made, self.other_values()):
            if other is None:
                broken(
                    "every parameter can be checked: give another value in other_values() where its type hint tells none",
                    made,
                    f"no other value is known for {parameter!r} (now {made._arguments.get(parameter)!r})",
                )
            differs = canonical_json(other.identity) != identity
            if parameter not in made.search_only and not differs:
                broken(
                    "a parameter belongs to the index unless search_only names it",
                    other,
                    f"another {parameter!r} leaves its identity as it is: {shown(other.identity)}",
                )
            if parameter in made.search_only and differs:
                broken("a parameter that search_only names changes no index", other, f"another {parameter!r}, another identity")
            if parameter in made.search_only:
                self._answers_from_either(other, parameter, path)

    def _answers_from_either(self, other: BaseRetriever, parameter: str, path: Path) -> None:
        """A retriever that differs in what concerns searching alone answers from the index as from one of its own."""
        own = self.folder / "indexes" / f"of {parameter}"
        asked = [[query] for query in self.queries]
        with without_warnings():
            if other.name in other.index(self.items, path).built:
                broken("a parameter that search_only names builds no index", other, f"another {parameter!r} built one")
            other.index(self.items, own)
            try:
                found = [other.retrieve(asked, folder, len(self.items)) for folder in (path, own)]
            except RetrievalError as error:
                broken("an index can be searched with any search_only parameter", other, f"{type(error).__name__}: {error}")
        for query, one, its in zip(self.queries, *found, strict=True):
            if told := difference(its, one, self.tolerance):
                broken(
                    "a parameter that search_only names is none of what the index is made of",
                    other,
                    f"with another {parameter!r}, {query!r} gets from an index of its own, and from this one: {told}",
                )

    def test_the_index_is_a_flat_folder_of_files_that_run_no_code(self) -> None:
        made = self.make()
        items, folder = self.folder / "items", self.folder / "built"
        items.mkdir()
        folder.mkdir()
        write_items(self.items, items)
        with without_warnings():
            made.build(ItemTable(items / ITEMS_FILE), folder)
        if not any(folder.iterdir()):
            broken("build writes into the folder that it is given", made, "the folder is empty")
        for path in folder.iterdir():
            if path.is_symlink() or not path.is_file():
                broken("an index is a flat folder of plain files", made, f"{path.name!r} is a folder, a link or a device")
            if reason := _runs_code(path.name, path.read_bytes()):
                broken(
                    "no file of an index can run code when it is read: no pickles, no object arrays",
                    made,
                    f"{path.name!r} {reason}",
                )

    def test_a_corpus_of_one_item_is_a_corpus(self) -> None:
        path = self.index_into("one item", self.items[:1])
        query, wanted = next(iter(self.queries.items()))
        with without_warnings():
            (found,) = self.make().retrieve([[query]], path, 5)
        if ids_of(found) != [wanted]:
            broken("a corpus of one item is indexed and searched", self.opened, f"{query!r}: {ids_of(found)}, not {[wanted]}")

    def test_items_without_text_can_be_indexed(self) -> None:
        silent = [SearchableItem(item_id=f"silent {number}", content=text) for number, text in enumerate(("", " \n", "?!"))]
        path = self.index_into("silent items", silent)
        with without_warnings():
            (found,) = self.make().retrieve([["glacier"]], path, 5)
        if found:
            broken("a corpus without any text is indexed, and nothing is found in it", self.opened, f"{ids_of(found)}")

    def _compare(self, rule: str, wanted: Mapping[str, list[RetrievalResult]], found: list[list[RetrievalResult]]) -> None:
        for (query, one), other in zip(wanted.items(), found, strict=True):
            if told := difference(one, other, self.tolerance):
                broken(rule, self.opened, f"{query!r}: {told}")

    def _unchanged(self, rule: str, before: Mapping[str, object], after: Mapping[str, object]) -> None:
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if changed:
            broken(rule, self.opened, f"changed: {changed}")


def _state(path: Path) -> dict[str, tuple[int, int, int]]:
    """What tells a file that was written again; the store's own lock may change."""
    files = ((file, file.stat()) for file in path.rglob("*") if file.is_file() and not file.name.startswith(".lock"))
    return {str(file.relative_to(path)): (found.st_ino, found.st_size, found.st_mtime_ns) for file, found in files}


def _runs_code(name: str, content: bytes) -> str | None:
    """Why a file could run code when it is read, or None."""
    if name.endswith(_CODE):
        return "is named as a pickle"
    if len(content) > 2 and content[0] == 0x80 and content[1] in _PICKLE_PROTOCOLS and content.endswith(b"."):
        return f"is a pickle of protocol {content[1]}"
    if content.startswith(b"\x93NUMPY"):
        return _of_array(content)
    return next(filter(None, (_runs_code(inner, data) for inner, data in _unzipped(content))), None)


def _of_array(content: bytes) -> str | None:
    try:
        np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        return f"is an array of objects, or none: {error}"
    return None


def _unzipped(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
