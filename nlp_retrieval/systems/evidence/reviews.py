"""Reviews of citations, kept in the project: who accepted or rejected what, and when.

A review belongs to a sentence, what it cites, and the version of the source's text; the last one stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from nlp_retrieval.core import DatabaseFile, normalize
from nlp_retrieval.errors import IndexDamagedError, InputError, nearest
from nlp_retrieval.systems.evidence.citations.report import Citation
from nlp_retrieval.systems.evidence.index.store import SourceVersion, now
from nlp_retrieval.text import visible

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

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
