"""What is left beside a file when its writer is killed, and names that have to outlive a crash."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nlp_retrieval.core.files.atomic import clear_asides, make_folder, sync_tree, write_atomically


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths that are synced, in order."""
    paths: list[Path] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def test_the_folder_above_each_new_folder_is_synced_from_the_top(tmp_path: Path, synced: list[Path]) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    make_folder(tmp_path / "a" / "b" / "c")
    assert len(synced) == 3


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a"):
        make_folder(tmp_path / "a" / "b")


def test_all_files_and_folders_of_a_tree_are_synced_and_links_are_not_followed(tmp_path: Path, synced: list[Path]) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    for path in (tree / "one", tree / "inner" / "two", tmp_path / "outside"):
        path.touch()
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "folder").symlink_to(tmp_path)
    sync_tree(tree)
    assert sorted(synced) == [tree, tree / "inner", tree / "inner" / "two", tree / "one"]


def test_a_file_is_replaced_whole_without_waiting_for_the_disk(tmp_path: Path, synced: list[Path]) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"old", durable=False)
    with file.open("rb") as reader:
        write_atomically(file, b"new", durable=False)
        assert reader.read() == b"old"
    assert (file.read_bytes(), synced) == (b"new", [])
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"x", durable=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_only_what_was_left_beside_this_file_and_is_old_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "a[1].json"
    left, young = tmp_path / ".a[1].json.0123abcd", tmp_path / ".a[1].json.89abcdef"
    others = [tmp_path / name for name in (".a1.json.0123abcd", ".a[1].json.0123abc", ".a[1].json.user0000", "a[1].json")]
    for path in (left, young, *others):
        path.touch()
        if path != young:
            os.utime(path, (time.time() - 7200,) * 2)
    clear_asides(file)
    assert not left.exists()
    assert all(path.exists() for path in (young, *others))
    clear_asides(file, seconds=0)
    assert not young.exists()


def test_where_there_is_no_folder_nothing_is_left(tmp_path: Path) -> None:
    clear_asides(tmp_path / "missing" / "file")
    assert list(tmp_path.iterdir()) == []
