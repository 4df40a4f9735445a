"""Sizes and checksums of files."""

from __future__ import annotations

import hashlib
import os

import pytest

from nlp_retrieval import Searcher
from nlp_retrieval.core.files.cache import make_own
from nlp_retrieval.core.index.generation import FileRecord, check_file, read_manifest
from nlp_retrieval.errors import IndexDamagedError

CONTENT = b"some bytes" * 1000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "folder" / "file.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def test_a_content_of_the_same_size_and_times_is_told_from_the_recorded_one_however_soon_it_was_written(file):
    record = FileRecord(bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
    Searcher(["bm25"]).index([{"id": "1", "content": "a fox"}], index := file.parent / "index")
    sums = {
        index / each.folder / name: made.sha256 for each in read_manifest(index).records for name, made in each.files.items()
    }
    assert sums == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sums}
    check_file(file, record, content=True)
    times = file.stat()
    file.write_bytes(CONTENT[::-1])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    check_file(file, record)
    with pytest.raises(IndexDamagedError, match="SHA-256"):
        check_file(file, record, content=True)


def test_folders_of_a_cache_are_made_for_this_user_alone_and_others_stay_as_they_are(tmp_path):
    tmp_path.chmod(0o755)
    make_own(tmp_path / "nlp-retrieval" / "answers")
    modes = [
        folder.stat().st_mode & 0o777 for folder in (tmp_path, tmp_path / "nlp-retrieval", tmp_path / "nlp-retrieval/answers")
    ]
    assert modes == [0o755, 0o700, 0o700]
