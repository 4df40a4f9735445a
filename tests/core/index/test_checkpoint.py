"""Checkpoints of an encoding: a build that was killed is taken up where it stood, and its bytes are those of a whole one."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from colbert_checkpoints import save_bert
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of
from hypothesis import given, settings
from hypothesis import strategies as st
from soaking import mostly_soaked

from nlp_retrieval import (
    ColbertRetriever,
    FaissRetriever,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.core.index import checkpoint
from nlp_retrieval.core.index.checkpoint import PREFIX
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import IndexLockedError, ModelError, RetrievalWarning
from nlp_retrieval.retrievers import vectors as vectors_room
from nlp_retrieval.retrievers.colbert import retriever as colbert_room
from nlp_retrieval.retrievers.faiss import retriever as faiss_room

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


class Cuts(Stops):
    """Reads no sevens."""

    name = "cuts"

    def cut_passages(self, passages: list[str]) -> int:
        return sum("7" in passage for passage in passages)


class StopsTokens(HashedTokens):
    """The same for tokens."""

    name = "stops-tokens"
    encoded: list[str]
    at: int | None
    how: Callable[[], None]

    def __init__(self, dimension: int = 16, seed: int = 0) -> None:
        super().__init__(dimension, seed)
        self.encoded, self.at, self.how = [], None, _fail

    def encode_passages(self, passages: list[str]):
        if self.at is not None and len(self.encoded) >= self.at:
            self.how()
        self.encoded += passages
        return super().encode_passages(passages)


def _fail() -> None:
    raise ModelError("the server is gone")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def flat(encoder: HashedWords | None = None) -> FaissRetriever:
    return FaissRetriever(encoder or Stops(), index="flat")


def hnsw(encoder: HashedWords | None = None) -> FaissRetriever:
    return FaissRetriever(encoder or Stops(), index="hnsw")


def exact(encoder: HashedTokens | None = None) -> ColbertRetriever:
    return ColbertRetriever(encoder or StopsTokens(), bits=None)


def compressed(encoder: HashedTokens | None = None) -> ColbertRetriever:
    return ColbertRetriever(encoder or StopsTokens(), bits=4, backend="numpy")


KINDS = [flat, hnsw, exact, compressed]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_room, "_BATCH", 2)
    monkeypatch.setattr(colbert_room, "_BATCH", 2)


def files_of(index: Path) -> dict[str, bytes]:
    """All files of an index; of the manifest, what does not tell how long it took.

    A folder whose name was taken, as by the items of an interrupted build, has an end of its own.
    """
    content = json.loads((index / "manifest.json").read_bytes())
    del content["checksum"]
    for record in content["retrievers"]:
        del record["cost"]
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


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("at", mostly_soaked([4, 2, 8, 10]))
def test_a_killed_build_is_taken_up_and_gives_the_same_bytes(make, at, tmp_path):
    expected, retriever = whole(make, tmp_path), make()
    retriever.encoder.at, retriever.encoder.how = at, _die
    assert in_a_child(lambda: retriever.index(items_of(TEXTS), tmp_path / "index")) == signal.SIGKILL
    again = make()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*interrupted.*")
        again.index(items_of(TEXTS), tmp_path / "index")
    assert again.encoder.encoded == TEXTS[at:]
    assert files_of(tmp_path / "index") == expected


@pytest.mark.parametrize("at", mostly_soaked([4, 8]))
def test_a_model_whose_vectors_depend_on_the_batch_gives_the_same_bytes(at, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_room, "_BATCH", 4)
    texts = [" ".join(["fox", "whale", "river"][: 1 + row % 3] * (1 + row % 5)) for row in range(11)]
    save_bert(tmp_path / "model")

    def retriever() -> FaissRetriever:
        encoder = SentenceTransformerEncoder(str(tmp_path / "model"), precision="bfloat16", device="cpu", batch_size=2)
        return FaissRetriever(encoder, index="flat")

    def stopping(passages: list[str]):
        if passages == texts[at : at + 4]:
            _fail()
        return encode(passages)

    retriever().index(items_of(texts), tmp_path / "whole")
    first = retriever()
    encode, first.encoder.encode_passages = first.encoder.encode_passages, stopping
    with pytest.raises(ModelError):
        first.index(items_of(texts), tmp_path / "index")
    assert Searcher([retriever()]).index(items_of(texts), tmp_path / "index").resumed == at
    assert files_of(tmp_path / "index") == files_of(tmp_path / "whole")


def test_passages_without_a_token_are_taken_up_too(tmp_path):
    texts = ["", " ", *TEXTS[:5]]
    stopped(exact(), tmp_path / "index", 4, items_of(texts))
    again = exact()
    again.index(items_of(texts), tmp_path / "index")
    assert again.encoder.encoded == texts[4:]
    exact().index(items_of(texts), tmp_path / "whole")
    assert files_of(tmp_path / "index") == files_of(tmp_path / "whole")


def test_the_report_says_how_many_passages_were_not_encoded_again(tmp_path):
    stopped(flat(), tmp_path / "index", 6)
    assert Searcher([flat()]).index(items_of(TEXTS), tmp_path / "index").resumed == 6
    assert Searcher([flat()]).index(items_of(TEXTS), tmp_path / "index").resumed == 0


def test_a_build_can_be_killed_as_often_as_there_are_batches(tmp_path):
    expected, encoded = whole(flat, tmp_path), 0
    for at in range(2, len(TEXTS), 2):
        retriever = flat()
        retriever.encoder.at, retriever.encoder.how = 2, _die
        assert in_a_child(lambda made=retriever: made.index(items_of(TEXTS), tmp_path / "index")) == signal.SIGKILL
        encoded = at
    last = flat()
    last.index(items_of(TEXTS), tmp_path / "index")
    assert last.encoder.encoded == TEXTS[encoded:]
    assert files_of(tmp_path / "index") == expected


def test_passages_that_were_cut_are_counted_once(tmp_path):
    stopped(flat(Cuts()), tmp_path / "index", 10)
    with pytest.warns(RetrievalWarning, match="1 of 11 passages are longer"):
        flat(Cuts()).index(items_of(TEXTS), tmp_path / "index")


def test_an_error_in_the_training_after_the_encoding_loses_no_vector(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(faiss_room, "build_ann_index", fail)
        with pytest.raises(KeyboardInterrupt):
            hnsw().index(items_of(TEXTS), tmp_path / "index")
    again = hnsw()
    again.index(items_of(TEXTS), tmp_path / "index")
    assert again.encoder.encoded == []
    assert files_of(tmp_path / "index") == whole(hnsw, tmp_path)


def test_the_first_of_two_retrievers_is_not_encoded_again_when_the_second_is_killed(tmp_path):
    first, second = flat(), exact()
    second.encoder.at = 4
    with pytest.raises(ModelError):
        Searcher([first, second]).index(items_of(TEXTS), tmp_path / "index")
    again = flat(), exact()
    report = Searcher(list(again)).index(items_of(TEXTS), tmp_path / "index")
    assert [len(one.encoder.encoded) for one in again] == [0, 7]
    assert report.resumed == 15
    assert checkpoints(tmp_path / "index") == []


class OtherRevision(Stops):
    name = "stops"

    def model_fingerprint(self) -> str:
        return "another revision"


@pytest.mark.parametrize(
    ("other", "items", "kept"),
    [
        (flat, items_of([*TEXTS[:-1], "another text"]), 1),
        (flat, items_of(TEXTS[::-1]), 1),
        (flat, items_of(TEXTS, TEXTS), 1),
        (lambda: flat(Stops(seed=1)), items_of(TEXTS), 2),
        (lambda: flat(OtherRevision()), items_of(TEXTS), 2),
        (lambda: flat(Stops(batch_size=9)), items_of(TEXTS), 2),
    ],
    ids=["a text", "the order", "titles", "the encoder", "the model", "the batches"],
)
def test_a_build_of_anything_else_takes_nothing_over_and_drops_it(other, items, kept, tmp_path):
    """That of other items when it begins, any other when it is published."""
    stopped(flat(), tmp_path / "index", 8)
    (left,) = checkpoints(tmp_path / "index")
    different = other()
    stopped(different, tmp_path / "index", 4, items)
    assert len(different.encoder.encoded) == 4
    assert len(checkpoints(tmp_path / "index")) == kept
    (last := other()).index(items, tmp_path / "index")
    assert len(last.encoder.encoded) == len(items) - 4
    assert checkpoints(tmp_path / "index") == []
    other().index(items, tmp_path / "fresh")
    assert files_of(tmp_path / "index") == files_of(tmp_path / "fresh")
    assert not left.exists()


def test_a_build_by_another_version_drops_it_and_says_so(tmp_path, monkeypatch):
    stopped(flat(), tmp_path / "index", 8)
    monkeypatch.setattr(checkpoint, "__version__", "0.0.0")
    other = flat()
    other.encoder.at = 4
    with pytest.warns(RetrievalWarning, match="another version"), pytest.raises(ModelError):
        other.index(items_of(TEXTS), tmp_path / "index")
    assert len(other.encoder.encoded) == 4
    assert len(checkpoints(tmp_path / "index")) == 1


# retrievers that share an encoder


def test_another_retriever_with_the_same_encoder_takes_it_up_too(tmp_path):
    stopped(flat(), tmp_path / "index", 8)
    again = hnsw()
    assert Searcher([again]).index(items_of(TEXTS), tmp_path / "index").resumed == 8
    assert again.encoder.encoded == TEXTS[8:]
    assert files_of(tmp_path / "index") == whole(hnsw, tmp_path)


@pytest.mark.parametrize(("one", "other"), [(flat, hnsw), (exact, compressed)])
def test_what_is_built_together_with_one_encoder_is_encoded_once(one, other, tmp_path):
    made = one(), other()
    made[1].encoder.at = 0  # would fail
    searcher = Searcher(list(made))
    report = searcher.index(items_of(TEXTS), tmp_path / "index")
    assert [len(retriever.encoder.encoded) for retriever in made] == [len(TEXTS), 0]
    assert (report.resumed, report.shared) == (0, len(TEXTS))
    assert checkpoints(tmp_path / "index") == []
    Searcher([one()]).index(items_of(TEXTS), tmp_path / "apart")
    Searcher([other()]).index(items_of(TEXTS), tmp_path / "apart")
    together, apart = files_of(tmp_path / "index"), files_of(tmp_path / "apart")
    manifests = [json.loads(files.pop("manifest.json")) for files in (together, apart)]
    assert [manifest.pop("generation") for manifest in manifests] == [1, 2]
    assert manifests[0] == manifests[1]
    assert together == apart


def test_what_is_added_is_encoded_once_for_all_retrievers_with_that_encoder(tmp_path):
    made = flat(), hnsw()
    searcher = Searcher(list(made))
    searcher.index(items_of(TEXTS[:4]), tmp_path / "index")
    for retriever in made:
        retriever.encoder.encoded.clear()
    searcher.add(items_of(TEXTS)[4:])
    assert [retriever.encoder.encoded for retriever in made] == [TEXTS[4:], []]


def test_a_killed_build_of_both_counts_what_was_encoded_once(tmp_path):
    stopped_at, never = flat(), hnsw()
    stopped_at.encoder.at = 6
    with pytest.raises(ModelError):
        Searcher([stopped_at, never]).index(items_of(TEXTS), tmp_path / "index")
    again = flat(), hnsw()
    assert Searcher(list(again)).index(items_of(TEXTS), tmp_path / "index").resumed == 6
    assert [len(retriever.encoder.encoded) for retriever in again] == [5, 0]


def test_each_costs_what_it_would_have_cost_alone(tmp_path):
    class Slow(Stops):
        name = "stops"

        def encode_passages(self, passages: list[str]):
            time.sleep(0.02)
            return super().encode_passages(passages)

    Searcher([flat(Slow()), hnsw(Slow())]).index(items_of(TEXTS), tmp_path / "index")
    costs = [record["cost"]["seconds"] for record in json.loads((tmp_path / "index/manifest.json").read_bytes())["retrievers"]]
    assert min(costs) > 6 * 0.02


def check_together_as_apart(made: Callable[[], list[BaseRetriever]], items: list[SearchableItem], tmp_path: Path) -> None:
    """Check that retrievers write the same files together as each by itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*interrupted.*")
        Searcher(made()).index(items, tmp_path / "together")
    for retriever in made():
        Searcher([retriever]).index(items, tmp_path / "apart")
    together, apart = files_of(tmp_path / "together"), files_of(tmp_path / "apart")
    assert {name: file for name, file in together.items() if name != "manifest.json"} == {
        name: file for name, file in apart.items() if name != "manifest.json"
    }


