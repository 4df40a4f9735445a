"""No name in a file or of a user becomes a path elsewhere, and nothing is written or removed through a link."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hashed_words import items_of

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.core.files.atomic import file_names
from nlp_retrieval.errors import IndexDamagedError, IndexWriteError

from .planting import write_forged

ITEMS = items_of(["red fox", "blue whale", "green tree"])
ELSEWHERE = (
    "../outside", "..", "", "/etc", "a/b", "a\\b", "items\n", "a\0b", "é", "x" * 300, "C:x",
)  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Path:
    Searcher([Bm25Retriever()]).index(ITEMS, tmp_path / "index")
    return tmp_path / "index"


def opened(index: Path) -> list[str]:
    found = Searcher([Bm25Retriever()]).open(index).search(["fox"], 3)
    return [hit.item.item_id for hit in found[0]]


def test_a_folder_or_file_in_a_manifest_is_a_plain_name(index: Path, subtests: pytest.Subtests) -> None:
    for name in ELSEWHERE:
        with subtests.test(name=name):
            content = json.loads((index / "manifest.json").read_bytes())
            whole = json.dumps(content)
            folders = sorted(set(re.findall(r'"folder": "([^"]+)"', whole)))
            assert len(folders) == 2
            for was in (*folders, "items.arrow", "vocabulary.json"):
                write_forged(index, json.loads(whole.replace(json.dumps(was), json.dumps(name))))
                with pytest.raises(IndexDamagedError, match=r"manifest\.json is damaged"):
                    opened(index)


def test_a_manifest_names_nothing_that_is_no_file_or_folder(index: Path, tmp_path: Path) -> None:
    (folder,) = index.glob("items-*")
    plain = folder / "items.arrow"
    content = plain.read_bytes()
    for plant in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path)):
        plain.unlink(missing_ok=True)
        plant(plain)  # type: ignore[operator]
        with pytest.raises(IndexDamagedError, match=r"items\.arrow"):
            opened(index)
        plain.rmdir() if plain.is_dir() else plain.unlink()
    plain.write_bytes(content)
    assert opened(index) == ["d0"]


@pytest.mark.parametrize("name", ["manifest.json", ".lock"])
def test_indexing_writes_through_no_symbolic_link(name: str, tmp_path: Path) -> None:
    index, victim = tmp_path / "index", tmp_path / "victim"
    index.mkdir()
    victim.write_text("precious")
    (index / name).symlink_to(victim)
    with suppress(IndexWriteError):  # the lock is not taken through a link
        Searcher([Bm25Retriever()]).index(ITEMS, index, replace=True)
        assert opened(index) == ["d0"]
    assert victim.read_text() == "precious"


def test_clearing_up_removes_nothing_behind_a_link_and_nothing_that_is_not_its_own(index: Path, tmp_path: Path) -> None:
    (folder,) = index.glob("items-*")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".nlp_retrieval").touch()
    (outside / "precious").write_text("precious")
    (index / "bm25-0123456789abcdef").symlink_to(outside)
    (index / ".scratch-0123").symlink_to(outside)
    own = ["notes", "items-old", "wiki-2024", "items-xyz0123456789abc"]
    for name in own:
        (index / name).mkdir()
        (index / name / "mine.txt").write_text("mine")
    (folder / "link").symlink_to(outside)
    Searcher([Bm25Retriever()]).index(items_of(["other words"]), index, replace=True)
    assert (outside / "precious").read_text() == "precious"
    assert all((index / name / "mine.txt").read_text() == "mine" for name in own)
    assert not folder.exists()


def test_what_a_link_leads_to_is_compared_like_everything_else(index: Path, tmp_path: Path) -> None:
    """Links are followed when files are read, because large data is kept so; the manifest says which files are read."""
    (folder,) = index.glob("items-*")
    outside = tmp_path / "outside"
    shutil.move(folder, outside)
    folder.symlink_to(outside)
    assert opened(index) == ["d0"]
    (outside / "items.arrow").write_bytes((outside / "items.arrow").read_bytes() * 2)
    with pytest.raises(IndexDamagedError, match=r"items\.arrow is damaged: it has .* the manifest says"):
        opened(index)


def test_indexing_again_changes_no_file_that_has_another_name(index: Path, tmp_path: Path) -> None:
    """A hard link shares its content: what is written in place is written there too."""
    others = {}
    for number, file in enumerate(path for path in sorted(index.rglob("*")) if path.is_file()):
        others[tmp_path / f"link-{number}"] = file.read_bytes()
        os.link(file, tmp_path / f"link-{number}")
    Searcher([Bm25Retriever()]).index(items_of(["other words"]), index, replace=True)
    assert {path: path.read_bytes() for path in others} == others


def test_files_are_named_by_no_path() -> None:
    odd = ["../../x", "..", ".", "NUL.txt", "a\nb", "\x1b[31m", "a\0b", "~/x", "x" * 400, "$(touch ran)", "a;b", "%2e%2e%2f",
           "\u202egpj.exe", "\\\\host\\share", ".hidden", "é" * 200, " ", "A", "a"]  # fmt: skip
    made = file_names(odd)
    assert len({name.casefold() for name in made}) == len(odd)
    for name in made:
        assert re.fullmatch(r"(?!\.)[\w.-]+", name), name
        assert len(f"{name}.trec".encode()) <= 255
