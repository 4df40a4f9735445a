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
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from nlp_retrieval import MultiSignalReranker, RetrievalResult, Searcher
from nlp_retrieval.core import BaseSearcher, ItemTable, canonical_json, check_k, parse_filter
from nlp_retrieval.errors import ConfigurationError, QueryError, RetrievalWarning, nearest
from nlp_retrieval.rerankers import ProfileQuestion
from nlp_retrieval.systems.policy.answers import Answers, chunk_of, combined_score, document_of
from nlp_retrieval.systems.policy.hop.ranking import change_asked
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.text import printable

Method = Literal["vector", "hop", "both"]

METHODS: dict[Method, str] = {"vector": "vector_similarity", "hop": "graph_hop", "both": "vector_similarity+graph_hop"}
"""Names of the methods in the files."""

FORMAT = 4
"""Version of the files' format, raised whenever the same settings give other files."""

_LISTED = 40
_DEEPEST = 10_000
"""At most this many passages of one subject are compared in full."""


def check_method(method: object) -> Method:
    """Return a method."""
    known: tuple[Method, ...] = get_args(Method)
    for valid in known:
        if method == valid:
            return valid
    raise ConfigurationError(f"there is no method {method!r}; {nearest(str(method), known)}")


@dataclass(frozen=True)
class StudySettings:
    """Settings for the questions of a study."""

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

    def filter_for(self, field: str, subject: str | None) -> Mapping[str, Any] | None:
        """Return the filter that finds the passages of a subject, or of all of them, and no others."""
        by_subject = None if subject is None else {f"metadata.{field}": subject}
        if by_subject is None or self.where is None:
            return by_subject or self.where
        return {"and": [by_subject, dict(self.where)]}

    def fingerprint(self, *parts: object) -> str:
        """Return a fingerprint that is the same for the same answers."""
        return hashlib.sha256(canonical_json([FORMAT, asdict(self), *parts]).encode()).hexdigest()


def subjects_of(items: ItemTable, field: str) -> dict[str, int]:
    """Return the number of passages of each subject, by name; a passage with a list as its value belongs to each of them."""
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
    """Return the subjects to ask about, in the order of the index, each once; None: all."""
    names = list(known)
    if wanted is None:
        return names
    asked_about = [wanted] if isinstance(wanted, str) else list(wanted)
    if not asked_about or not all(isinstance(name, str) and name.strip() for name in asked_about):
        raise QueryError(f"the {field} to ask about has no name; omit it to ask about all {len(names)}")
    for name in asked_about:
        if name not in names:
            raise QueryError(f"there is no {field} {printable(name[:80])!r} in this index; {printable(nearest(name, names))}")
    return [name for name in names if name in set(asked_about)]


def chosen_subject(wanted: str, known: Iterable[str], field: str) -> str:
    """Return the one subject to ask about."""
    names = chosen_subjects(wanted, known, field)
    if len(names) > 1:
        raise QueryError(f"{field}: {wanted!r:.80} are several; call it for each, or omit it to ask about all")
    return names[0]


class AskedText(NamedTuple):
    """A question: the text that passages are scored against, and the query, with keywords if requested."""

    text: str
    searched: str

    @classmethod
    def of(cls, question: ProfileQuestion, subject: str, method: str, *, keywords: bool) -> AskedText:
        """Return a question about a subject; along relations, one about changes gets no keywords: they name all kinds."""
        text = question.asked_of(subject)
        if not keywords or (method == "hop" and change_asked(text) is not None):
            return cls(text, text)
        return cls(text, " ".join([text, *question.keywords]))


def all_hits(
    searcher: BaseSearcher,
    questions: Sequence[AskedText],
    n_passages: int,
    where: Mapping[str, Any] | None,
    top_k: int,
    method: str,
) -> Sequence[list[RetrievalResult]]:
    """Search for questions, all at once: every passage that passes the filter, up to 10,000, best first."""
    note(logging.DEBUG, method, f"filter {dict(where or {})}: {n_passages} chunks")
    deep = max(top_k, min(n_passages, _DEEPEST))
    if isinstance(searcher, Searcher) and searcher.processor is None:
        return searcher.search(
            [question.text for question in questions], deep, where, [[question.searched] for question in questions]
        )
    return searcher.search([question.searched for question in questions], deep, where)


def asked(
    searcher: BaseSearcher,
    questions: Sequence[AskedText],
    lists: Sequence[list[RetrievalResult]],
    settings: StudySettings,
    method: str,
    subject: str,
    describing: tuple[BaseSearcher, Sequence[list[RetrievalResult]]] | None = None,
) -> list[list[Answers]]:
    """Return the passages of each question in the form of the files."""
    chunks = []
    for number, ((text, searched), hits) in enumerate(zip(questions, lists, strict=True)):
        kept = cut(hits, settings)
        best = f", best {kept[0].score:.3f}" if kept else ""
        note(logging.INFO, method, f"{subject}: {len(hits)} chunks evaluated, {len(kept)} kept{best}: {text[:120]}")
        explained = searcher.explain(searched, kept)
        if describing is not None:
            signals = {other.item.item_id: other.signals for other in describing[1][number]}
            kept = [hit.model_copy(update={"signals": signals.get(hit.item.item_id, {}) | hit.signals}) for hit in kept]
        marks = _matches(describing[0] if describing else searcher, text, kept)
        chunks.append([chunk_of(*parts) for parts in zip(kept, marks, explained, strict=True)])
    return chunks


def cut(hits: Iterable[RetrievalResult], settings: StudySettings) -> list[RetrievalResult]:
    """Return the hits that are good enough by the combined score of all signals, in their order; those without one are kept."""
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


def warn_of_limits(searcher: BaseSearcher, least: float, given: float | None) -> None:
    """Warn if ``min_similarity``, which a caller may have given, cannot have its full effect with a searcher's reranker."""
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
    if not isinstance(reranker, MultiSignalReranker):
        return [[] for _ in hits]
    return [
        [
            {"group": match.group, "begin": match.begin, "end": match.end, "text": match.text}
            for match in reranker.matches(text, hit.item.content)
        ]
        for hit in hits
    ]
