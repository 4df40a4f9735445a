"""Encoding of queries once per search, even if several parts of a retriever search with their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Component

Encode = Callable[[list[str]], NDArray[Any]]

_encoded: ContextVar[list[tuple[Component, list[str], NDArray[Any]]] | None] = ContextVar("nlp_retrieval_encoded", default=None)


@contextmanager
def encoding_once() -> Iterator[None]:
    """Make :func:`encoded_once` remember what it encodes inside the block."""
    if _encoded.get() is not None:
        yield
        return
    token = _encoded.set([])
    try:
        yield
    finally:
        _encoded.reset(token)


def encoded_once(encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
    """Return a vector per query, reused if this encoder already encoded the same queries inside the block.

    Args:
        encoder: the encoder of the vectors.
        queries: the texts to encode.
        encode: encodes queries, ``[queries, dimension]``.
    """
    known = _encoded.get()
    if known is None:
        return encode(queries)
    for other, texts, vectors in known:
        if other is encoder and texts == queries:
            return vectors
    vectors = encode(queries)
    known.append((encoder, list(queries), vectors))
    return vectors
