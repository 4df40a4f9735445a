"""A component of another package is loaded from the user's own index without a word, and from nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.commands import run
from conformance.registering import write_entry_points

from nlp_retrieval import Bm25Retriever, FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.core.components.registry import registered
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.index.ownership import is_own
from nlp_retrieval.core.index.update import add_items, compact_index, delete_items
from nlp_retrieval.core.search.base_searcher import resolver, retrievers_of
from nlp_retrieval.errors import RetrievalWarning, UntrustedError

from .conftest import Tally
from .manifest_trials import sign

FAMILY = "indexes that pretend to be the user's own"
ITEMS = [SearchableItem(item_id=f"i{number}", content=f"red fox and whale {number}") for number in range(5)]
MORE = [SearchableItem(item_id="new", content="a new fox")]

CHOSEN = """
from pathlib import Path
from core.engines import TermCount
Path({ran!r}).mkdir(exist_ok=True)

class Chosen(TermCount):
    '''Counts terms.

    Args:
        notes: a file.
        command: what a hostile manifest would set.
        note: changes no index.
    '''

    name = "chosen"
    search_only = frozenset({{"note"}})

    def __init__(self, notes: Path | None = None, command: str = "", note: str = "") -> None:
        super().__init__()
        self.notes = notes
"""


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """This folder exists as soon as the package is imported."""
    return tmp_path / "ran"


@pytest.fixture
def chosen(tmp_path: Path, ran: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Searcher]]:
    """A package that this user installed; returns searchers with its retriever, as the user would write them."""
    package = write_entry_points(tmp_path / "installed", {"retrievers": {"chosen": "chosen_package:Chosen"}})
    (package / "chosen_package.py").write_text(CHOSEN.format(ran=str(ran)))
    tests = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), tests, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(package))
    registered.cache_clear()

    def searcher(**settings: object) -> Searcher:
        return Searcher([{"name": "chosen"} | settings])

    yield searcher
    sys.modules.pop("chosen_package", None)
    registered.cache_clear()


def record_of(cache: Path) -> Path:
    (record,) = (cache / "nlp-retrieval" / "own_indexes").iterdir()
    return record


def edited(index: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the manifest of an index, as its author could."""
    manifest = index / "manifest.json"
    content = json.loads(manifest.read_text())
    change(content["retrievers"][0]["config"])
    manifest.write_bytes(sign(content))


def refuse(index: Path) -> str:
    with pytest.raises(UntrustedError, match="load 'chosen' from the package conformance-parts") as error:
        retrievers_of(index)
    with pytest.raises(UntrustedError):
        add_items(index, MORE, resolver(), replace=True)
    return str(error.value)


def test_an_own_index_is_searched_and_updated_without_a_word(
    tmp_path: Path, chosen: Callable[..., Searcher], own_cache: Path
) -> None:
    index = tmp_path / "index"
    notes = tmp_path / "notes.txt"
    chosen(notes=str(notes)).index(ITEMS, index)
    add_items(index, MORE, resolver(), replace=False)
    delete_items(index, ["i0"], resolver())
    compact_index(index, resolver())
    done = run("search", str(index), "fox")
    assert (done.returncode, "trust" in done.stderr) == (0, False), done.stderr
    (retriever,) = Searcher.open(index).retrievers.values()
    assert retriever.config["notes"] == str(notes)
    assert vars(retriever)["notes"] == notes, "text in the manifest, a path in the constructor"
    assert record_of(own_cache).stat().st_mode & 0o777 == 0o600
    assert record_of(own_cache).parent.stat().st_mode & 0o777 == 0o700


def test_an_index_of_our_own_components_alone_is_not_recorded(tmp_path: Path, own_cache: Path) -> None:
    Searcher([Bm25Retriever()]).index(ITEMS, tmp_path / "index")
    assert not (own_cache / "nlp-retrieval" / "own_indexes").exists()


def test_an_index_of_somebody_else_imports_nothing(
    tmp_path: Path, chosen: Callable[..., Searcher], ran: Path, tally: Tally
) -> None:
    chosen().index(ITEMS, tmp_path / "index")
    shutil.copytree(tmp_path / "index", tmp_path / "downloaded")
    ran.rmdir()
    del sys.modules["chosen_package"]
    with tally(FAMILY):
        refuse(tmp_path / "downloaded")
        assert not ran.exists()
    with pytest.warns(RetrievalWarning, match="is trusted: chosen"):
        retrievers_of(tmp_path / "downloaded", trust=True)
    refuse(tmp_path / "downloaded")  # what was allowed once is not allowed for ever


