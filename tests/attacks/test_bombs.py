"""Small files that unpack to gigabytes, or nest without end, are one error, in bounded memory; archives stay closed."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nlp_retrieval import BeirLoader, HotpotqaLoader, HoverLoader, JsonlLoader, RetrievalError
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.lm.programs import CompiledProgram

from .planting import in_child

MEMBER = 64 * 2**20
MEMBERS = 16
MOST = 700
"""Megabytes of memory that reading may take: Python and its libraries are a third of it, and the bomb alone is larger."""

LOADERS = {
    "jsonl": "list(JsonlLoader(path).stream())",
    "hover": "HoverLoader(path).queries()",
    "trec run": "read_run(path)",
}
CODE = """
import sys
from nlp_retrieval import HoverLoader, JsonlLoader
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.errors import SourceError
path = sys.argv[1]
for attack in {attacks!r}:
    try:
        eval(attack)
    except SourceError as error:
        print(type(error).__name__, str(error).replace(path, "")[:200].replace(chr(10), " "))
with open("/proc/self/status") as status:  # what getrusage tells includes what the parent held before this program began
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024)
"""


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gzip file of 1 MB that unpacks to one line of 1 GiB."""
    path = tmp_path_factory.mktemp("bomb") / "corpus.jsonl"
    member = gzip.compress(b"[" + b" " * (MEMBER - 1))
    path.write_bytes(member * MEMBERS)
    assert path.stat().st_size < 2 * 2**20
    return path


def test_no_loader_unpacks_more_than_an_entry(bomb: Path) -> None:
    done = in_child(CODE.format(attacks=list(LOADERS.values())), str(bomb), seconds=60)
    assert done.returncode == 0, done.stderr[-2000:]
    *said, memory = done.stdout.splitlines()
    assert int(memory) < MOST
    for name, line in zip(LOADERS, said, strict=True):
        assert line.startswith("SourceError"), name


NESTED = {
    "lists": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "beside text": json.dumps("[" * 500) + ", " + "[" * 5000,
}


def sources(value: str, folder: Path) -> list[Callable[[], object]]:
    """What reads files whose first entry holds a value, by every loader."""
    line = folder / "line.jsonl"
    line.write_text(f'{{"id": "a", "_id": "a", "content": "x", "text": "x", "metadata": {{"m": {value}}}}}\n')
    whole = folder / "list.json"
    whole.write_text(f'[{{"uid": "a", "_id": "a", "claim": "x", "question": "x", "m": {value}}}]')
    hotpotqa = HotpotqaLoader(whole)
    return [JsonlLoader(line).load, BeirLoader(line).load, HoverLoader(whole).queries, hotpotqa.load, hotpotqa.queries]


def test_what_is_nested_without_end_is_one_error(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for shape, text in NESTED.items():
        with subtests.test(shape=shape):
            (tmp_path / "program.json").write_text(text)
            for read in sources(text, tmp_path):
                with pytest.raises(SourceError, match=r"line\.jsonl|list\.json"):
                    read()
            with pytest.raises(RetrievalError):
                CompiledProgram.read(tmp_path / "program.json")


def test_an_archive_is_refused_and_never_unpacked(tmp_path: Path) -> None:
    content, packed = b'{"id": "a", "content": "x"}\n', io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("../../outside.jsonl", content)
    path = tmp_path / "work" / "corpus.jsonl"
    path.parent.mkdir()
    for archive in (packed.getvalue(), gzip.compress(gzip.compress(content)), b"../../outside\0" + b"\0" * 600 + content):
        path.write_bytes(archive)
        for read in (JsonlLoader(path).load, HoverLoader(path).queries, lambda: read_run(path)):
            with pytest.raises(SourceError, match=r"corpus\.jsonl"):
                read()
    assert {found.name for found in tmp_path.rglob("*")} == {"work", "corpus.jsonl"}
