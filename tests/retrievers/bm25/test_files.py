"""The files of a bm25 index: the same however they were written, and refused where compiled code could not follow them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hashed_words import items_of

from nlp_retrieval import Bm25Retriever, SearchableItem
from nlp_retrieval.core.index.items import ItemTable, write_items
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.bm25.postings import open_files

NAMES = ["frequencies.npy", "indptr.npy", "lengths.npy", "rows.npy", "vocabulary.json"]


def texts_of(count: int, seed: int = 7) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"w{int(draw.paretovariate(0.7))}" for _ in range(draw.randrange(30))) for _ in range(count)]


def table(folder: Path, items: list[SearchableItem]) -> ItemTable:
    folder.mkdir()
    write_items(items, folder)
    return ItemTable(folder / "items.arrow")


def built(items: ItemTable, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    Bm25Retriever(stemmer="none").build(items, folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_files_hold_the_postings_that_counting_by_hand_gives(tmp_path: Path) -> None:
    texts = texts_of(300)
    files = built(table(tmp_path / "items", items_of(texts)), tmp_path / "index")
    assert list(files) == NAMES
    postings, vocabulary = open_files(tmp_path / "index", 300)
    words = [text.split() for text in texts]
    assert list(vocabulary) == sorted({word for one in words for word in one})
    assert postings.lengths.tolist() == [len(one) for one in words]
    for word, term in vocabulary.items():
        part = slice(postings.indptr[term], postings.indptr[term + 1])
        found = dict(zip(postings.rows[part].tolist(), postings.frequencies[part].tolist(), strict=True))
        assert found == {row: one.count(word) for row, one in enumerate(words) if word in one}


def _array(change: Callable[[np.ndarray], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        column = np.load(path)
        np.save(path, change(column), allow_pickle=False)

    return damage


def _set(place: int, value: int) -> Callable[[Path], None]:
    def change(column: np.ndarray) -> np.ndarray:
        column[place] = value
        return column

    return _array(change)


def _terms(change: Callable[[list[str]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")

    return damage


def test_numbers_that_compiled_code_could_not_follow_are_damage_that_names_the_file(tmp_path: Path) -> None:
    files = built(table(tmp_path / "items", items_of(texts_of(50))), tmp_path / "index")
    for name, damage, message in [
        ("rows.npy", _set(5, 10_000), r"rows.npy .* names 0\.\.10000 of 50"),
        ("rows.npy", _array(lambda rows: rows[::-1].copy()), "rows.npy .* rows of a term do not ascend"),
        ("rows.npy", _array(lambda rows: rows.astype(np.int64)), "rows.npy is damaged: it holds"),
        ("frequencies.npy", _set(3, 0), "frequencies.npy .* a term occurs 0 times"),
        ("frequencies.npy", _set(3, 70), "frequencies.npy and lengths.npy contradict one another"),
        ("indptr.npy", _set(2, 10**6), "indptr.npy .* its numbers do not ascend"),
        ("lengths.npy", _array(lambda column: column[:1]), r"lengths.npy is damaged: it holds"),
        ("vocabulary.json", _terms(lambda terms: terms[::-1]), "vocabulary.json .* its terms do not ascend"),
        ("vocabulary.json", _terms(lambda terms: [1, *terms[1:]]), "vocabulary.json .* not a list of texts"),
    ]:
        damage(tmp_path / "index" / name)
        with pytest.raises(IndexDamagedError, match=message):
            open_files(tmp_path / "index", 50)
        (tmp_path / "index" / name).write_bytes(files[name])
