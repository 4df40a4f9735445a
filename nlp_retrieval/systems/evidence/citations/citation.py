"""Citations that were read in a report."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Citation", "CitedReport", "Reference", "UncitedSentence"]


@dataclass(frozen=True)
class Citation:
    """One occurrence of one citation.

    Args:
        number: 1 for the first of the report.
        mark: as written: "3", the name of a footnote; empty for a plain link.
        sentence: the sentence that it is for, as plain text, without marks of citations.
        url: of what is cited; empty if the reference has none, or there is no such reference.
        title: of what is cited, by the reference.
        line: of the report, from 1.
        quoted: whether the sentence is in a block quote, so that the source must contain it word for word.
    """

    number: int
    mark: str
    sentence: str
    url: str
    title: str
    line: int
    quoted: bool = False


@dataclass(frozen=True)
class Reference:
    """An entry of the list of references, or a footnote.

    Args:
        mark: as written.
        title: the text of the entry without the URL.
        url: may be empty.
        line: of the report, from 1.
    """

    mark: str
    title: str
    url: str
    line: int


@dataclass(frozen=True)
class UncitedSentence:
    """A sentence that states a fact (a number, a date, a name) and carries no citation.

    Args:
        sentence: as plain text.
        line: of the report, from 1.
    """

    sentence: str
    line: int


@dataclass(frozen=True)
class CitedReport:
    """Citations of a report, and what is wrong with its references.

    Args:
        title: its first heading; may be empty.
        citations: every occurrence, in order.
        uncited: sentences that state a fact and carry no citation.
        missing: citations whose mark has no entry.
        unused: entries that are never cited.
        duplicates: entries whose mark an earlier entry has; the earlier one counts.
    """

    title: str
    citations: list[Citation]
    uncited: list[UncitedSentence]
    missing: list[Citation]
    unused: list[Reference]
    duplicates: list[Reference] = field(default_factory=list)
