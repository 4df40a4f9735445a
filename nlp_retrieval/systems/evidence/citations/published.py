"""Checking that the works in a list of references exist, by a register of published works.

A work is compared with the text of its entry: the whole title from one punctuation mark to another, the year, and the surnames
before the title. Nothing follows from silence: a register that has no such work does not show that it was invented, since
books, reports and web pages are often in none.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal, get_args
from urllib.parse import unquote

from rapidfuzz import fuzz

from nlp_retrieval.core import Component
from nlp_retrieval.documents import Reference
from nlp_retrieval.errors import FetchError
from nlp_retrieval.text import counted, listed, visible, words_of

ReferenceStatus = Literal["retracted", "not there", "differs", "not asked", "as cited"]

_DOI = re.compile(r"\b(10\.[0-9]{4,9}/[^\s\"?#&]{1,200})[^\s\"]*")
_AFTER_DOI = re.compile(r"(?:/|/(?:e?pdf|full|fulltext|abs|abstract|html|meta|summary)|\.pdf)+\Z", re.IGNORECASE)
"""What the address of a page says after its DOI."""
_ENDS = re.compile(r"[.,;:!?()\[\]\"\u201c\u201d\u201e\u00ab\u00bb|/*]+(?=\s|\Z)|(?:\s|\A)[\"(\[\u201c\u201e\u00ab\u2018*]")
"""Where a title in an entry begins or ends."""
_YEAR = re.compile(r"(?<![\w./-])(?:1[89]|20)[0-9]{2}(?=[a-z]?(?![\w/]))")
_SURNAMES = re.compile(
    r"(?P<first>[^\W\d_][^\W\d_'\u2019-]+(?:[-'\u2019][^\W\d_]+)*),\s(?:[^\W\d_]\.[ -]?)+"
    r"|(?:(?<!\w)[^\W\d_]\.[ -]?)+(?P<last>[^\W\d_][^\W\d_'\u2019-]+(?:[-'\u2019][^\W\d_]+)*)(?=,|\sand\b|\s&|[.:]|\set\sal)"
)
"""Surnames beside initials: "Frisch, K." and "K. Frisch"."""
_LONGEST_ENTRY, _MOST_PARTS = 2_000, 60
_FEWEST_LETTERS = 6
"""Letters of a surname that counts also as a part of a longer word, as one of two words does."""
_FEWEST_WORDS = 3
"""Words of an entry; a shorter one names no work."""
_SILENCE = "no work with this title is there; books, reports, preprints and web pages are often not registered"
_SAME, _NEAR, _SAME_NAME = 95, 80, 85
"""Similarity of letters, in percent, from which a title is the same but for a slip, and from which it is another wording."""


@dataclass(frozen=True)
class PublishedWork:
    """A work in a register.

    Args:
        doi: without the address of a resolver.
        title: without a subtitle.
        subtitle: may be empty.
        surnames: of its authors, in order; empty if there are none, or groups alone.
        years: of its publication online, in print, and in an issue.
        retracted: whether a notice withdraws it.

    Examples:
        >>> PublishedWork("10.1000/dance", "The dance of the bees", surnames=("Frisch",), years=(1965,)).named
        '"The dance of the bees" (Frisch, 1965, doi 10.1000/dance)'
    """

    doi: str
    title: str
    subtitle: str = ""
    surnames: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    retracted: bool = False

    @property
    def named(self) -> str:
        """The work in words."""
        author = self.surnames[0] + (" et al." if len(self.surnames) > 1 else "") if self.surnames else ""
        details = ", ".join(filter(None, (author, str(min(self.years)) if self.years else "", f"doi {self.doi}")))
        return visible(f'"{self.title[:200]}" ({details})')


class BaseWorkRegister(Component, ABC):
    """Register of published works.

    Examples:
        >>> class Shelf(BaseWorkRegister):
        ...     name = "shelf"
        ...     dance = PublishedWork("10.1000/dance", "The dance of the bees", surnames=("Frisch",), years=(1965,))
        ...
        ...     def of_doi(self, doi: str) -> PublishedWork | None:
        ...         return self.dance if doi == self.dance.doi else None
        ...
        ...     def matching(self, entry: str) -> list[PublishedWork]:
        ...         return [self.dance]
        >>> Shelf().of_doi("10.1000/dance").title
        'The dance of the bees'
    """

    kind: ClassVar[str] = "work_registers"

    @abstractmethod
    def of_doi(self, doi: str) -> PublishedWork | None:
        """Return the work with a DOI; None if no agency knows it, ``FetchError`` if this could not be asked."""

    @abstractmethod
    def matching(self, entry: str) -> Sequence[PublishedWork]:
        """Return the few works that are most like the text of an entry; ``FetchError`` if this could not be asked."""


@dataclass(frozen=True)
class CheckedReference:
    """What a register says about an entry: ``work`` is what it has, None if none was there."""

    reference: Reference
    status: ReferenceStatus
    detail: str
    work: PublishedWork | None = None


def checked_sentence(checked: Sequence[CheckedReference]) -> str:
    """Return a summary: ``"Of 12 references 1 retracted, 2 not there and 9 as cited."``; empty if none was checked."""
    counts = Counter(each.status for each in checked)
    parts = [f"{counts[status]:,} {status}" for status in get_args(ReferenceStatus) if counts[status]]
    return f"Of {counted(len(checked), 'reference')} {listed(parts)}." if checked else ""


def check_references(
    references: Iterable[Reference], register: BaseWorkRegister, progress: Callable[[], object] = lambda: None
) -> list[CheckedReference]:
    """Ask a register about each entry of a list of references.

    Args:
        references: as of a report that was read.
        register: such as :class:`~nlp_retrieval.systems.evidence.web_research.crossref.Crossref`.
        progress: called after each entry.

    Examples:
        >>> from nlp_retrieval.documents import Reference
        >>> class NoWorks(BaseWorkRegister):
        ...     name = "no_works"
        ...     of_doi = matching = lambda self, text: ()
        >>> entry = Reference("1", "Frisch, K. (1965). The dance of the bees.", "", 1)
        >>> [checked.status for checked in check_references([entry], NoWorks())]
        ['not there']
    """
    done = []
    for reference in references:
        try:
            done.append(_checked(reference, register))
        except FetchError as error:
            done.append(CheckedReference(reference, "not asked", str(error)))
        progress()
    return done


def _checked(reference: Reference, register: BaseWorkRegister) -> CheckedReference:
    entry = _Entry(reference)
    of_doi, problems, unanswered = None, [], ""
    try:
        of_doi = register.of_doi(entry.doi) if entry.doi else None
    except FetchError as error:
        unanswered = str(error)
    enough = len(words_of(entry.text)) >= _FEWEST_WORDS
    if of_doi is not None and (not enough or entry.likeness(of_doi) >= _SAME):
        if enough:
            return entry.compared(of_doi, [])
        return CheckedReference(reference, "retracted" if of_doi.retracted else "as cited", of_doi.named, of_doi)
    best = max(register.matching(entry.text), key=entry.likeness, default=None) if enough else None
    if best is not None and entry.likeness(best) < _NEAR:
        best = None
    if of_doi is not None and (best is None or best.doi.casefold() != of_doi.doi.casefold()):
        problems.append(f"its DOI is that of {of_doi.named}")
    elif entry.doi and of_doi is None and not unanswered:
        problems.append(f"no agency knows its DOI {entry.doi}")
    if best is not None:
        return entry.compared(best, problems)
    if unanswered or not (enough or entry.doi):
        return CheckedReference(reference, "not asked", unanswered or "the entry has too few words to name a work")
    problems += [_SILENCE] if enough else []
    return CheckedReference(reference, "not there" if of_doi is None else "differs", "; ".join(problems), of_doi)


class _Entry:
    """The text of an entry, compared with works."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        addresses = " ".join(map(unquote, (reference.url, *reference.other_urls)))
        doi = _DOI.search(f"{addresses} {reference.title}")
        self.doi = _AFTER_DOI.sub("", doi[1].rstrip(".,;:)]}>")) if doi else ""
        self.text = re.sub("[{}]", "", _DOI.sub(" ", reference.title))[:_LONGEST_ENTRY]
        ends = [(0, 0), *(match.span() for match in _ENDS.finditer(self.text)), (len(self.text),) * 2]
        self._ends = ends[:_MOST_PARTS]
        self._titles: dict[PublishedWork, tuple[float, int, int]] = {}

    def likeness(self, work: PublishedWork) -> float:
        """Return how like the title of a work is to a part of the entry, from 0 to 100."""
        return self._title(work)[0]

    def _title(self, work: PublishedWork) -> tuple[float, int, int]:
        """Return how like a title is to the part of the entry that is most like it, and where that part begins and ends."""
        if work in self._titles:
            return self._titles[work]
        best = (0.0, 0, 0)
        full, short = f"{work.title} {work.subtitle}".strip(), work.title.partition(": ")[0]
        for title in {full, work.title, short if len(words_of(short)) >= _FEWEST_WORDS else full}:
            for (_, start), (end, after) in combinations(self._ends, 2):
                # a title before a colon goes on, and is compared with the full one
                whole = title == full or ":" not in self.text[end:after]
                if whole and 0.7 * len(title) <= end - start <= 1.4 * len(title):
                    best = max(best, (_likeness(title, self.text[start:end]), start, end))
        self._titles[work] = best
        return best

    def compared(self, work: PublishedWork, problems: list[str]) -> CheckedReference:
        """Return what the work with this title says about the details of the entry."""
        likeness, start, end = self._title(work)
        if likeness < _SAME:
            problems.append("its title there is another one")
        before, beside = self.text[:start], f"{self.text[:start]} {self.text[end:]}"
        years = {int(year) for year in _YEAR.findall(beside)}
        if years and work.years and not any(abs(year - other) <= 1 for year in years for other in work.years):
            problems.append(f"it appeared in {' or '.join(map(str, sorted(set(work.years))))}, not in {min(years)}")
        if before.strip() and work.surnames:
            named = [name[1] or name[2] for name in _SURNAMES.finditer(before)]
            others = [
                name
                for name in named
                if not any(_is_named(author, name) or _is_named(name, author) for author in work.surnames)
            ]
            if not _is_named(work.surnames[0], beside):
                problems.append(f"its first author is {work.surnames[0]}")
            elif others:
                problems.append(f"{listed(others)} is not among its authors")
        if work.retracted:
            return CheckedReference(
                self.reference, "retracted", visible("; ".join([f"{work.named} is retracted", *problems])), work
            )
        detail = "; ".join([*problems, f"the register has {work.named}"] if problems else [work.named])
        return CheckedReference(self.reference, "differs" if problems else "as cited", visible(detail), work)


def _likeness(title: str, text: str) -> float:
    """Return how like a text is to a title, from 0 to 100; less than the same if its words are in another order."""
    letters = fuzz.ratio(_letters(title), _letters(text))
    return (
        letters if letters >= _SAME else max(letters, min(_SAME - 1, fuzz.token_sort_ratio(title.casefold(), text.casefold())))
    )


def _is_named(surname: str, text: str) -> bool:
    """Return whether a text has a surname, also in other letters, as in "Buettcher"."""
    name, words, count = _letters(surname), text.split(), len(surname.split())
    whole = len(name) >= _FEWEST_LETTERS and name in _letters(text)
    parts = (" ".join(words[first : first + count]) for first in range(len(words) - count + 1))
    return whole or any(fuzz.ratio(name, _letters(part)) >= _SAME_NAME for part in parts)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, without accents and cases, as titles and names are compared."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text).casefold() if letter.isalnum())
