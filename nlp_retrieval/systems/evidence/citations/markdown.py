"""Reading the citations of a Markdown report.

Read are ``[1]``, ``[S1]`` and the like with a list of references, footnotes, links, addresses and DOIs in the text, raised
numbers, authors with a year, several marks on one sentence and ranges of marks; ``(1)`` where a report has no other
numbers. Not read are code, and blocks of HTML. Text is data: nothing in it is followed, and an address that
is not ``http`` or ``https`` is never a link.
"""

from __future__ import annotations

from collections.abc import Iterator

from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.citations.blocks import blocks_of
from nlp_retrieval.systems.evidence.citations.citation import Citation, CitedReport, Reference, UncitedSentence
from nlp_retrieval.systems.evidence.citations.facts import states_fact
from nlp_retrieval.systems.evidence.citations.marks import Mark, MarkReader, author_and_year
from nlp_retrieval.systems.evidence.citations.prose import MarkedSentence, marked_sentences
from nlp_retrieval.systems.evidence.citations.references import References, references_of

__all__ = ["MAX_CHARACTERS", "read_report"]

MAX_CHARACTERS = 20_000_000
"""A longer text is not a report that a person wrote or will read."""


def read_report(text: str) -> CitedReport:
    """Return every citation of a report with the sentence that it stands on.

    Args:
        text: Markdown, up to 20 million characters.

    Raises:
        InputError: the text is longer.
        DependencyError: the Markdown parser is not installed.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the report has {len(text):,} characters, and at most {MAX_CHARACTERS:,} are read; audit it in parts")
    references = references_of(blocks_of(text))
    title, sentences = _sentences(references, MarkReader(lambda name: references.find(name) is not None))
    names = [name for sentence in sentences for mark in sentence.marks for name in mark.names]
    has_numbers = any(name.isdecimal() and references.find(name) for name in names)
    cites_authors = any(author_and_year(name) for name in names)
    if cites_authors or (not has_numbers and any(key.isdecimal() for key in references.listed)):
        # what a report cites with decides what looks like a citation in it
        reader = MarkReader(
            lambda name: references.find(name) is not None, round_numbers=not has_numbers, authors=cites_authors
        )
        title, sentences = _sentences(references, reader)
    citations: list[Citation] = []
    missing: list[Citation] = []
    cited: set[Reference] = set()
    addresses: set[str] = set()
    for sentence in sentences:
        for mark in sentence.marks:
            for name, url, named, entry in _cited(mark, references):
                if entry is not None:
                    cited.add(entry)
                one = Citation(len(citations) + 1, name, sentence.text, url, named, mark.line, sentence.quoted)
                citations.append(one)
                addresses.add(url)
                if name and entry is None and not url:
                    missing.append(one)
    return CitedReport(
        title,
        citations,
        [UncitedSentence(one.text, one.line) for one in sentences if one.states and not one.marks and states_fact(one.text)],
        missing,
        [one for one in references.entries() if one not in cited and (one.mark or one.url not in addresses)],
        references.duplicates,
    )


def _sentences(references: References, reader: MarkReader) -> tuple[str, list[MarkedSentence]]:
    """The first heading and all sentences; marks that stand alone in a paragraph belong to the sentence before it."""
    title = ""
    found: list[MarkedSentence] = []
    last: MarkedSentence | None = None
    for block in references.prose:
        sentences = marked_sentences(block, reader)
        if block.kind == "heading":
            last = None
            text = " ".join(one.text for one in sentences).strip()
            title = title or text
            marks = [mark for one in sentences for mark in one.marks]
            found += [MarkedSentence(text, block.line, marks, states=False)] if marks else []
            continue
        for one in sentences:
            if not one.text and last is not None:
                last.marks += one.marks
            else:
                found.append(one)
                last = one
    return title, found


def _cited(mark: Mark, references: References) -> Iterator[tuple[str, str, str, Reference | None]]:
    """Each citation of a mark: its name, what it cites, what that is called, and its entry."""
    for name in mark.names:
        entry = references.find(name, mark.note)
        shown = (entry.mark if entry is not None else "") or name
        title = mark.title or (entry.title if entry is not None else "") or mark.text
        yield shown, mark.url or (entry.url if entry is not None else ""), title, entry
    if not mark.names:
        yield "", mark.url, mark.title or mark.text, None
