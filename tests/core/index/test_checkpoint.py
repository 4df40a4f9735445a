"""Checkpoints of an encoding: a build that was killed is taken up where it stood, and its bytes are those of a whole one."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hashed_words import HashedWords, items_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval import (
    FaissRetriever,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.index import build
from nlp_retrieval.core.index.build import PREFIX
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ModelError, RetrievalWarning
from nlp_retrieval.retrievers import vectors as vectors_room

TEXTS = [f"{word} number {row} in the {word * 2}" for row, word in enumerate("abcdefghijk")]


class Stops(HashedWords):
    """Counts what it encodes, and can be stopped at one of its batches."""

    name = "stops"
    encoded: list[str]
    at: int | None
    how: Callable[[], None]

    def __init__(self, dimension: int = 16, seed: int = 0, batch_size: int = 8) -> None:
        super().__init__(dimension, seed)
        self.batch_size = batch_size
        self.encoded, self.at, self.how = [], None, _fail

    search_only = frozenset({"batch_size"})

    def encode_passages(self, passages: list[str]):
        if self.at is not None and len(self.encoded) >= self.at:
            self.how()
        self.encoded += passages
        return super().encode_passages(passages)

    def encode_queries(self, queries: list[str]):
        return HashedWords.encode_passages(self, queries)


def _fail() -> None:
    raise ModelError("the server is gone")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def flat(encoder: HashedWords | None = None) -> FaissRetriever:
    return FaissRetriever(encoder or Stops(), index="flat")


def hnsw(encoder: HashedWords | None = None) -> FaissRetriever:
    return FaissRetriever(encoder or Stops(), index="hnsw")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_room, "_BATCH", 2)


def files_of(index: Path) -> dict[str, bytes]:
    """All files of an index; of the manifest, what does not tell how long it took.

    A folder whose name was taken, as by the items of an interrupted build, has an end of its own.
    """
    content = json.loads((index / "manifest.json").read_bytes())
    del content["checksum"]
    for record in content["retrievers"]:
        del record["seconds"]
    files = {str(path.relative_to(index)): path.read_bytes() for path in index.rglob("*") if path.is_file()}
    files["manifest.json"] = json.dumps(content).encode()
    end = re.compile(r"((?:items|faiss|colbert)-[0-9a-f]{16})-[0-9a-f]{6}\b")
    files["manifest.json"] = end.sub(r"\1", files["manifest.json"].decode()).encode()
    return {end.sub(r"\1", name): file for name, file in files.items()}


def checkpoints(index: Path) -> list[Path]:
    return sorted(index.glob(f"{PREFIX}*"))


def whole(make, tmp_path: Path) -> dict[str, bytes]:
    """What an index is that nothing interrupted."""
    make().index(items_of(TEXTS), tmp_path / "whole")
    assert checkpoints(tmp_path / "whole") == []
    return files_of(tmp_path / "whole")


def stopped(retriever: BaseRetriever, index: Path, at: int, items: list[SearchableItem] | None = None) -> None:
    """Fail after so many texts."""
    retriever.encoder.at = at
    with pytest.raises(ModelError, match="is gone"):
        retriever.index(items or items_of(TEXTS), index)


def in_a_child(do: Callable[[], object]) -> int:
    """Do something in a process of its own, and return the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            do()
        finally:
            os._exit(1)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def test_a_killed_build_is_taken_up_and_gives_the_same_bytes(tmp_path):
    expected, retriever = whole(flat, tmp_path), flat()
    retriever.encoder.at, retriever.encoder.how = 4, _die
    assert in_a_child(lambda: retriever.index(items_of(TEXTS), tmp_path / "index")) == signal.SIGKILL
    again = flat()
    assert Searcher([again]).index(items_of(TEXTS), tmp_path / "index").resumed == 4
    assert again.encoder.encoded == TEXTS[4:]
    assert files_of(tmp_path / "index") == expected


class OtherRevision(Stops):
    name = "stops"

    def model_fingerprint(self) -> str:
        return "another revision"


@pytest.mark.parametrize("encoder", [Stops(seed=1), OtherRevision(), Stops(batch_size=9)], ids=["seed", "model", "batches"])
def test_another_encoder_takes_nothing_over(encoder, tmp_path):
    stopped(flat(), tmp_path / "index", 8)
    flat(encoder).index(items_of(TEXTS), tmp_path / "index")
    assert len(encoder.encoded) == len(TEXTS)
    assert checkpoints(tmp_path / "index") == []


def test_what_is_built_together_with_one_encoder_is_encoded_once(tmp_path):
    one = flat
    other = hnsw
    made = one(), other()
    made[1].encoder.at = 0  # would fail
    report = Searcher(list(made)).index(items_of(TEXTS), tmp_path / "index")
    assert [len(retriever.encoder.encoded) for retriever in made] == [len(TEXTS), 0]
    assert report.resumed == 0
    for retriever in (one(), other()):
        Searcher([retriever]).index(items_of(TEXTS), tmp_path / "apart")
    together, apart = files_of(tmp_path / "index"), files_of(tmp_path / "apart")
    del together["manifest.json"], apart["manifest.json"]
    assert together == apart


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_damaged_checkpoint_is_encoded_again(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    expected = whole(flat, folder)
    stopped(flat(), folder / "index", 8)
    file = data.draw(st.sampled_from(checkpoints(folder / "index")))
    content = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    file.write_bytes(content)
    again = flat()
    again.index(items_of(TEXTS), folder / "index")
    assert len(again.encoder.encoded) == 5
    assert files_of(folder / "index") == expected


def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_build(tmp_path, monkeypatch):
    def full(path: Path, content: bytes, durable: bool) -> None:
        raise OSError(28, "No space left on device")

    expected = whole(flat, tmp_path)
    monkeypatch.setattr(build, "write_atomically", full)
    with pytest.warns(RetrievalWarning, match=r"cannot be written \(No space left"):
        flat().index(items_of(TEXTS), tmp_path / "index")
    assert files_of(tmp_path / "index") == expected


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path):
    expected = whole(flat, tmp_path)
    stopped(flat(), tmp_path / "index", 8)
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    for path in checkpoints(tmp_path / "index"):
        path.unlink()
        path.symlink_to(outside)
    flat().index(items_of(TEXTS), tmp_path / "index")
    assert files_of(tmp_path / "index") == expected
    assert outside.read_bytes() == b"precious"
