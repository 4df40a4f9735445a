"""Reviews of citations, kept in the project: who accepted, rejected or noted what, and when.

A review belongs to a sentence, what it cites, and the version of the source's text. It survives a new audit as long as these
are the same, wherever the sentence is in the report and whatever number the citation has. If the sentence or the text changes,
the citation is open again, and says who had reviewed it. Nothing is overwritten: a decision that is taken back stays in the
history.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast, get_args

from nlp_retrieval.core import DatabaseFile, DatabaseRow, normalize
from nlp_retrieval.errors import IndexDamagedError, InputError, nearest
from nlp_retrieval.systems.evidence.citations.report import Citation
from nlp_retrieval.systems.evidence.index.store import now
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.text import fold, visible

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

Decision = Literal["accepted", "rejected", "noted", "withdrawn"]
"""What a reviewer said; "withdrawn" takes back all that the same reviewer said about the citation before."""

REVIEWS_FILE = Path("09_qa") / "reviews.sqlite3"

_LONGEST_SENTENCE, _LONGEST_CITED = 2_000, 9_000


@dataclass(frozen=True)
class ReviewedCitation:
    """What a review is about: a sentence, the URL or the mark in brackets that it cites, and the SHA-256 of that text."""

    sentence: str
    cited: str
    version: str


@dataclass(frozen=True)
class Review(ReviewedCitation):
    """One decision of one reviewer."""

    decision: Decision
    note: str
    by: str
    date: str

    @property
    def said(self) -> str:
        """Return the decision as words: ``"accepted by Ann on 2026-11-27"``, with the note."""
        return f"{self.decision} by {self.by} on {self.date[:10]}" + (f": \u201c{self.note}\u201d" if self.note else "")


@dataclass(frozen=True)
class CitationReview:
    """What reviewers said about a citation, oldest first; ``earlier`` stood on an earlier version of its source."""

    of: ReviewedCitation
    history: tuple[Review, ...] = ()
    earlier: Review | None = None

    @property
    def standing(self) -> list[Review]:
        """Return the last acceptance or rejection of each reviewer that was not taken back, oldest first."""
        latest: dict[str, Review] = {}
        for review in self.history:
            if review.decision != "noted":
                latest.pop(review.by, None)
            if review.decision in ("accepted", "rejected"):
                latest[review.by] = review
        return list(latest.values())

    @property
    def notes(self) -> list[Review]:
        """Return the notes that were not taken back, oldest first."""
        notes: list[Review] = []
        for review in self.history:
            if review.decision == "withdrawn":
                notes = [note for note in notes if note.by != review.by]
            elif review.decision == "noted":
                notes.append(review)
        return notes

    @property
    def decision(self) -> Literal["accepted", "rejected", "noted", ""]:
        """Return the decision that stands: the last acceptance or rejection, else "noted" if there are notes."""
        if self.standing:
            return "accepted" if self.standing[-1].decision == "accepted" else "rejected"
        return "noted" if self.notes else ""

    @property
    def is_disputed(self) -> bool:
        """Return whether one reviewer accepts what another rejects."""
        return len({review.decision for review in self.standing}) > 1

    @property
    def said(self) -> str:
        """Return all of it as a sentence for people, without an end; empty if nobody reviewed it."""
        if not self.history and self.earlier is not None:
            return f"reviewed on an earlier version: {self.earlier.said}; the source has changed"
        parts = [review.said for review in reversed(self.standing)]
        if self.is_disputed:
            parts.append("the reviewers disagree, and the last decision stands")
        return "; ".join([*parts, *(note.said for note in self.notes)])


_COLUMNS = "sentence, cited, version, decision, note, reviewer, moment"


class ReviewDatabase(DatabaseFile):
    """The file of a project's reviews."""

    tables: ClassVar[Mapping[str, str]] = {
        "reviews": "CREATE TABLE reviews (id INTEGER PRIMARY KEY, sentence TEXT NOT NULL, cited TEXT NOT NULL, "
        "version TEXT NOT NULL, decision TEXT NOT NULL, note TEXT NOT NULL, reviewer TEXT NOT NULL, moment TEXT NOT NULL, "
        "UNIQUE (cited, sentence, version, decision, note, reviewer, moment))",
    }
    application: ClassVar[int] = 0x6E6C7276
    version: ClassVar[int] = 1
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
        >>> [(row.review.decision, row.passes) for row in auditor.audit(report).rows]
        [('', True), ('rejected', False)]
    """

    def __init__(self, index: EvidenceIndex) -> None:
        self.index = index
        self._database = ReviewDatabase(index.project_path / REVIEWS_FILE)

    def citation(self, citation: Citation) -> ReviewedCitation:
        """Return what a review of a citation would be about.

        Args:
            citation: of a report.
        """
        cited = _cited(citation.url) or f"[{normal_sentence(citation.mark)}]"[:_LONGEST_CITED]
        return ReviewedCitation(normal_sentence(citation.sentence), cited, self.index.digest(citation.url))

    def add(self, citation: Citation | ReviewedCitation, decision: Decision, by: str, note: str = "") -> Review:
        """Add a decision, dated now; it is on the disk when this returns.

        Args:
            citation: of a report, or as :meth:`citation` returns it.
            decision: "accepted", "rejected", "noted" or "withdrawn".
            by: the reviewer's name.
            note: in the reviewer's words; needed for "noted".

        Raises:
            InputError: a value cannot be used, or the citation is of a text that the project does not have.
            IndexLockedError: another process has been writing for a minute.
            IndexWriteError: the project cannot be written to.
        """
        of = self.citation(citation) if isinstance(citation, Citation) else citation
        review = _checked(of, decision, by, note)
        if reason := self._unknown(review):
            raise InputError(reason)
        with self._database.changing() as connection:
            connection.execute(f"INSERT OR IGNORE INTO reviews ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(review))  # noqa: S608
        return review

    def all(self) -> list[Review]:
        """Return every review, oldest first."""
        return _reviews(self._database.rows(f"SELECT {_COLUMNS} FROM reviews ORDER BY moment, id"))  # noqa: S608

    def of(self, citations: Sequence[Citation]) -> list[CitationReview]:
        """Return what was said about each citation of a report.

        Args:
            citations: all of the report.
        """
        known: dict[tuple[str, str, str], ReviewedCitation] = {}
        by_cited: dict[str, list[Review]] = {}
        select = f"SELECT {_COLUMNS} FROM reviews WHERE cited = ? ORDER BY moment, id"  # noqa: S608
        found = []
        for citation in citations:
            same = (citation.url, citation.mark, citation.sentence)
            of = known[same] = known.get(same) or self.citation(citation)
            if of.cited not in by_cited:
                by_cited[of.cited] = _reviews(self._database.rows(select, (of.cited,)))
            found.append(_review_of(of, by_cited[of.cited]))
        return found

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        self._database.close()

    def _unknown(self, review: Review) -> str:
        """Return why a review cannot be of a citation of this project; empty if it can."""
        if review.cited.startswith("["):
            return "" if not review.version else f"{visible(review.cited[:80])} has no URL, and so no version of a text"
        if not review.version:
            known = bool(self.index.versions(review.cited))
            return f"the text of {visible(review.cited[:200])} was added since; audit the report again" if known else ""
        page = review.cited.partition("#")[0]
        if page not in (url.partition("#")[0] for url in self.index.urls(review.version)):
            return f"this project has no text {review.version[:12]} of {visible(review.cited[:200])}"
        return ""


def normal_sentence(sentence: str) -> str:
    """Return a sentence with single spaces and one form of quotation mark and dash; of a long one, its beginning and digest."""
    normal = fold(normalize("NFC", sentence)).folded.strip()
    if len(normal) <= _LONGEST_SENTENCE:
        return normal
    digest = hashlib.sha256(normal.encode("utf-8", "replace")).hexdigest()
    return f"{normal[: _LONGEST_SENTENCE - len(digest) - 1]}\u2026{digest}"


_LONGEST = {"sentence": 4_000, "cited": _LONGEST_CITED, "version": 64, "note": 10_000, "by": 200}


def _checked(of: ReviewedCitation, decision: str, by: str, note: str) -> Review:
    """Return a review of values from anywhere; an InputError if one cannot be used."""
    for name, value in (*asdict(of).items(), ("note", note), ("by", by)):
        if len(value) > _LONGEST[name]:
            raise InputError(f'"{name}" has {len(value):,} characters, and at most {_LONGEST[name]:,} are kept')
    note, by = _line(note), " ".join(normalize("NFC", by).split())
    if decision not in get_args(Decision):
        raise InputError(f"decision={visible(decision)!r}; {nearest(decision, get_args(Decision))}")
    if not by or visible(by) != by:
        raise InputError(f"a review needs the name of its reviewer in visible characters, not {visible(by)!r}")
    if decision == "noted" and not note:
        raise InputError("a note is empty; write what is to be kept")
    if not re.fullmatch("([0-9a-f]{64})?", of.version):
        raise InputError('"version" is not a SHA-256 in 64 hexadecimal digits')
    cited = of.cited if of.cited.startswith("[") else _cited(of.cited)
    if not cited:
        raise InputError('"cited" is neither a URL nor a mark in brackets')
    return Review(normal_sentence(of.sentence), _line(cited), of.version, cast(Decision, decision), note, by, now())


def _line(text: str) -> str:
    """Return a text on one line without invisible characters."""
    return " ".join(visible(normalize("NFC", text)).split())


def _cited(url: str) -> str:
    """Return the canonical form of a URL, with its fragment; empty if it is not a URL."""
    try:
        return canonical_url(url) if url else ""
    except InputError:
        return ""


def _reviews(rows: list[DatabaseRow]) -> list[Review]:
    for row in rows:
        if not all(isinstance(value, str) for value in row) or row[3] not in get_args(Decision):
            raise IndexDamagedError("the file of reviews holds one that this package did not write; it was tampered with")
    return [Review(*row) for row in rows]


def _review_of(of: ReviewedCitation, reviews: Sequence[Review]) -> CitationReview:
    """Return the reviews of a citation, or the last one on an earlier version of its source."""
    same = [review for review in reviews if review.sentence == of.sentence]
    history = tuple(review for review in same if review.version == of.version)
    return CitationReview(of, history, None if history else _last(same))


def _last(reviews: Sequence[Review]) -> Review | None:
    """Return the decision that stood last, or the last note."""
    for version in dict.fromkeys(review.version for review in reversed(reviews)):
        of_version = CitationReview(reviews[0], tuple(review for review in reviews if review.version == version))
        if said := [*of_version.notes, *of_version.standing]:
            return said[-1]
    return None
