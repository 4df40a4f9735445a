"""Auditing every citation of a report against the text of its own source.

A citation is judged by the cited source alone: not by a search over all sources, and not by a similarity score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import ClassVar, Literal

from nlp_retrieval.core import ByKey
from nlp_retrieval.errors import QueryError
from nlp_retrieval.systems.evidence.citations.report import Citation, CitedReport, cited_claims, read_report
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.store import SourceVersion
from nlp_retrieval.systems.evidence.lookups.checks import Reason
from nlp_retrieval.systems.evidence.reviews import Review, Reviews
from nlp_retrieval.systems.evidence.verdict.claims import judge_passages
from nlp_retrieval.systems.evidence.verdict.deciding import (
    MOST_TOGETHER,
    DecidedBy,
    Decider,
    Question,
    Together,
    Verdict,
    judged_together,
)
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.text import listed, words_of

# Rows of an audit, and their summary.

AuditStatus = Literal["PASS", "WEAK", "REVIEW", "SOURCE_NOT_INDEXED"]
STATUSES: dict[AuditStatus, str] = {
    "PASS": "passed",
    "WEAK": "weak",
    "REVIEW": "to review",
    "SOURCE_NOT_INDEXED": "not indexed",
}
_STATUS: dict[Verdict, AuditStatus] = {"supported": "PASS", "weak": "WEAK"}
AuditReason = Reason | Literal["another source", "changed source", "too long", "no reference", "deleted source"]


@dataclass(frozen=True)
class AuditRow(ByKey):
    """Result of an audit for one citation; it is read by key, too: ``row["status"]``, ``row["actual_passage"]``.

    ``passage`` is the nearest one of its source, ``sentence`` the span of what decides in it, and ``part`` what of the claim
    this source supports, where only several together support all of it.
    """

    citation: Citation
    status: AuditStatus
    reason: AuditReason
    support_score: float
    passage: EvidencePassage | None
    sentence: tuple[int, int]
    other_source: str
    detail: str
    decided_by: DecidedBy = ""
    review: Review | None = None
    part: str = ""

    also: ClassVar = ("claim", "cited_url", "actual_passage", "page")

    @property
    def claim(self) -> str:
        """Return the sentence that was audited."""
        return self.citation.sentence

    @property
    def cited_url(self) -> str:
        """Return the URL that it cites; empty if there is none."""
        return self.citation.url

    @property
    def actual_passage(self) -> str | None:
        """Return the text of the nearest passage of the cited source; None if the source is not in the index."""
        return None if self.passage is None else self.passage.content

    @property
    def page(self) -> str:
        """Return the pages of the deciding sentence: ``"p. 12"``; empty if the source has no pages."""
        return "" if self.passage is None else self.passage.page_of(*(self.sentence if any(self.sentence) else ()))

    @property
    def decision(self) -> str:
        """Return the decision of a reviewer: "accepted" or "rejected"; empty if none stands."""
        return "" if self.review is None else self.review.decision

    @property
    def result(self) -> str:
        """Return the result in two or three words: the decision of a reviewer, the reason, or the status."""
        return self.decision or self.reason or STATUSES[self.status]

    @property
    def passes(self) -> bool:
        """Return whether it passed and nobody rejected it, or a reviewer accepted it."""
        return self.decision == "accepted" or (self.status == "PASS" and not self.decision)

    @property
    def is_weak(self) -> bool:
        """Return whether its source supports it weakly and no reviewer decided about it."""
        return self.status == "WEAK" and not self.decision

    @property
    def to_review(self) -> bool:
        """Return whether it neither passes nor is weak, as reviewers left it."""
        return not self.passes and not self.is_weak


@dataclass(frozen=True)
class CitationAudit:
    """An audit of a report."""

    report: CitedReport
    rows: list[AuditRow]


_LONGEST_SOURCE = 40_000
"""Longest source that is read whole, in characters; of a longer one, only the passages that a search in it finds are read."""

_PASSAGES_OF_LONG_SOURCE = 60
_OTHER_SOURCES = 8
_EARLIER_VERSIONS = 5
_LONGEST_SENTENCE = 2_000
"""Longest sentence, in characters; a sentence that a verifier reads only in part must not pass."""


_Begins = list[tuple[int, EvidencePassage]]
"""Passages of a source, and where each begins in what is read of it."""


class CitationAuditor:
    """Audits the citations of reports.

    What can be looked up overrules the verifier: every number, date and quotation of the sentence has to be in the source, no
    number only for something else, and no sentence of the source may say the same except for a negation, an opposite word, or a
    name that the source lacks. Where nothing is against a citation, it passes if the source says it word for word, or if the
    verifier is sure; it is weak from the threshold on. Where a sentence has several sources, each counts that supports a part
    of it, if together they support all of it.

    Args:
        index: of the sources.
        verifier: judges a sentence by the text of a source.
        threshold: the least probability of support of a weak citation; by default that of the verifier's calibration.

    Raises:
        ConfigurationError: the threshold is not between 0 and 1.

    Examples:
        >>> audit = CitationAuditor(index, LexicalVerifier()).audit(Path("report.md").read_text())
        >>> [(row.citation.mark, row.status, row.reason) for row in audit.rows]
        [('1', 'PASS', ''), ('2', 'REVIEW', 'other number')]
    """

    def __init__(self, index: EvidenceIndex, verifier: BaseVerifier, threshold: float | None = None) -> None:
        self.index, self.verifier, self.reviews = index, verifier, Reviews(index)
        self._decider = Decider(verifier, threshold)

    @property
    def rule(self) -> str:
        """Return the rule for passing, as a sentence for people."""
        half = " (half of that with a figure of the source)" if self._decider.by_words else ""
        return (
            f"Judged by {self.verifier.name}: a citation passes word for word, or with a support of at least "
            f"{self._decider.sure:.2f}, and is weak from {self._decider.threshold:.2f}{half}, if its numbers, dates and "
            "quotations are in the source and no negation, opposite word or other name separates claim and source. A weak one "
            f"may be wrong: read it, or use a better verifier. {self.verifier.cannot_see}"
        ).strip()

    def audit(
        self,
        report: str | CitedReport | Sequence[Mapping[str, object]],
        progress: Callable[[int, int], object] | None = None,
    ) -> CitationAudit:
        """Audit a report.

        Args:
            report: Markdown, or a report that was read; or claims as dicts with ``text`` and ``cited_url``, one URL or several.
            progress: called with the number of citations done, and the number of all.

        Raises:
            InputError: a claim lacks its text or its URL.
        """
        if not isinstance(report, str | CitedReport):
            report = cited_claims(report)
        read = self.located(read_report(report) if isinstance(report, str) else report)
        rows: list[AuditRow] = []
        judged: dict[tuple[str, str, str, bool], AuditRow] = {}
        for citation in read.citations:
            same = (citation.sentence, citation.url, citation.mark, citation.quoted)
            if same not in judged:
                judged[same] = self.row(citation)
            rows.append(replace(judged[same], citation=citation))
            if progress is not None:
                progress(len(rows), len(read.citations))
        for sentence in read.sentences:
            if 1 < len(sentence.citations) <= MOST_TOGETHER:
                there = slice(sentence.citations[0] - 1, sentence.citations[-1])
                rows[there] = self._together(rows[there])
        return CitationAudit(read, [replace(row, review=self.reviews.of(row.citation)) for row in rows])

    def located(self, report: CitedReport) -> CitedReport:
        """Return a report whose citations have the address under which the index has their work.

        Of several addresses that is the first with a text. A work without one is looked for by its title: among all sources if
        its reference has no address, else among files, since a page under another address is another page. The report's notes
        name the sources that were found so.
        """
        urls: dict[tuple[str, tuple[str, ...], str], str] = {}
        by_title: list[str] = []
        titled: TitledSources | None = None
        for citation in report.citations:
            work = (citation.url, citation.other_urls, citation.title)
            if work in urls:
                continue
            addresses = [url for url in (citation.url, *citation.other_urls) if url]
            urls[work] = next((url for url in addresses if self.index.source(url) is not None), "")
            if not urls[work] and citation.title and not any(map(self.index.was_deleted, addresses)):
                titled = titled or TitledSources(self.index.sources())
                named = titled.named_in(citation.title)
                if named is not None and (not addresses or named.url.startswith("file:")):
                    urls[work] = named.url
                    by_title.append(_mark(citation))
        citations = [replace(one, url=urls[one.url, one.other_urls, one.title] or one.url) for one in report.citations]
        if not by_title:
            return replace(report, citations=citations)
        note = f"nothing is stored under their address, so these are judged by the source with their title: {listed(by_title)}"
        return replace(report, citations=citations, notes=[*report.notes, note])

    def row(self, citation: Citation) -> AuditRow:
        """Audit one citation."""
        if not citation.url:
            problem = citation.problem or f"{_mark(citation)} has no entry with a URL, or with the title of just one source"
            return _unread(citation, "REVIEW", "no reference", problem)
        source = self.index.source(citation.url)
        if source is None:
            return self._not_indexed(citation)
        if len(citation.sentence) > _LONGEST_SENTENCE:
            problem = f"the sentence has {len(citation.sentence):,} characters, and at most {_LONGEST_SENTENCE:,} are judged"
            return _unread(citation, "REVIEW", "too long", f"{problem}; split it up")
        try:
            return self._judged(citation, source)
        except QueryError:
            if self.index.source(citation.url) is not None:
                raise
            return self._not_indexed(citation)  # another process deleted it since it was looked up

    def _judged(self, citation: Citation, source: SourceVersion) -> AuditRow:
        question, begins = self._question(citation, source)
        (decision,) = self._decider.decide([question])
        passage, span = _passage_at(begins, decision.judgement.sentence)
        support = decision.judgement.support
        if (status := _STATUS.get(decision.verdict)) is not None:
            return AuditRow(citation, status, "", support, passage, span, "", decision.detail, decision.decided_by)
        reason: AuditReason = decision.reason
        other, detail = "", decision.detail
        since = self._supporting_version(citation)
        if since:
            reason, detail = "changed source", f"{since} supports this, the newest does not: {detail}"
        elif (
            decision.verdict == "not found" and not citation.quoted and (other := self._other_source(citation.sentence, source))
        ):
            reason, detail = "another source", "another indexed source supports this"
        return AuditRow(citation, "REVIEW", reason, support, passage, span, other, detail, decision.decided_by)

    def _together(self, rows: list[AuditRow]) -> list[AuditRow]:
        """Return the rows of a sentence, those that no source supports alone judged by all its sources together."""
        judged = [number for number, row in enumerate(rows) if row.passage is not None]
        citations = [rows[number].citation for number in judged]
        sources = [source for citation in citations if (source := self.index.source(citation.url)) is not None]
        passed = not any(rows[number].to_review for number in judged)
        if passed or len({source.key for source in sources}) < 2 or len(sources) < len(judged):
            return rows
        read = [self._question(each, source) for each, source in zip(citations, sources, strict=True)]
        result = judged_together(self._decider, [question for question, _ in read], [each.place for each in citations])
        done = list(rows)
        for at, number in enumerate(judged):
            if rows[number].to_review:
                others = listed([_mark(rows[other].citation) for other in judged if other != number])
                done[number] = _as_part(rows[number], result, at, others, _passage_at(read[at][1], result.spans[at]))
        return done

    def _question(self, citation: Citation, source: SourceVersion, *, newest: bool = True) -> tuple[Question, _Begins]:
        """Ask by the whole stored text of a short source; of a long one by the passages nearest to the claim, in order."""
        text, passages = self.index.read(source)
        whole = f"{source.title}\n\n{text}"
        if len(text) <= _LONGEST_SOURCE:
            question = Question(citation.sentence, text, whole, citation.quoted)
            return question, [(passage.start, passage) for passage in passages]
        searched = self.index.search_source(citation.sentence, citation.url, _PASSAGES_OF_LONG_SOURCE) if newest else []
        starts = {window.start for window in searched}
        chosen = [window for window in passages if window.start in starts] or _sharing_most_words(citation.sentence, passages)
        begins, length = [], 0
        for window in chosen:
            begins.append((length, window))
            length += len(window.content) + 2
        read = "\n\n".join(window.content for window in chosen)
        return Question(citation.sentence, read, whole, citation.quoted), begins

    def _supporting_version(self, citation: Citation) -> str:
        """Return the earlier version of a source that would have supported its citation, in words; empty if none."""
        for version in reversed(self.index.versions(citation.url)[:-1][-_EARLIER_VERSIONS:]):
            question, _ = self._question(citation, version, newest=False)
            if self._decider.decide([question])[0].holds:
                return f"the version fetched {version.fetch_date}" if version.fetch_date else "an earlier version"
        return ""

    def _not_indexed(self, citation: Citation) -> AuditRow:
        if self.index.was_deleted(citation.url):
            return _unread(citation, "SOURCE_NOT_INDEXED", "deleted source", "the source under this URL was deleted")
        return _unread(citation, "SOURCE_NOT_INDEXED", "", "no text was stored under this URL")

    def _other_source(self, claim: str, source: SourceVersion) -> str:
        """Return the address of another source with a passage that supports the claim; empty if none is found."""
        others = [candidate for candidate in self.index.search(claim, _OTHER_SOURCES) if candidate.key != source.key]
        judged = judge_passages(self._decider, self.index, claim, others)
        judged.sort(key=lambda candidate: -candidate.judgement.support)
        return next((candidate.passage.url for candidate in judged if candidate.decision.holds), "")


def _as_part(
    row: AuditRow, result: Together, at: int, others: str, there: tuple[EvidencePassage | None, tuple[int, int]]
) -> AuditRow:
    """Return the row of a source that was judged beside others."""
    part, joined = ", ".join(result.parts[at]), result.joined
    if not result.supports:
        nobody = "; ".join(f"\u201c{text}\u201d" for text in result.open_parts)
        detail = f"with {others}: " + (f"no source supports {nobody}" if nobody else joined.detail)
        return replace(row, reason=joined.reason, detail=detail, part=part) if part else row
    if not part:
        return replace(row, reason="not found", detail=f"beside {others}, this source adds nothing", other_source="")
    return replace(
        row,
        status=_STATUS.get(joined.verdict, "WEAK"),
        reason="",
        support_score=joined.judgement.support,
        passage=there[0],
        sentence=there[1],
        other_source="",
        detail=f"with {others}: this source supports \u201c{part}\u201d",
        decided_by=joined.decided_by,
        part=part,
    )


def _mark(citation: Citation) -> str:
    """Return the name of a citation in a sentence for people."""
    return f"[{citation.mark}]" if citation.mark else citation.title or citation.url


def _unread(citation: Citation, status: AuditStatus, reason: AuditReason, detail: str) -> AuditRow:
    return AuditRow(citation, status, reason, 0.0, None, (0, 0), "", detail)


def _passage_at(begins: _Begins, sentence: tuple[int, int]) -> tuple[EvidencePassage | None, tuple[int, int]]:
    """Return the passage that holds most of a sentence of the text, and the sentence's span in it."""
    best, span, most = None, (0, 0), -1
    for begin, passage in begins:
        start, end = max(0, sentence[0] - begin), min(len(passage.content), sentence[1] - begin)
        if end - start > most:
            best, span, most = passage, (max(0, start), max(0, start, end)), end - start
    return best, span