# one build


def test_adding_items_is_taken_up_too(tmp_path):
    searcher = Searcher([flat()])
    searcher.index(items_of(TEXTS[:1]), tmp_path / "index")
    new = items_of(TEXTS)[1:]
    broken = flat()
    broken.encoder.at = 4
    opened = Searcher([broken]).open(tmp_path / "index")
    with pytest.raises(ModelError):
        opened.add(new)
    again = flat()
    Searcher([again]).open(tmp_path / "index").add(new)
    assert again.encoder.encoded == TEXTS[5:]
    assert checkpoints(tmp_path / "index") == []


def test_small_corpora_are_encoded_without_a_checkpoint(tmp_path):
    retriever = flat()
    retriever.encoder.at = 0
    with pytest.raises(ModelError):
        retriever.index(items_of(TEXTS[:2]), tmp_path / "index")
    assert checkpoints(tmp_path / "index") == []


def test_a_second_writer_neither_reads_nor_removes_the_checkpoint_of_the_first(tmp_path):
    refused = []

    def meanwhile() -> None:
        (left,) = checkpoints(tmp_path / "index")
        before = left.read_bytes()
        with pytest.raises(IndexLockedError) as error:
            flat().index(items_of(TEXTS), tmp_path / "index")
        refused.append(error.value)
        assert left.read_bytes() == before
        first.encoder.at = None

    first = flat()
    first.encoder.at, first.encoder.how = 4, meanwhile
    first.index(items_of(TEXTS), tmp_path / "index")
    assert len(refused) == 1
    assert files_of(tmp_path / "index") == whole(flat, tmp_path)


