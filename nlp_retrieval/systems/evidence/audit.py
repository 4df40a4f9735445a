"""Auditing every citation of a report against the text of its own source, and people's reviews of the results.

A citation is judged by the cited source alone: not by a search over all sources, and not by a similarity score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import ClassVar, Literal, get_args

from nlp_retrieval.core import ByKey, DatabaseFile, normalize
from nlp_retrieval.errors import IndexDamagedError, InputError, nearest
from nlp_retrieval.systems.evidence.citations.report import Citation, CitedReport, cited_claims, read_report
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex, SourceReading
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.store import SourceVersion, now
from nlp_retrieval.systems.evidence.lookups.checks import Reason
from nlp_retrieval.systems.evidence.verdict.claims import judge_passages, stored_texts
from nlp_retrieval.systems.evidence.verdict.deciding import (
    MOST_TOGETHER,
    Decider,
    Decision,
    Question,
    Together,
    Verdict,
    judged_together,
)
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.text import listed, visible, words_of

# Reviews of citations, kept in the project: who accepted or rejected what, and when. A review belongs to a sentence, what it
# cites, and the version of the source's text; the last one counts.

ReviewDecision = Literal["accepted", "rejected", "withdrawn"]
"""What a reviewer decided; "withdrawn" takes the decision back, so that the citation is open again."""

REVIEWS_FILE = Path("09_qa") / "reviews.sqlite3"


@dataclass(frozen=True)
class Review:
    """One decision of one reviewer."""

    decision: ReviewDecision
    note: str
    by: str
    date: str

    @property
    def said(self) -> str:
        """Return the decision as words: ``"accepted by Ann on 2026-11-27"``, with the note."""
        return f"{self.decision} by {self.by} on {self.date[:10]}" + (f": \u201c{self.note}\u201d" if self.note else "")


class ReviewDatabase(DatabaseFile):
    """The file of a project's reviews."""

    tables: ClassVar[Mapping[str, str]] = {
        "reviews": "CREATE TABLE reviews (id INTEGER PRIMARY KEY, sentence TEXT NOT NULL, cited TEXT NOT NULL, "
        "version TEXT NOT NULL, decision TEXT NOT NULL, note TEXT NOT NULL, reviewer TEXT NOT NULL, moment TEXT NOT NULL)",
        "of_a_citation": "CREATE INDEX of_a_citation ON reviews (cited, sentence, version)",
    }
    application: ClassVar[int] = 0x6E6C7276
    version: ClassVar[int] = 3
    remedy: ClassVar[str] = "review the citations again"


class Reviews:
    """The reviews of a project, in ``09_qa/reviews.sqlite3``. Several people and processes may add some at once.

    Args:
        index: of the project's sources.

    Examples:
        >>> auditor = CitationAuditor(index, LexicalVerifier())
        >>> report = auditor.audit(Path("report.md").read_text()).report
        >>> Reviews(index).add(report.citations[1], "rejected", by="Ann", note="It weighs 3.").decision
        'rejected'
        >>> [(row.review and row.review.decision, row.passes) for row in auditor.audit(report).rows]
        [(None, True), ('rejected', False)]
    """

    def __init__(self, index: EvidenceIndex) -> None:
        self.index = index
        self._database = ReviewDatabase(index.project_path / REVIEWS_FILE)

    def add(self, citation: Citation, decision: ReviewDecision, by: str, note: str = "") -> Review:
        """Add a decision, dated now; it is on the disk when this returns.

        Args:
            citation: of a report.
            decision: "accepted", "rejected" or "withdrawn".
            by: the reviewer's name.
            note: in the reviewer's words.

        Raises:
            InputError: the decision or the name cannot be used.
            IndexLockedError: another process has been writing for a minute.
            IndexWriteError: the project cannot be written to.
        """
        if decision not in get_args(ReviewDecision):
            raise InputError(f"decision={visible(decision)!r}; {nearest(decision, get_args(ReviewDecision))}")
        review = Review(decision, _line(note), _line(by), now())
        if not review.by:
            raise InputError("a review needs the name of its reviewer")
        with self._database.changing() as connection:
            connection.execute(
                "INSERT INTO reviews (sentence, cited, version, decision, note, reviewer, moment) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*_key(citation, self.index.source(citation.url)), *astuple(review)),
            )
        return review

    def of(self, citation: Citation, source: SourceVersion | None) -> Review | None:
        """Return the last review of a citation of a source; None if there is none, or it was withdrawn."""
        stored = self._database.rows(
            "SELECT decision, note, reviewer, moment FROM reviews WHERE sentence = ? AND cited = ? AND version = ? "
            "ORDER BY id DESC LIMIT 1",
            _key(citation, source),
        )
        if not stored:
            return None
        if not all(isinstance(value, str) for value in stored[0]) or stored[0][0] not in get_args(ReviewDecision):
            raise IndexDamagedError("the file of reviews holds one that this package did not write; it was tampered with")
        review = Review(*stored[0])
        return None if review.decision == "withdrawn" else review

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        self._database.close()