def _sharing_most_words(claim: str, passages: list[EvidencePassage]) -> list[EvidencePassage]:
    """Return the passages that share most words with a claim, in order; for a text that the index does not hold."""
    wanted = set(words_of(claim))
    shared = [len(wanted.intersection(words_of(passage.content))) for passage in passages]
    best = sorted(range(len(passages)), key=lambda number: -shared[number])[:_PASSAGES_OF_LONG_SOURCE]
    return [passages[number] for number in sorted(best)]


# Finding the source that a reference names by its title alone, as lists without links name a paper or a report.

_FEWEST_WORDS = 4
"""Words of a title; shorter ones, such as "Annual Report 2023", are those of many works."""

_LONGEST_ENTRY, _MOST_PARTS = 2_000, 60

_PART = re.compile(r"\s[|\u2013\u2014-]\s")
"""Between a title and the name of its site ("... | Example News"), or after an author and a year ("Smith - 2020 - ...")."""

_ENDS = re.compile(
    r"[.,;:!?()\[\]\"\u201c\u201d\u201e\u00ab\u00bb|/]+(?=\s|\Z)|(?:\s|\A)[\"(\[\u201c\u201e\u00ab\u2018]|\s[\u2013\u2014-]\s"
)
"""Where a title in an entry begins or ends."""


class TitledSources:
    """Sources by the titles that an entry may have, from one punctuation mark to another; of several the longest counts."""

    def __init__(self, sources: Iterable[SourceVersion]) -> None:
        self._sources: dict[tuple[str, ...], dict[str, SourceVersion]] = {}
        for source in sources:
            title = source.title.replace("_", " ")  # that of a file without a title is its name
            for words in {words_of(title), *map(words_of, _PART.split(title))}:
                if len(words) >= _FEWEST_WORDS:
                    self._sources.setdefault(words, {})[source.url] = source

    def named_in(self, entry: str) -> SourceVersion | None:
        """Return the only source whose title an entry has; None if there is none, or several."""
        parts = [words_of(part) for part in _ENDS.split(entry[:_LONGEST_ENTRY])[:_MOST_PARTS]]
        spans = combinations(range(len(parts) + 1), 2)  # a title may have punctuation of its own
        titles = {tuple(chain.from_iterable(parts[first:last])) for first, last in spans} & self._sources.keys()
        sources = list(self._sources[max(titles, key=len)].values()) if titles else []
        return sources[0] if len(sources) == 1 else None