# what is in the file decides nothing


@pytest.fixture(scope="module")
def left(tmp_path_factory) -> dict[str, tuple[str, bytes, dict[str, bytes]]]:
    """Of a dense and a token encoder: the name of a checkpoint, its content, and the files of a whole index."""
    found = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vectors_room, "_BATCH", 2)
        patched.setattr(colbert_room, "_BATCH", 2)
        for make in (flat, exact):
            folder = tmp_path_factory.mktemp("left")
            stopped(make(), folder / "index", 8)
            (path,) = checkpoints(folder / "index")
            found[make.__name__] = (path.name, path.read_bytes(), whole(make, folder))
    return found


def taken_up(make, folder: Path, name: str, content: bytes) -> tuple[dict[str, bytes], int, list[str]]:
    """The files of an index that a build makes where a checkpoint has this content, what it encoded, and what it warned of."""
    folder.mkdir()
    (folder / name).write_bytes(content)
    retriever = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        retriever.index(items_of(TEXTS), folder)
    return (
        files_of(folder),
        len(retriever.encoder.encoded),
        [str(one.message) for one in caught if "interr" in str(one.message)],
    )


@pytest.mark.parametrize("make", mostly_soaked([flat, exact]))
def test_cut_off_anywhere_it_gives_the_whole_batches_before(make, left, tmp_path):
    name, content, expected = left[make.__name__]
    for end in range(0, len(content), 29):
        files, encoded, warned = taken_up(make, tmp_path / str(end), name, content[:end])
        assert files == expected
        assert encoded in (3, 5, 7, 9, 11)
        assert (encoded == 11) or warned == []


