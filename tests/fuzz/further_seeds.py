"""Valid small inputs of the targets of models, services and parts of indexes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.encoders.models import MADE_FILE
from nlp_retrieval.encoders.word_vectors import VECTORS_FILE, WORDS_FILE, write_word_vectors
from nlp_retrieval.rerankers.multi_signal.profile import profile_path

from .inputs import SEPARATOR, scratch
from .models import kept_here, made_files
from .parts import PLACES

_ANSWER = {"answer": "Two foxes [1.2]", "reasoning": "Because\nit says so.", "citations": ["1.1", "passage 2, sentence 1", 3]}
_PROFILE = """name: foxes
subject: country
groups: {size: [weight, "body length"], food: [mouse]}
patterns: {size: ['\\d+ ?kg']}
questions:
  - {number: 1, text: "How heavy is a fox of {subject}?", keywords: [heavy], groups: [size]}
  - {number: 2, text: "What does it eat?"}
weights: {transformer: 0.5, fuzzy: 0}
top_k: 5
n_per_document: 2
language: english
"""
_BODIES = [
    {"query": "fox", "k": 5.0, "where": {"year": {"gte": 2015}}},
    {"queries": ["fox", "tree"], "k": 3},
]
_TABLE = {"table": f"nlpr_{'0' * 12}_1f_{'3' * 16}", "rows": 3, "kind": "halfvec", "dimension": 4, "approximate": True}


def joined(folder: Path, names: tuple[str, ...]) -> bytes:
    """The files of a folder as one input."""
    return SEPARATOR.join((folder / name).read_bytes() for name in names)


def _word_folder() -> list[bytes]:
    folder = scratch() / "seed-words"
    write_word_vectors(folder, ["fox", "tree"], np.array([[1, 0], [0.5, 2]], np.float32), [1.0, 2.5])
    return [joined(folder, (WORDS_FILE, VECTORS_FILE))]


def _word_vectors() -> list[Any]:
    binary = b"2 2\nfox " + np.array([1, 0], "<f4").tobytes() + b"\ntree " + np.array([0.5, 2], "<f4").tobytes() + b"\n"
    return ["2 2\nfox 1 0\ntree 0.5 2\n", "fox 1 0\nthe tree 0.5 -2e-3\n", binary]


def _made() -> list[bytes]:
    return [(kept_here()[0] / MADE_FILE).read_bytes()]


def _places() -> list[bytes]:
    folder = scratch() / "seed-places"
    folder.mkdir(exist_ok=True)
    (folder / PLACES[0]).write_text('["A", "B"]')
    columns = np.array([0, 1, -1]), np.array([5, 5, 0]), np.array([0.0, 1.0, 0.0])
    for name, column in zip(PLACES[1:], columns, strict=True):
        np.save(folder / name, column)
    return [joined(folder, PLACES)]


def each(*values: object) -> Callable[[], list[Any]]:
    """Return what gives these values as JSON."""
    return lambda: [json.dumps(value) for value in values]


FURTHER: dict[str, Callable[[], list[Any]]] = {
    "cited_answer": each(_ANSWER),
    "profiles": lambda: [_PROFILE, profile_path("guidelines").read_bytes()],
    "bodies": each(*_BODIES),
    "static_model": lambda: [made_files("static")],
    "pair_model": lambda: [made_files("pairs")],
    "word_vectors": _word_vectors,
    "word_folder": _word_folder,
    "made_model": _made,
    "places": _places,
    "server_records": each(_TABLE),
}
