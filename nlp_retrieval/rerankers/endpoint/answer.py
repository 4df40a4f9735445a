"""Reading what a rerank endpoint answered: bytes of anybody become scores, or an error that says why not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.files.json_text import parse_json

_LARGEST_PER_BYTE = 6
_LARGEST_PER_DOCUMENT = 2**10
_LARGEST_BESIDE = 2**16
_LARGEST = float(np.finfo(np.float32).max)
_MOST_TOKENS = 2**40


class RerankAnswer(NamedTuple):
    """Scores in the order in which documents were sent, and the tokens that they took; 0 where that is not said."""

    scores: Scores
    tokens: int


def largest_answer(documents: list[str]) -> int:
    """How many bytes an answer may have; some servers send the documents back, and JSON may escape each letter."""
    sent = sum(len(document.encode("utf-8", "surrogatepass")) for document in documents)
    return _LARGEST_PER_BYTE * sent + _LARGEST_PER_DOCUMENT * len(documents) + _LARGEST_BESIDE


def read_scores(body: bytes, documents: list[str]) -> RerankAnswer:
    """Read the answer to a request.

    Args:
        body: of the answer.
        documents: what was sent.

    Raises:
        ValueError: it is no such answer; the message says what it is, as half a sentence.
    """
    content = parse_json(body, max_bytes=largest_answer(documents))
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, list):
        raise ValueError('it has no list "results"')  # noqa: TRY004 -- the fault is in the text
    n = len(documents)
    scores = np.full(n, np.nan)
    for place, entry in enumerate(results):
        index = entry.get("index") if isinstance(entry, dict) else None
        if type(index) is not int or not 0 <= index < n:
            raise ValueError(f'entry {place} of "results" has no "index" from 0 to {n - 1}')
        score = entry.get("relevance_score")
        if type(score) not in (int, float) or not abs(score) <= _LARGEST:
            raise ValueError(f'entry {place} of "results" has no finite "relevance_score"')
        if not math.isnan(scores[index]):
            raise ValueError(f'two entries of "results" have the "index" {index}')
        scores[index] = score
    missing = int(np.isnan(scores).sum())
    if missing:
        raise ValueError(f"it holds {n - missing:,} scores for {n:,} documents")
    return RerankAnswer(scores, _tokens(content))


def _tokens(content: dict[str, Any]) -> int:
    """As Jina counts (``usage.total_tokens``), or Cohere (``meta.tokens.input_tokens``)."""
    for path in (("usage", "total_tokens"), ("meta", "tokens", "input_tokens")):
        found: object = content
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < _MOST_TOKENS:
            return int(found)
    return 0
