"""File of one subject: the questions, the passages that answer them, and the value of each signal for these.

``docs/policy-answers.schema.json`` describes it. A signal that could not be computed is null, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nlp_retrieval import Explanation, RetrievalResult, SearchableItem
from nlp_retrieval.core import read_json_file
from nlp_retrieval.systems.policy.schema import AnswerFile

__all__ = [
    "SIGNAL_FIELDS",
    "Answers",
    "chunk_of",
    "combined_score",
    "document_of",
    "read_answers",
    "to_json",
]

Answers = dict[str, Any]
"""A file of answers, as JSON values."""

SIGNAL_FIELDS: dict[str, tuple[str, ...]] = {
    "transformer_similarity": ("multi_signal.transformer", "faiss.score", "pgvector.score"),
    "word2vec_similarity": ("multi_signal.word_vectors",),
    "regex_score": ("multi_signal.patterns",),
    "fuzzy_score": ("multi_signal.fuzzy",),
}
"""Fields of a passage, and the signals that they come from: the first that exists."""

COMBINED = "multi_signal.score"

_DOCUMENT = ("document", "doc_id", "parent_id")
_MOST_BYTES = 2**28


def combined_score(result: RetrievalResult) -> float | None:
    """Return the combined score of all signals, 0..1; None if it was not computed."""
    return result.signals.get(COMBINED)


def document_of(item: SearchableItem) -> str:
    """Return the document of a passage; its own id if its metadata do not name one."""
    return next((str(item.metadata[key]) for key in _DOCUMENT if item.metadata.get(key) is not None), item.item_id)


def chunk_of(
    result: RetrievalResult, matches: Iterable[Mapping[str, Any]] = (), explained: Mapping[str, Explanation] | None = None
) -> dict[str, Any]:
    """Return a result in the form of the file.

    Args:
        result: of a search.
        matches: of patterns and keywords in its content: ``group``, ``begin``, ``end``, ``text``.
        explained: the chain of relations that led to it, by retriever.
    """
    item, score = result.item, combined_score(result)
    chunk: dict[str, Any] = {
        "id": item.item_id,
        "content": item.content,
        "combined_score": result.score if score is None else score,
    }
    for field, keys in SIGNAL_FIELDS.items():
        chunk[field] = next((result.signals[key] for key in keys if key in result.signals), None)
    chunk["score"] = result.score
    chunk["title"] = item.title
    chunk["document"] = document_of(item)
    chunk["metadata"] = {key: value for key, value in item.metadata.items() if key != "title"}
    chunk["signals"] = dict(result.signals)
    chunk["matches"] = [dict(match) for match in matches]
    chains = [explanation.as_dict() for explanation in (explained or {}).values()]
    if chains:
        chunk["chain"] = chains[0]
    return chunk


def read_answers(path: Path) -> Answers | None:
    """Return the content of a file of answers; None if there is none, or it has another form.

    Args:
        path: of the file.
    """
    try:
        answers = read_json_file(path, max_bytes=_MOST_BYTES)
    except (OSError, ValueError):
        return None
    try:
        AnswerFile.model_validate(answers)
    except ValidationError:
        return None
    valid: Answers = answers
    return valid


def to_json(answers: Answers) -> bytes:
    """Return the bytes of a file of answers."""
    return (json.dumps(answers, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
