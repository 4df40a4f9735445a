"""Checksums, and the memory of which files were checked: a convenience that nobody else can use against the reader."""

from __future__ import annotations

import hashlib
import json
import os
import stat

import pytest

from nlp_retrieval.core.files import checksums
from nlp_retrieval.core.files.checksums import FileRecord, cache_folder, check_file, record_folder, sha256_of
from nlp_retrieval.errors import IndexDamagedError

CONTENT = b"some bytes" * 1000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "folder" / "file.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def record(file):
    return record_folder(file.parent)["file.bin"]


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """The names of the files that were read to be hashed."""
    read: list[str] = []

    def counting(path):
        read.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(checksums, "sha256_of", counting)
    return read


def another_process():
    checksums._read_memory.cache_clear()


def key(path) -> str:
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def test_the_checksum_is_sha256(file, record):
    assert sha256_of(file) == hashlib.sha256(CONTENT).hexdigest()
    assert record == FileRecord(bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


def test_the_checksum_of_an_empty_file(tmp_path):
    (tmp_path / "empty").touch()
    assert sha256_of(tmp_path / "empty") == hashlib.sha256().hexdigest()


def test_a_checked_file_is_not_read_again_by_this_or_another_process(file, record, hashed):
    check_file(file, record)
    check_file(file, record)
    another_process()
    check_file(file, record)
    assert hashed == ["file.bin"]


def test_a_file_is_read_again_where_the_memory_is_not_trusted(file, record, hashed):
    check_file(file, record)
    check_file(file, record, trust_memory=False)
    assert hashed == ["file.bin"] * 2


def test_a_file_that_was_touched_is_checked_again(file, record, hashed):
    check_file(file, record)
    os.utime(file, ns=(1, 1))
    check_file(file, record)
    assert hashed == ["file.bin"] * 2


def test_a_changed_file_of_the_same_size_and_time_is_checked_again(file, record):
    check_file(file, record)
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(b"S" + CONTENT[1:])
    os.utime(file, ns=times)
    with pytest.raises(IndexDamagedError, match="SHA-256"):
        check_file(file, record)


def test_a_file_that_was_replaced_by_another_is_checked_again(file, record):
    check_file(file, record)
    other = file.with_name("other")
    other.write_bytes(CONTENT[::-1])
    other.replace(file)
    with pytest.raises(IndexDamagedError, match="SHA-256"):
        check_file(file, record)


def test_a_remembered_file_is_still_compared_with_the_record_asked_for(file, record):
    check_file(file, record)
    with pytest.raises(IndexDamagedError):
        check_file(file, FileRecord(bytes=record.bytes, sha256="0" * 64))


@pytest.mark.parametrize("kind", ["missing", "folder", "dangling", "fifo"])
def test_what_is_no_regular_file_is_damage_that_is_named_and_never_waited_for(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(IndexDamagedError, match=str(path)):
        check_file(path, FileRecord(bytes=0, sha256="0" * 64))


def test_the_memory_is_the_users_own(file, record):
    check_file(file, record)
    memory = cache_folder() / "checked.json"
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    assert stat.S_IMODE(memory.parent.stat().st_mode) == 0o700
    assert json.loads(memory.read_text()) == {key(file): record.sha256}


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_memory_that_others_can_write_is_ignored(file, record, mode):
    check_file(file, record)
    forged = FileRecord(bytes=record.bytes, sha256="0" * 64)
    memory = cache_folder() / "checked.json"
    memory.write_text(json.dumps({key(file): forged.sha256}))
    another_process()
    check_file(file, forged)  # believed while only the user can write it
    memory.chmod(mode)
    another_process()
    with pytest.raises(IndexDamagedError):
        check_file(file, forged)


@pytest.mark.parametrize("content", ["", "[]", "null", "7", "{", "[" * 100_000, "\x00", '{"a": 1}'])
def test_a_spoilt_memory_is_ignored_and_replaced(file, record, hashed, content):
    memory = cache_folder() / "checked.json"
    memory.parent.mkdir(parents=True)
    memory.write_text(content)
    memory.chmod(0o600)
    another_process()
    check_file(file, record)
    another_process()
    check_file(file, record)
    assert hashed == ["file.bin"]


def test_where_the_memory_cannot_be_written_files_are_checked_each_time(file, record, hashed, tmp_path, monkeypatch):
    (tmp_path / "blocked").write_text("a file where the cache folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    check_file(file, record)
    another_process()
    check_file(file, record)
    assert hashed == ["file.bin"] * 2


def test_the_memory_does_not_grow_without_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "_REMEMBERED_AT_MOST", 3)
    for number in range(6):
        (tmp_path / f"f{number}").write_bytes(bytes([number]))
        check_file(tmp_path / f"f{number}", FileRecord(bytes=1, sha256=hashlib.sha256(bytes([number])).hexdigest()))
    memory = json.loads((cache_folder() / "checked.json").read_text())
    assert set(memory) == {key(tmp_path / f"f{number}") for number in (3, 4, 5)}


def test_an_empty_setting_of_the_cache_folder_means_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "nlp-retrieval"