def test_writing_into_an_index_that_is_trusted_makes_it_own(tmp_path: Path, chosen: Callable[..., Searcher]) -> None:
    chosen().index(ITEMS, tmp_path / "index")
    (tmp_path / "index").rename(tmp_path / "moved")
    refuse(tmp_path / "moved")
    with pytest.warns(RetrievalWarning, match="is trusted: chosen.command: set it to ''"):
        add_items(tmp_path / "moved", MORE, resolver(trust=True), replace=False)
    assert len(retrievers_of(tmp_path / "moved")) == 1
    (tmp_path / "moved").rename(tmp_path / "again")
    refuse(tmp_path / "again")
    report = chosen().index([*ITEMS, *MORE], tmp_path / "again", replace=True)
    assert len(retrievers_of(tmp_path / "again")) == 1, "or the user names the component again"
    assert report.n_items == 6


def test_a_change_of_the_manifest_by_others_ends_it(tmp_path: Path, chosen: Callable[..., Searcher], tally: Tally) -> None:
    index = tmp_path / "index"
    chosen(command="ls").index(ITEMS, index)
    mine = (index / "manifest.json").read_bytes()
    with tally(FAMILY):
        edited(index, lambda config: config.update(command="rm -rf"))
        assert "'command': 'rm -rf'" in refuse(index)
        (index / "manifest.json").write_bytes(mine)
        assert len(retrievers_of(index)) == 1


def test_another_index_at_the_place_of_an_own_one_is_not_own(
    tmp_path: Path, chosen: Callable[..., Searcher], tally: Tally
) -> None:
    index = tmp_path / "index"
    chosen().index(ITEMS, index)
    chosen().index(ITEMS[:3], tmp_path / "other")
    shutil.rmtree(index)
    with tally(FAMILY):
        shutil.copytree(tmp_path / "other", index)
        refuse(index)
        shutil.rmtree(index)
        index.symlink_to(tmp_path / "other")
        assert len(retrievers_of(index)) == 1, "a link to an own index leads to an own index"
        (tmp_path / "other").rename(tmp_path / "away")
        shutil.copytree(tmp_path / "away", tmp_path / "strange")
        index.unlink()
        index.symlink_to(tmp_path / "strange")
        refuse(index)


def test_the_record_of_another_index_is_not_believed(
    tmp_path: Path, chosen: Callable[..., Searcher], own_cache: Path, tally: Tally
) -> None:
    chosen().index(ITEMS, tmp_path / "index")
    mine = record_of(own_cache)
    shutil.copytree(tmp_path / "index", tmp_path / "strange")
    chosen().index(ITEMS, tmp_path / "strange", replace=True)  # to learn the name of its record
    (theirs,) = set(mine.parent.iterdir()) - {mine}
    assert len(retrievers_of(tmp_path / "strange")) == 1
    with tally(FAMILY):
        theirs.write_bytes(mine.read_bytes())
        refuse(tmp_path / "strange")


@pytest.mark.parametrize("settings", [{"command": "rm -rf"}, {"note": "rm -rf"}])
def test_what_a_stranger_put_in_an_index_does_not_become_own_by_adding_to_it(
    tmp_path: Path, chosen: Callable[..., Searcher], settings: dict[str, str], tally: Tally
) -> None:
    """Also where a setting changes no index, so that the stranger's retriever is taken for the user's."""
    chosen().index(ITEMS, tmp_path / "index")
    edited(tmp_path / "index", lambda config: config.update(settings))
    (tmp_path / "index").rename(tmp_path / "strange")
    strange = tmp_path / "strange"
    with tally(FAMILY):
        Searcher([Bm25Retriever()]).index(ITEMS, strange)
        refuse(strange)
        chosen().index(ITEMS, strange)
        refuse(strange)
        chosen().open(strange).add(MORE)
        refuse(strange)


def test_adding_to_an_own_index_leaves_it_own(tmp_path: Path, chosen: Callable[..., Searcher]) -> None:
    index = tmp_path / "index"
    chosen(note="mine").index(ITEMS, index)
    Searcher([Bm25Retriever()]).index(ITEMS, index)
    assert len(retrievers_of(index)) == 2
    Searcher([Bm25Retriever()]).open(index).add(MORE)
    chosen(note="another").open(index).delete(["i0"])
    assert len(retrievers_of(index)) == 2


def hidden_by_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def linked_record(folder: Path) -> None:
    (record,) = folder.iterdir()
    record.rename(folder.with_name("downloaded"))
    record.symlink_to(folder.with_name("downloaded"))


