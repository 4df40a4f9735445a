"""Search for passages of one subject that answer questions: filtered within the search, then cut by score and document."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from nlp_retrieval import Explanation, RetrievalResult, Searcher
from nlp_retrieval.core import BaseSearcher
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.rerankers import ProfileQuestion
from nlp_retrieval.systems.policy.answers import chunk_of, combined_score, document_of
from nlp_retrieval.systems.policy.hop.changes import change_asked
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.systems.policy.settings import StudySettings

__all__ = ["Asked", "AskedText", "all_hits", "asked", "asked_text", "cut", "warn_of_limits"]

_DEEPEST = 10_000
"""At most this many passages of one subject are compared in full."""


@runtime_checkable
class Matches(Protocol):
    """A reranker that returns the matches of its patterns in a text."""

    def matches(self, query: str, text: str) -> Sequence[Any]:
        """Return ``group``, ``begin``, ``end`` and ``text`` of each match."""


@dataclass(frozen=True)
class Asked:
    """The answer to one question.

    Args:
        results: the passages, best first.
        matches: for each, those of patterns and keywords in its content.
        explained: for each, the chains of relations that led to it.
    """

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
        return searcher.search([one.text for one in questions], deep, where, [[one.searched] for one in questions])
    return searcher.search([one.searched for one in questions], deep, where)


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
    for place, ((text, searched), hits) in enumerate(zip(questions, lists, strict=True)):
        kept = cut(hits, settings)
        best = f", best {kept[0].score:.3f}" if kept else ""
        note(logging.INFO, method, f"{subject}: {len(kept)} of {len(hits)} chunks{best}: {text[:120]}")
        explained: list[dict[str, Explanation]] = searcher.explain(searched, kept) if searcher.explains else [{} for _ in kept]
        if describing is not None:
            kept = _described(kept, describing[1][place])
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

    Args:
        hits: best first.
        settings: limits of number, number per document, and score.
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
            f"the reranker leaves out what scores below {own:g}, and min_similarity is {least:g}; give the reranker "
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