@pytest.mark.parametrize("make", mostly_soaked([flat, exact]))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_anywhere_it_never_gives_other_vectors(make, left, tmp_path_factory, data):
    name, content, expected = left[make.__name__]
    place = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[place] ^= data.draw(st.integers(1, 255))
    files, encoded, warned = taken_up(make, tmp_path_factory.mktemp("damaged") / "index", name, bytes(damaged))
    assert files == expected
    assert encoded > 3
    assert len(warned) <= 1


@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=300), prefix=st.integers(0, 3))
def test_whatever_lies_there_the_index_is_the_same(left, tmp_path_factory, content, prefix):
    name, real, expected = left["flat"]
    start = real[: (0, 55, 55 + 60, len(real) - 32)[prefix]]
    files, _, _ = taken_up(flat, tmp_path_factory.mktemp("planted") / "index", name, start + content)
    assert files == expected


def test_sizes_are_checked_before_they_are_believed(left, tmp_path):
    name, content, expected = left["flat"]
    head = len(b"nlp_retrieval encoding\n") + 32
    n_texts, _, n_cut, _, seconds = struct.unpack_from("<IIIQQ", content, head)
    for dimension, rows in [(2**31, 2**40), (16, 2**60), (0, 2), (2**32 - 1, 2**32 - 1), (16, 2**24)]:
        forged = content[:head] + struct.pack("<IIIQQ", n_texts, dimension, n_cut, rows, seconds) + content[head + 28 :]
        files, encoded, _ = taken_up(flat, tmp_path / f"{dimension}-{rows}", name, forged)
        assert (files, encoded) == (expected, 11)


