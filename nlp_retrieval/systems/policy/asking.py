"""One subject's questions: settings, subjects of an index, and search for passages that answer.

The filter of a subject is applied within the search; the hits are then cut by score and document.
"""

from __future__ import annotations

import hashlib
import logging
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from nlp_retrieval import Explanation, RetrievalResult, Searcher
from nlp_retrieval.core import BaseSearcher, ItemTable, canonical_json, check_k, parse_filter
from nlp_retrieval.errors import ConfigurationError, QueryError, RetrievalWarning, nearest
from nlp_retrieval.rerankers import ProfileQuestion
from nlp_retrieval.systems.policy.answers import chunk_of, combined_score, document_of
from nlp_retrieval.systems.policy.hop.ranking import change_asked
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.text import printable

Method = Literal["vector", "hop", "both"]

METHODS: dict[Method, str] = {"vector": "vector_similarity", "hop": "graph_hop", "both": "vector_similarity+graph_hop"}
"""Names of the methods in the files."""

FORMAT = 2
"""Version of the files' format, raised whenever the same settings give other files."""


def check_method(method: object) -> Method:
    """Return a method.

    Raises:
        ConfigurationError: there is no such method.
    """
    known: tuple[Method, ...] = get_args(Method)
    for valid in known:
        if method == valid:
            return valid
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
            raise ConfigurationError(f"min_similarity is {least!r}; give a number from 0 to 1, like the scores")
        if self.where is not None:
            parse_filter(self.where)

    @property
    def methods(self) -> tuple[Literal["vector", "hop"], ...]:
        """Return the methods of each question's lists."""
        return ("vector", "hop") if self.method == "both" else (self.method,)

    def filter_for(self, field: str, subject: str) -> dict[str, Any]:
        """Return the filter that finds the passages of a subject, and no others.

        Raises:
            QueryError: the subject has no name.
        """
        if not subject.strip():
            raise QueryError(f"the {field} to ask about has no name; omit it to ask about all")
        by_subject = {f"metadata.{field}": subject}
        return by_subject if self.where is None else {"and": [by_subject, dict(self.where)]}

    def fingerprint(self, *parts: object) -> str:
        """Return a fingerprint that is the same for the same answers."""
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


_LISTED = 40


def subjects_of(items: ItemTable, field: str) -> dict[str, int]:
    """Return the number of passages of each subject, by name.

    A passage with a list as its value belongs to each of them. Passages without a value are counted in a warning: no question
    finds them.

    Raises:
        QueryError: no passage has a string there.
    """
    counts: Counter[str] = Counter()
    keys: set[str] = set()
    total = without = 0
    for item in items.stream_live():
        total += 1
        value = item.metadata.get(field)
        names = {name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str) and name.strip()}
        counts.update(names)
        without += not names
        if not names and len(keys) < _LISTED:
            keys |= item.metadata.keys()
    if not counts:
        raise QueryError(
            f"no passage of this index has text in its metadata {field!r}, which the profile asks by; "
            f"{nearest(field, map(printable, keys))}"
        )
    if without:
        warnings.warn(
            f"{without:,} of {total:,} passages have no {field}; no question finds them", RetrievalWarning, stacklevel=2
        )
    return dict(sorted(counts.items()))


def chosen_subjects(wanted: str | Sequence[str] | None, known: Iterable[str], field: str) -> list[str]:
    """Return the subjects to ask about, in the order of the index, each once.

    Args:
        wanted: names in the index; None for all.
        known: those of the index, sorted.
        field: metadata that names the subject, for messages.

    Raises:
        QueryError: a name is unknown or empty, or there are none.
    """
    names = list(known)
    if wanted is None:
        return names
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    if not asked:
        raise QueryError(f"the list names no {field}; omit it to ask about all {len(names)}")
    for name in asked:
        if not isinstance(name, str) or not name.strip():
            raise QueryError(f"the {field} to ask about has no name; omit it to ask about all {len(names)}")
        if name not in names:
            raise QueryError(f"there is no {field} {printable(name[:80])!r} in this index; {_nearest(name, names)}")
    return [name for name in names if name in set(asked)]


def _nearest(name: str, names: list[str]) -> str:
    """Return a hint with the most similar names, whatever their case, and the existing ones."""
    folded = {existing.casefold(): existing for existing in names}
    close = [folded[existing] for existing in get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)]
    listed = ", ".join(map(printable, names[:_LISTED])) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    suggestion = f"did you mean {' or '.join(repr(printable(existing)) for existing in close)}? " if close else ""
    return f"{suggestion}There are: {listed}"


_DEEPEST = 10_000
"""At most this many passages of one subject are compared in full."""


@runtime_checkable
class Matches(Protocol):
    """A reranker that returns the matches of its patterns in a text."""

    def matches(self, query: str, text: str) -> Sequence[Any]:
        """Return ``group``, ``begin``, ``end`` and ``text`` of each match."""


@dataclass(frozen=True)
class Asked:
    """The answer to one question."""

    results: list[RetrievalResult]
    matches: list[list[dict[str, Any]]]
    explained: list[dict[str, Explanation]]

    def as_dict(self) -> dict[str, Any]:
        """Return it in the form of a subject's file."""
        chunks = [
            chunk_of(result, matches, explained)
            for result, matches, explained in zip(self.results, self.matches, self.explained, strict=True)
        ]
        return {"chunk_count": len(chunks), "top_k_chunks": chunks}


