"""Targets that read models from folders and files, and what caches give back."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
from rerankers.tiny_models import TinyOnnx
from static_models import save_static

from nlp_retrieval import StaticEncoder
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.encoders.base import checked_vectors
from nlp_retrieval.encoders.word_vectors import VECTORS_FILE, WORDS_FILE, WordVectors, read_word_vectors
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers.pair_models import OnnxPairs

from .inputs import SEPARATOR, a_file, a_folder, parts, scratch

STATIC = ("config.json", "tokenizer.json", "model.safetensors")
PAIRS = ("tokenizer.json", "config.json", "model.onnx")
WORDS = (WORDS_FILE, VECTORS_FILE)
TEXTS = ["Red fox", "", "blue whale \U0001f98a"]


def static_model(data: bytes) -> bool:
    """A folder of static embeddings: what opens gives a vector for every text, or says why it cannot."""
    folder = a_folder("static", dict(zip(STATIC, parts(data, len(STATIC)), strict=True)))
    try:
        encoder = StaticEncoder(folder)
        vectors = checked_vectors(encoder.encode_passages(TEXTS), TEXTS, encoder, None)
    except ModelError:
        return False
    assert len(vectors) == len(TEXTS)
    return True


def pair_model(data: bytes) -> bool:
    """A folder of a cross-encoder as a graph: what opens gives a row of logits for every pair, or says why it cannot."""
    folder = a_folder("pairs", dict(zip(PAIRS, parts(data, len(PAIRS)), strict=True)))
    try:
        model = OnnxPairs(folder, None)
        logits = model.logits([(text, "who filmed it") for text in TEXTS])
    except (ModelError, ConfigurationError):
        return False
    assert len(logits) == len(TEXTS)
    return True


def word_vectors(data: bytes) -> bool:
    """A file of word vectors in both forms: a finite vector for every word, each word once."""
    read = [_read_words(a_file(name, data)) for name in ("vectors.txt", "vectors.bin")]
    return any(read)


def word_folder(data: bytes) -> bool:
    """A folder of word vectors, as it stands and with its checksum put right."""
    words, vectors = parts(data, len(WORDS))
    read = []
    for told in (words, _with_checksum(words, vectors)):
        read.append(_read_words(a_folder("words", {WORDS_FILE: told, VECTORS_FILE: vectors})))
    return any(read)


def _read_words(path: Path) -> bool:
    try:
        found: WordVectors = read_word_vectors(path)
    except ModelError:
        return False
    assert found.vectors.dtype == np.float32
    assert np.isfinite(found.vectors).all()
    assert len(found.idf) == len(found.vectors)
    assert np.isfinite(found.idf).all()
    assert (found.idf > 0).all()
    assert all(0 <= number < len(found.vectors) for number in found.numbers.values())
    return len(found.numbers) > 0


def _with_checksum(words: bytes, vectors: bytes) -> bytes:
    try:
        content = parse_json(words)
        return json.dumps(content | {"vectors": hashlib.sha256(vectors).hexdigest()}).encode()
    except (ValueError, TypeError):
        return words


@cache
def made_files(kind: str) -> bytes:
    """The files of a model of a kind, joined."""
    folder = scratch() / f"seed-{kind}"
    if kind == "static":
        save_static(folder, ["Red fox and blue whale"], dimension=4)
        names = STATIC
    else:
        shutil.rmtree(folder, ignore_errors=True)
        TinyOnnx().save(folder)
        (folder / "config.json").write_text('{"max_position_embeddings": 40}')
        names = PAIRS
    return SEPARATOR.join((folder / name).read_bytes() for name in names)


OF_MODELS = [static_model, pair_model, word_vectors, word_folder]
