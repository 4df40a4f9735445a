"""Sizes and checksums of files."""

from __future__ import annotations

import hashlib
import os

import pytest

from nlp_retrieval.core.files.cache import cache_folder
from nlp_retrieval.core.files.checksums import FileRecord, check_file, record_folder
from nlp_retrieval.errors import IndexDamagedError

CONTENT = b"some bytes" * 1000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "folder" / "file.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def test_the_checksum_is_sha256(file):
    record = record_folder(file.parent)["file.bin"]
    assert record == FileRecord(bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
    check_file(file, record, content=True)


def test_a_content_of_the_same_size_and_times_is_told_from_the_recorded_one_however_soon_it_was_written(file):
    record = record_folder(file.parent)["file.bin"]
    check_file(file, record, content=True)
    times = file.stat()
    file.write_bytes(CONTENT[::-1])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    check_file(file, record)
    with pytest.raises(IndexDamagedError, match="SHA-256"):
        check_file(file, record, content=True)


@pytest.mark.parametrize("kind", ["missing", "fifo", "shorter"])
def test_what_is_no_such_file_is_named(kind, tmp_path):
    path = tmp_path / "place"
    make = {
        "folder": path.mkdir,
        "dangling": lambda: path.symlink_to(tmp_path / "nowhere"),
        "fifo": lambda: os.mkfifo(path),
        "shorter": path.touch,
    }
    make.get(kind, lambda: None)()
    with pytest.raises(IndexDamagedError, match=str(path)):
        check_file(path, FileRecord(bytes=1, sha256="0" * 64), content=True)


def test_an_empty_setting_of_the_cache_folder_means_the_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "nlp-retrieval"
