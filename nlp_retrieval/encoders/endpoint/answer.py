"""Reading what an embeddings endpoint answered: bytes of anybody become vectors, or an error that says why not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.encoders.base import LONGEST_VECTOR, Vectors

LARGEST_PER_TEXT = 2**20
"""Bytes of an answer for each text that was sent; 20,000 dimensions in full length take half of it."""
LARGEST_BESIDE = 2**16
"""Bytes that an answer may have besides."""

_MOST_TOKENS = 2**40


class EmbeddingAnswer(NamedTuple):
    """``[texts, dimension]`` float32 in the order of the texts, and the tokens that they took; 0 where that is not said."""

    vectors: Vectors
    tokens: int


def read_embeddings(body: bytes, n_texts: int) -> EmbeddingAnswer:
    """Read the answer to a request of ``n_texts`` texts.

    Raises:
        ValueError: it is no such answer; the message says what it is, as half a sentence.
    """
    content = parse_json(body, max_bytes=n_texts * LARGEST_PER_TEXT + LARGEST_BESIDE)
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list):
        raise ValueError('it has no list "data"')  # noqa: TRY004 -- the fault is in the text
    if len(data) != n_texts:
        raise ValueError(f"it holds {len(data):,} vectors for {n_texts:,} texts")
    rows: list[Any] = [None] * n_texts
    for place, entry in enumerate(data):
        if not isinstance(entry, dict) or not isinstance(entry.get("embedding"), list):
            raise ValueError(f'entry {place} of "data" has no list "embedding"')  # noqa: TRY004 -- the same
        index = entry.get("index")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < n_texts:
            raise ValueError(f'entry {place} of "data" has no "index" from 0 to {n_texts - 1}')
        if rows[index] is not None:
            raise ValueError(f'two entries of "data" have the "index" {index}')
        rows[index] = entry["embedding"]
    usage = content.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    known = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < _MOST_TOKENS
    return EmbeddingAnswer(_matrix(rows), int(tokens) if known and tokens is not None else 0)


def _matrix(rows: list[list[Any]]) -> Vectors:
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1 or lengths[0] == 0:
        raise ValueError(f"it holds vectors of dimension {' and '.join(map(str, lengths[:3]))}")
    for place, row in enumerate(rows):
        if not all(type(number) in (int, float) for number in row):
            raise ValueError(f"the vector of text {place} holds something other than numbers")
    try:
        vectors = np.array(rows, np.float64)
    except OverflowError:
        raise ValueError("it holds numbers that are too large") from None
    lengths_of = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not (lengths_of <= LONGEST_VECTOR).all():
        raise ValueError("it holds numbers that are too large")
    return vectors.astype(np.float32)
