"""Files that are made to fill memory, and files that are nearly right: an error that says where, in little memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nlp_retrieval.core.files import frames
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.loaders import files
from nlp_retrieval.loaders.datasets import BeirLoader, HotpotqaLoader, HoverLoader
from nlp_retrieval.loaders.files import read_json_lines, read_json_list, read_lines
from nlp_retrieval.loaders.judgements import read_judgements
from nlp_retrieval.loaders.tables import JsonlLoader

MIB = 2**20
READERS: dict[str, Callable[[Path], object]] = {
    "lines": lambda path: list(read_lines(path)),
    "json lines": lambda path: list(read_json_lines(path)),
    "jsonl": lambda path: JsonlLoader(path).load(),
    "beir": lambda path: BeirLoader(path).load(),
    "hover": lambda path: HoverLoader(path).queries(),
    "hotpotqa": lambda path: HotpotqaLoader(path).load(),
    "list": lambda path: list(read_json_list(path)),
    "run": read_run,
    "qrels": read_judgements,
}


def bomb_in(folder: Path, name: str) -> Path:
    """A file of some ten kilobytes that unpacks to 64 MiB."""
    begins = {"zeros": (b"", b"\0"), "text": (b'[{"id": "', b"a"), "brackets": (b"", b"["), "spaces": (b"[", b" ")}
    head, filling = begins[name]
    with gzip.open(folder / name, "wb", compresslevel=1) as packed:
        packed.write(head)
        for _ in range(64):
            packed.write(filling * MIB)
    return folder / name


@pytest.mark.soak
@pytest.mark.parametrize("bomb", ["zeros", "text", "brackets", "spaces"])
@pytest.mark.parametrize("reader", READERS)
def test_what_unpacks_to_very_much_is_an_error_in_little_memory(
    tmp_path: Path, reader: str, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bomb_in(tmp_path, bomb)
    monkeypatch.setattr(files, "MAX_ENTRY", MIB)
    tracemalloc.start()
    try:
        with pytest.raises(SourceError) as caught:
            READERS[reader](path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600
    assert peak < 32 * MIB


def test_a_parquet_file_whose_footer_tells_of_too_much_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_LARGEST_UNPACKED", MIB)
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": ["a" * 2 * MIB]}), path, compression="zstd", use_dictionary=False)
    with pytest.raises(pa.ArrowInvalid, match=r"column 'text' unpacks from .* bytes to"):
        frames.read_parquet(path)
