"""Writing so that a reader sees all of it or none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nlp_retrieval.core.files.atomic import check_file_for_output, clear_asides, publish_folder, write_atomically
from nlp_retrieval.errors import OutputError


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    file = tmp_path / "file"
    write_atomically(file, b"old")
    with pytest.raises(TypeError):
        write_atomically(file, "no bytes")
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_device_or_a_folder_in_place_of_a_file_is_told_before_the_work(tmp_path):
    check_file_for_output(tmp_path / "new" / "page.html")
    for path in (Path("/dev/null"), tmp_path):
        with pytest.raises(OutputError, match="it exists and is not a file"):
            check_file_for_output(path)


def test_content_and_folder_are_synced_before_and_after_the_rename(tmp_path, monkeypatch):
    """In this order, or a crash may show a name without its content."""
    events: list[str] = []
    real_fsync, real_replace, real_rename = os.fsync, os.replace, os.rename

    def named(descriptor):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", lambda fd: (events.append(f"sync {named(fd)}"), real_fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(f"move {a}"), real_replace(a, b))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (events.append(f"move {a}"), real_rename(a, b))[1])

    write_atomically(tmp_path / "file", b"x")
    assert [event.split()[0] for event in events] == ["sync", "move", "sync"]
    assert events[0].removeprefix("sync ") == events[1].removeprefix("move ")
    assert events[2] == f"sync {tmp_path}"

    events.clear()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for name in ("a", "b"):
        (scratch / name).write_text(name)
    publish_folder(scratch, tmp_path / "final")
    assert sorted(events[:2]) == [f"sync {scratch}/a", f"sync {scratch}/b"]
    assert events[2:] == [f"sync {scratch}", f"move {scratch}", f"sync {tmp_path}"]
    assert names(tmp_path / "final") == ["a", "b"]


def test_only_what_was_left_beside_this_file_and_is_old_is_removed(tmp_path):
    left, young = tmp_path / ".a[1].json.0123abcd", tmp_path / ".a[1].json.89abcdef"
    others = [tmp_path / name for name in (".a1.json.0123abcd", ".a[1].json.0123abc", ".a[1].json.user0000", "a[1].json")]
    for path in (left, young, *others):
        path.touch()
        if path != young:
            os.utime(path, (time.time() - 7200,) * 2)
    clear_asides(tmp_path / "a[1].json")
    assert not left.exists()
    assert all(path.exists() for path in (young, *others))