class AskedText(NamedTuple):
    """A question in two forms.

    Args:
        text: the question; passages are scored against it.
        searched: the query: the question, and keywords if requested.
    """

    text: str
    searched: str


def all_hits(
    searcher: BaseSearcher,
    questions: Sequence[AskedText],
    n_passages: int,
    where: Mapping[str, Any] | None,
    settings: StudySettings,
    method: str,
) -> list[list[RetrievalResult]]:
    """Search for questions about one subject, all at once: every passage of it, best first.

    A searcher without a processor scores its results against the question itself; one with a processor gets the question with
    its keywords.

    Args:
        searcher: with an opened index.
        questions: and their queries.
        n_passages: number of passages of the subject; all are compared, up to 10,000.
        where: filter that selects them.
        settings: of the study.
        method: ``vector`` or ``hop``, for the log.
    """
    note(logging.DEBUG, method, f"filter {dict(where or {})}: {n_passages} chunks")
    deep = max(settings.top_k, min(n_passages, _DEEPEST))
    if isinstance(searcher, Searcher) and searcher.processor is None:
        return searcher.search(
            [question.text for question in questions], deep, where, [[question.searched] for question in questions]
        )
    return searcher.search([question.searched for question in questions], deep, where)


def asked(
    searcher: BaseSearcher,
    questions: Sequence[AskedText],
    lists: list[list[RetrievalResult]],
    settings: StudySettings,
    method: str,
    subject: str,
    describing: tuple[BaseSearcher, list[list[RetrievalResult]]] | None = None,
) -> list[Asked]:
    """Make answers from hits.

    Args:
        searcher: that found them.
        questions: and their queries.
        lists: the hits of each.
        settings: of the study.
        method: ``vector`` or ``hop``, for the log.
        subject: for the log.
        describing: another searcher and its hits for the same questions, whose signals and marks are added to the hits; it does
            not change or shorten their order.
    """
    answers = []
    for number, ((text, searched), hits) in enumerate(zip(questions, lists, strict=True)):
        kept = cut(hits, settings)
        best = f", best {kept[0].score:.3f}" if kept else ""
        note(logging.INFO, method, f"{subject}: {len(kept)} of {len(hits)} chunks{best}: {text[:120]}")
        explained: list[dict[str, Explanation]] = searcher.explain(searched, kept) if searcher.explains else [{} for _ in kept]
        if describing is not None:
            kept = _described(kept, describing[1][number])
        answers.append(Asked(kept, _matches(describing[0] if describing else searcher, text, kept), explained))
    return answers


def asked_text(question: ProfileQuestion, subject: str, method: str, *, keywords: bool) -> AskedText:
    """Return a question of a profile for a subject.

    Args:
        question: of the profile.
        subject: of the question.
        method: with ``hop``, a question about changes gets no keywords: they name changes of all kinds, and would change its
            meaning.
        keywords: whether to search for the question's keywords too.
    """
    text = question.asked_of(subject)
    if not keywords or (method == "hop" and change_asked(text) is not None):
        return AskedText(text, text)
    return AskedText(text, " ".join([text, *question.keywords]))


def cut(hits: Iterable[RetrievalResult], settings: StudySettings) -> list[RetrievalResult]:
    """Return the hits that are good enough, in their order.

    ``min_similarity`` is compared with the combined score of all signals; hits without one are kept.
    """
    kept: list[RetrievalResult] = []
    of_document: Counter[str] = Counter()
    for hit in hits:
        score = combined_score(hit)
        if settings.min_similarity is not None and score is not None and score < settings.min_similarity:
            continue
        document = document_of(hit.item)
        if settings.n_per_document is not None and of_document[document] >= settings.n_per_document:
            continue
        of_document[document] += 1
        kept.append(hit)
        if len(kept) == settings.top_k:
            break
    return kept


def _described(kept: list[RetrievalResult], others: list[RetrievalResult]) -> list[RetrievalResult]:
    """Add another searcher's signals for the same passages; existing ones stay."""
    signals = {other.item.item_id: other.signals for other in others}
    return [hit.model_copy(update={"signals": signals.get(hit.item.item_id, {}) | hit.signals}) for hit in kept]


def warn_of_limits(searcher: BaseSearcher, least: float, given: float | None) -> None:
    """Warn if ``min_similarity`` cannot have its full effect.

    Args:
        searcher: its reranker may have a limit of its own, or compute no combined score.
        least: the effective ``min_similarity``.
        given: the same if a caller gave it, not the profile.
    """
    reranker = getattr(searcher, "reranker", None)
    own = getattr(reranker, "min_similarity", None)
    if isinstance(own, float) and own > least:
        warnings.warn(
            f"the reranker drops passages that score below {own:g}, and min_similarity is {least:g}; give the reranker "
            "min_similarity=0 to have the study decide",
            RetrievalWarning,
            stacklevel=4,
        )
    elif given and own is None:
        warnings.warn(
            "min_similarity has no effect: this searcher computes no combined score; give it MultiSignalReranker()",
            RetrievalWarning,
            stacklevel=4,
        )


def _matches(searcher: BaseSearcher, text: str, hits: list[RetrievalResult]) -> list[list[dict[str, Any]]]:
    """Return the matches of the reranker's patterns in the content of each hit; empty if it has no patterns."""
    reranker = getattr(searcher, "reranker", None)
    if not isinstance(reranker, Matches):
        return [[] for _ in hits]
    return [
        [
            {"group": match.group, "begin": match.begin, "end": match.end, "text": match.text}
            for match in reranker.matches(text, hit.item.content)
        ]
        for hit in hits
    ]
