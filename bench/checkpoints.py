"""Checkpoints of an encoding: what keeping the vectors of each batch adds to the time that encoding takes.

Both are timed by themselves, because the difference of two encodings of minutes is smaller than what the machine makes of it.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench.common import Data, Row, at_most, best_of_each, seconds_of
from nlp_retrieval import ColbertEncoder, SentenceTransformerEncoder
from nlp_retrieval.core.blocks import EncodedBatch
from nlp_retrieval.core.index.checkpoint import CheckpointContext, checkpoints_at, resumed_batches
from nlp_retrieval.encoders.base import BaseEncoder, BaseTokenEncoder
from nlp_retrieval.encoders.passages import encoded_here

_ENCODED = 512
_KEPT = 8192


def measure(data: Data) -> list[Row]:
    """MiniLM, and the same model token by token, in batches as the retrievers make them."""
    texts = data.texts()[:_KEPT]
    return [
        _measured("faiss", SentenceTransformerEncoder(), texts, 1024, np.float32),
        _measured("colbert", ColbertEncoder(model="sentence-transformers/all-MiniLM-L6-v2"), texts, 256, np.float16),
    ]


def _measured(name: str, encoder: BaseEncoder | BaseTokenEncoder, texts: list[str], size: int, dtype: type[np.floating]) -> Row:
    sample = texts[:_ENCODED]
    encoder.encode_passages(sample[:8])
    encoding = seconds_of(lambda: encoder.encode_passages(sample)) / len(sample)
    encoded = encoder.encode_passages(sample)
    parts = [encoded] if isinstance(encoder, BaseEncoder) else list(encoded)
    rows, counts = np.concatenate(parts), np.array([1 if part.ndim == 1 else len(part) for part in encoded], np.uint32)
    starts = np.append(0, np.cumsum(counts, dtype=np.int64))

    def batch_of(batch: list[str]) -> EncodedBatch:
        take = np.arange(len(batch)) % len(sample)
        whole = np.concatenate([rows[starts[place] : starts[place + 1]] for place in take])
        return EncodedBatch(whole, counts[take])

    def run(corpus: str | None) -> None:
        batches: Iterator[list[str]] = (texts[first : first + size] for first in range(0, len(texts), size))
        if corpus is None:
            for _ in resumed_batches({}, {}, batches, partial(encoded_here, batch_of), dtype):
                pass
            return
        with checkpoints_at(CheckpointContext(Path(folder), corpus, (0, len(texts)))):
            for _ in resumed_batches({}, {}, batches, partial(encoded_here, batch_of), dtype):
                pass

    fresh = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        kept, plain = best_of_each(3, lambda: run(f"{next(fresh):016d}"), lambda: run(None))
    added = (kept - plain) / len(texts)
    detail = f"{1e6 * added:.0f} us of {1e6 * encoding:,.0f} us per passage"
    return at_most(f"{name}: encoding with checkpoints against without", 1.01, 1 + added / encoding, detail)