def record_that_others_write(folder: Path) -> None:
    (record,) = folder.iterdir()
    record.chmod(0o666)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: folder.chmod(0o777),
        lambda folder: folder.chmod(0o1777),
        lambda folder: folder.chmod(0o770),
        lambda folder: folder.parent.chmod(0o777),
        hidden_by_a_link,
        linked_record,
        record_that_others_write,
        lambda folder: next(folder.iterdir()).write_bytes(b"\xff" * 2**20),
        lambda folder: next(folder.iterdir()).write_bytes(b""),
    ],
    ids=["all write", "all write, sticky", "group writes", "all write above", "link", "linked", "writable", "long", "empty"],
)
def test_a_record_that_others_could_have_written_is_not_believed(
    tmp_path: Path, chosen: Callable[..., Searcher], own_cache: Path, spoil: Callable[[Path], object], tally: Tally
) -> None:
    chosen().index(ITEMS, tmp_path / "index")
    assert len(retrievers_of(tmp_path / "index")) == 1
    with tally(FAMILY):
        spoil(own_cache / "nlp-retrieval" / "own_indexes")
        refuse(tmp_path / "index")


def test_a_cache_folder_that_depends_on_the_working_directory_is_not_believed(
    tmp_path: Path, chosen: Callable[..., Searcher], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    """A downloaded folder could hold one."""
    monkeypatch.chdir(tmp_path)
    chosen().index(ITEMS, tmp_path / "index")
    shutil.copytree(os.environ["XDG_CACHE_HOME"], tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    with tally(FAMILY):
        assert "That an index is your own cannot be recorded: XDG_CACHE_HOME is not an absolute path" in refuse(
            tmp_path / "index"
        )


def test_where_no_record_can_be_kept_indexing_works_and_the_refusal_says_why(
    tmp_path: Path, chosen: Callable[..., Searcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    searcher = chosen()
    searcher.index(ITEMS, tmp_path / "index")
    assert len(searcher.search("fox")[0]) == 5
    assert "cannot be recorded" in refuse(tmp_path / "index")


def test_another_user_has_to_say_that_they_trust_it(
    tmp_path: Path, chosen: Callable[..., Searcher], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    chosen().index(ITEMS, tmp_path / "index")
    with tally(FAMILY):
        with monkeypatch.context() as other:
            other.setattr(os, "geteuid", lambda: 12345)  # with the first one's cache folder
            refuse(tmp_path / "index")
        with monkeypatch.context() as other:
            other.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of another"))
            refuse(tmp_path / "index")
    assert len(retrievers_of(tmp_path / "index")) == 1


def test_a_file_of_a_relative_path_is_meant_in_its_working_directory(
    tmp_path: Path, chosen: Callable[..., Searcher], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    for name in ("mine", "downloaded"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text(name)
    monkeypatch.chdir(tmp_path / "mine")
    chosen(notes="notes.txt").index(ITEMS, tmp_path / "index")
    assert len(retrievers_of(tmp_path / "index")) == 1
    with tally(FAMILY):
        monkeypatch.chdir(tmp_path / "downloaded")
        refuse(tmp_path / "index")


def test_parts_of_our_own_in_it_ask_as_ever(
    tmp_path: Path, chosen: Callable[..., Searcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is about components of other packages: a model in a folder still needs trust."""
    from hashed_words import HashedWords

    chosen().index(ITEMS, tmp_path / "index")
    Searcher([FaissRetriever(HashedWords())]).index(ITEMS, tmp_path / "index")
    generation = open_generation(tmp_path / "index")
    assert is_own(generation.path, generation.manifest)
    config = generation.manifest.retrievers[1].config
    config["encoder"] = {"name": "sentence-transformers", "model": "./folder", "trust_remote_code": True}
    monkeypatch.setattr("nlp_retrieval.core.search.base_searcher.is_own", lambda *_: True)
    (tmp_path / "index" / "manifest.json").write_bytes(sign(generation.manifest.model_dump(mode="json")))
    with pytest.raises(UntrustedError, match="run the Python code that comes with the model") as error:
        retrievers_of(tmp_path / "index")
    assert "load 'chosen'" not in str(error.value)


def test_records_of_removed_indexes_are_dropped(
    tmp_path: Path, chosen: Callable[..., Searcher], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nlp_retrieval.core.index.ownership._KEPT", 3)
    for number in range(5):
        chosen().index(ITEMS, tmp_path / f"index{number}")
        if number != 2:
            shutil.rmtree(tmp_path / f"index{number}")
    chosen().index(ITEMS, tmp_path / "last")
    assert len(list((own_cache / "nlp-retrieval" / "own_indexes").iterdir())) <= 3
    assert len(retrievers_of(tmp_path / "index2")) == 1
