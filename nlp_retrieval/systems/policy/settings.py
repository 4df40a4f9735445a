"""Settings of a study, checked, and the fingerprint that identifies equal studies."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from nlp_retrieval.core import canonical_json, check_k, parse_filter
from nlp_retrieval.errors import ConfigurationError, QueryError, nearest

__all__ = ["METHODS", "Method", "StudySettings", "both_filters", "check_method"]

Method = Literal["vector", "hop", "both"]

METHODS: dict[Method, str] = {
    "vector": "vector_similarity",
    "hop": "graph_hop",
    "both": "vector_similarity+graph_hop",
}
"""Names of the methods in the files."""

FORMAT = 1
"""Version of the files' format, raised whenever the same settings give other files."""


def check_method(method: object) -> Method:
    """Return a method.

    Raises:
        ConfigurationError: there is no such method.
    """
    known: tuple[Method, ...] = get_args(Method)
    for one in known:
        if method == one:
            return one
    raise ConfigurationError(f"there is no method {method!r}; {nearest(str(method), known)}")


def both_filters(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the conjunction of two filters; None passes everything."""
    if one is None or other is None:
        return other if one is None else one
    return {"and": [dict(one), dict(other)]}


@dataclass(frozen=True)
class StudySettings:
    """Settings for the questions of a study.

    Args:
        method: by the signals of each passage (``vector``), along relations (``hop``), or both, each with its own list.
        top_k: at most this many passages for a question.
        min_similarity: passages below this combined score, 0..1, are left out; None: none is.
        n_per_document: at most this many passages of one document; None: any number.
        keywords: whether a question's own keywords are added to the query.
        where: a further filter, in addition to that of the subject.

    Raises:
        ConfigurationError: a value is out of its range.
        QueryError: ``top_k`` or ``n_per_document`` is not a positive integer, or ``where`` is not a filter.
    """

    method: Method = "vector"
    top_k: int = 20
    min_similarity: float | None = None
    n_per_document: int | None = None
    keywords: bool = True
    where: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_method(self.method)
        check_k(self.top_k, "top_k")
        if self.n_per_document is not None:
            check_k(self.n_per_document, "n_per_document")
        least = self.min_similarity
        if least is not None and (isinstance(least, bool) or not math.isfinite(least) or not 0 <= least <= 1):
            raise ConfigurationError(f"min_similarity is {least!r}; it is compared with scores, so give a number from 0 to 1")
        if self.where is not None:
            parse_filter(self.where)

    @property
    def methods(self) -> tuple[Literal["vector", "hop"], ...]:
        """Return the methods of each question's lists."""
        return ("vector", "hop") if self.method == "both" else (self.method,)

    def filter_for(self, field: str, subject: str) -> dict[str, Any]:
        """Return the filter that finds the passages of a subject, and no others.

        Args:
            field: metadata that names the subject.
            subject: its name.

        Raises:
            QueryError: the subject has no name.
        """
        if not subject.strip():
            raise QueryError(f"the {field} to ask about has no name; leave it out to ask about all")
        alone = {f"metadata.{field}": subject}
        return alone if self.where is None else {"and": [alone, dict(self.where)]}

    def fingerprint(self, *parts: object) -> str:
        """Return a fingerprint that is the same for the same answers.

        Args:
            parts: further inputs, as JSON values: index, profile, searchers.
        """
        whole = {
            "format": FORMAT,
            "method": self.method,
            "top_k": self.top_k,
            "min_similarity": self.min_similarity,
            "n_per_document": self.n_per_document,
            "keywords": self.keywords,
            "where": None if self.where is None else dict(self.where),
            "parts": list(parts),
        }
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()