def test_a_checkpoint_of_another_build_under_this_name_is_dropped_with_a_warning(left, tmp_path):
    stopped(flat(Stops(seed=1)), tmp_path / "other", 8)
    (other,) = checkpoints(tmp_path / "other")
    name, _, expected = left["flat"]
    files, encoded, warned = taken_up(flat, tmp_path / "index", name, other.read_bytes())
    assert (files, encoded) == (expected, 11)
    assert len(warned) == 1
    assert name in warned[0]


def test_links_folders_and_pipes_in_its_place_are_replaced_and_not_followed(left, tmp_path):
    name, _, expected = left["flat"]
    outside = tmp_path / "outside"
    planted = [
        lambda path: path.symlink_to(outside),
        lambda path: os.link(outside, path),
        lambda path: (path / "inner").mkdir(parents=True),
        os.mkfifo,
    ]
    for number, plant in enumerate(planted):
        outside.write_bytes(b"precious")
        folder = tmp_path / str(number)
        folder.mkdir()
        plant(folder / name)
        flat().index(items_of(TEXTS), folder)
        assert files_of(folder) == expected
        assert outside.read_bytes() == b"precious"


def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_build(tmp_path, monkeypatch):
    expected = whole(flat, tmp_path)

    class Full:
        """A file on a full disk."""

        def __init__(self, file):
            self._file, self._written = file, 0

        def __getattr__(self, name):
            return getattr(self._file, name)

        def writelines(self, parts):
            self._written += 1
            if self._written > 2:
                self._file.write(next(iter(parts))[:10])
                raise OSError(28, "No space left on device")
            self._file.writelines(parts)

    opened = checkpoint._opened
    monkeypatch.setattr(checkpoint, "_opened", lambda path: Full(opened(path)))
    with pytest.warns(RetrievalWarning, match=r"cannot be written \(No space left"):
        flat().index(items_of(TEXTS), tmp_path / "index")
    assert files_of(tmp_path / "index") == expected


def test_nothing_of_a_text_or_a_secret_stands_in_the_file(tmp_path):
    class WithKey(Stops):
        name = "with-key"

        def __init__(self, api_key: str = "sk-very-secret-0123456789") -> None:
            super().__init__()
            self.api_key = api_key

    stopped(flat(WithKey()), tmp_path / "index", 8)
    (path,) = checkpoints(tmp_path / "index")
    content = path.read_bytes()
    assert b"secret" not in content
    assert b"number" not in content
    assert path.stat().st_mode & 0o077 == 0


def test_vectors_in_16_bits_are_those_that_the_index_holds(tmp_path):
    """Token vectors are kept as float16, as the index has them before it compresses them."""
    stopped(exact(), tmp_path / "index", 8)
    (path,) = checkpoints(tmp_path / "index")
    expected = np.concatenate(StopsTokens().encode_passages(TEXTS[:8]))
    assert expected.astype(np.float16)[:3].tobytes() in path.read_bytes()