def _key(citation: Citation, source: SourceVersion | None) -> tuple[str, str, str]:
    """Return what a review is about: a sentence (">" if quoted), the URL or mark that it cites, and the text's SHA-256."""
    cited = (citation.url or f"[{citation.mark}]", "") if source is None else (source.canonical, source.sha256)
    said = ">" * citation.quoted + " ".join(citation.sentence.split())
    sentence, address = (text.encode("utf-8", "replace").decode() for text in (said, cited[0]))
    return sentence, address, cited[1]


def _line(text: str) -> str:
    """Return a text on one line without invisible characters."""
    return " ".join(visible(normalize("NFC", text)).split())


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
    """Result of an audit for one citation, with the nearest passage of its source, and the span of what decides in it."""

    citation: Citation
    status: AuditStatus
    reason: AuditReason = ""
    support_score: float = 0.0
    passage: EvidencePassage | None = None
    sentence: tuple[int, int] = (0, 0)
    other_source: str = ""
    detail: str = ""
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


_OTHER_SOURCES = 8
_EARLIER_VERSIONS = 5
_LONGEST_SENTENCE = 2_000
"""Longest sentence, in characters; a sentence that a verifier reads only in part must not pass."""


class CitationAuditor:
    """Audits the citations of reports.

    What can be looked up overrules the verifier: numbers, dates, quotations and names that the source lacks, and a negation, an
    opposite word or another subject in it. Where nothing is against a citation, it passes if the source says it word for word,
    or if the verifier is sure; it is weak from the threshold on. Of several sources of a sentence, each counts that supports a
    part of it, if together they support all of it.

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
        read = read_report(report) if isinstance(report, str) else report
        works = _CitedSources(self.index)
        judged: dict[Citation, AuditRow] = {}  # by what is the same of a citation wherever it is: judging is the costly part
        rows: list[AuditRow] = []
        sources: list[SourceVersion | None] = []
        for cited in read.citations:
            url, source = works.find(cited)
            citation = replace(cited, url=url)
            anywhere = replace(citation, number=0, line=0, place=0)
            if anywhere not in judged:
                judged[anywhere] = self._row(citation, source)
            rows.append(replace(judged[anywhere], citation=citation))
            sources.append(source)
            if progress is not None:
                progress(len(rows), len(read.citations))
        for sentence in read.sentences:
            if 1 < len(sentence.citations) <= MOST_TOGETHER:
                there = slice(sentence.citations[0] - 1, sentence.citations[-1])
                rows[there] = self._together(rows[there], sources[there])
        read = works.noted(read, [row.citation for row in rows])
        reviews = [self.reviews.of(row.citation, source) for row, source in zip(rows, sources, strict=True)]
        return CitationAudit(read, [replace(row, review=review) for row, review in zip(rows, reviews, strict=True)])

    def located(self, report: CitedReport) -> CitedReport:
        """Return a report whose citations have the address under which the index has their work."""
        works = _CitedSources(self.index)
        return works.noted(report, [replace(citation, url=works.find(citation)[0]) for citation in report.citations])

    def _row(self, citation: Citation, source: SourceVersion | None) -> AuditRow:
        """Audit one citation of a source."""
        length = len(citation.sentence)
        if not citation.url:
            problem = citation.problem or f"{_mark(citation)} has no entry with a URL, or with the title of just one source"
            return AuditRow(citation, "REVIEW", "no reference", detail=problem)
        if source is not None and length > _LONGEST_SENTENCE:
            problem = f"the sentence has {length:,} characters, and at most {_LONGEST_SENTENCE:,} are judged; split it up"
            return AuditRow(citation, "REVIEW", "too long", detail=problem)
        reading = None if source is None else self.index.reading(source, citation.sentence)
        if source is None or reading is None:
            if self.index.was_deleted(citation.url):
                problem = "the source under this URL was deleted"
                return AuditRow(citation, "SOURCE_NOT_INDEXED", "deleted source", detail=problem)
            return AuditRow(citation, "SOURCE_NOT_INDEXED", detail="no text was stored under this URL")
        (decision,) = self._decider.decide([Question(citation.sentence, reading.text, reading.whole, citation.quoted)])
        passage, sentence = _passage_at(reading, decision.judgement.sentence)
        status, support = _STATUS.get(decision.verdict, "REVIEW"), decision.judgement.support
        row = AuditRow(citation, status, decision.reason, support, passage, sentence, detail=decision.detail)
        return self._supported_elsewhere(row, decision, source) if status == "REVIEW" else row

    def _supported_elsewhere(self, row: AuditRow, decision: Decision, source: SourceVersion) -> AuditRow:
        """Return a row that says whether an earlier version of its source or another source supports it."""
        claim, quoted = row.claim, row.citation.quoted
        for version in reversed(self.index.versions(row.cited_url)[:-1][-_EARLIER_VERSIONS:]):
            reading = self.index.reading(version, claim)
            if reading and self._decider.decide([Question(claim, reading.text, reading.whole, quoted)])[0].holds:
                since = f"the version fetched {version.fetch_date}" if version.fetch_date else "an earlier version"
                detail = f"{since} supports this, the newest does not: {row.detail}"
                return replace(row, reason="changed source", detail=detail)
        if decision.verdict != "not found" or quoted:
            return row
        others = [candidate for candidate in self.index.search(claim, _OTHER_SOURCES) if candidate.key != source.key]
        judged = judge_passages(self._decider, stored_texts(self.index, others), claim, others)
        held = [candidate for candidate in judged if candidate.decision.holds]
        if not held:
            return row
        other = max(held, key=lambda candidate: candidate.judgement.support).passage.url
        return replace(row, reason="another source", detail="another indexed source supports this", other_source=other)

    def _together(self, rows: list[AuditRow], sources: Sequence[SourceVersion | None]) -> list[AuditRow]:
        """Return the rows of a sentence, those that no source supports alone judged by all its sources together."""
        read = [(number, source) for number, source in enumerate(sources) if source is not None and rows[number].passage]
        passed = not any(rows[number].to_review for number, _ in read)
        if passed or len({source.key for _, source in read}) < 2:
            return rows
        readings = [(number, self.index.reading(source, rows[number].citation.sentence)) for number, source in read]
        judged = [(number, rows[number].citation, reading) for number, reading in readings if reading is not None]
        if len(judged) < len(read):  # another process deleted one meanwhile
            return rows
        questions = [Question(one.sentence, reading.text, reading.whole, one.quoted) for _, one, reading in judged]
        result = judged_together(self._decider, questions, [citation.place for _, citation, _ in judged])
        done = list(rows)
        for at, (number, _, reading) in enumerate(judged):
            if rows[number].to_review:
                others = listed([_mark(citation) for other, citation, _ in judged if other != number])
                done[number] = _as_part(rows[number], result, at, others, _passage_at(reading, result.spans[at]))
        return done


def _passage_at(reading: SourceReading, sentence: tuple[int, int]) -> tuple[EvidencePassage | None, tuple[int, int]]:
    """Return the passage that holds most of a sentence of what was read, and the sentence's span in it."""
    best, span, most = None, (0, 0), -1
    for begin, passage in reading.begins:
        start, end = max(0, sentence[0] - begin), min(len(passage.content), sentence[1] - begin)
        if end - start > most:
            best, span, most = passage, (max(0, start), max(0, start, end)), end - start
    return best, span


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
        part=part,
    )


def _mark(citation: Citation) -> str:
    """Return the name of a citation in a sentence for people."""
    return f"[{citation.mark}]" if citation.mark else citation.title or citation.url


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


class _CitedSources:
    """The sources of an index that citations name: by the first address with a text, else by their title.

    By its title, a work with an address is looked for among files alone: a page under another address is another page.
    """

    def __init__(self, index: EvidenceIndex) -> None:
        self._index = index
        self._found: dict[tuple[str, tuple[str, ...], str], tuple[str, SourceVersion | None]] = {}
        self._titled: dict[tuple[str, ...], dict[str, SourceVersion]] | None = None
        self._by_title: list[str] = []

    def find(self, citation: Citation) -> tuple[str, SourceVersion | None]:
        """Return the address of a citation's work, and its source there; the cited address and None if there is none."""
        work = (citation.url, citation.other_urls, citation.title)
        if work not in self._found:
            addresses = [url for url in (citation.url, *citation.other_urls) if url]
            stored = ((url, source) for url in addresses if (source := self._index.source(url)) is not None)
            self._found[work] = next(stored, None) or self._find_by_title(citation, addresses)
        return self._found[work]

    def _find_by_title(self, citation: Citation, addresses: Sequence[str]) -> tuple[str, SourceVersion | None]:
        if citation.title and not any(map(self._index.was_deleted, addresses)):
            named = self._named_in(citation.title)
            if named is not None and (not addresses or named.url.startswith("file:")):
                self._by_title.append(_mark(citation))
                return named.url, named
        return citation.url, None

    def _named_in(self, entry: str) -> SourceVersion | None:
        """Return the only source whose title an entry has; None if there is none, or several."""
        if self._titled is None:
            self._titled = {}
            for source in self._index.sources():
                title = source.title.replace("_", " ")  # that of a file without a title is its name
                for words in {words_of(title), *map(words_of, _PART.split(title))}:
                    if len(words) >= _FEWEST_WORDS:
                        self._titled.setdefault(words, {})[source.url] = source
        parts = [words_of(part) for part in _ENDS.split(entry[:_LONGEST_ENTRY])[:_MOST_PARTS]]
        spans = combinations(range(len(parts) + 1), 2)  # a title may have punctuation of its own
        titles = {tuple(chain.from_iterable(parts[first:last])) for first, last in spans} & self._titled.keys()
        sources = list(self._titled[max(titles, key=len)].values()) if titles else []
        return sources[0] if len(sources) == 1 else None

    def noted(self, report: CitedReport, citations: list[Citation]) -> CitedReport:
        """Return a report with its citations as they were found, and a note that names those found by their titles."""
        judged = "nothing is stored under their address, so these are judged by the source with their title"
        notes = [f"{judged}: {listed(self._by_title)}"] if self._by_title else []
        return replace(report, citations=citations, notes=[*report.notes, *notes])
