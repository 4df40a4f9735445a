"""Checks of new sources before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nlp_retrieval.core import find_lone_surrogate, lone_surrogate_message, normalize
from nlp_retrieval.errors import InputError, ItemError, nearest
from nlp_retrieval.systems.evidence.index.dates import moment_of
from nlp_retrieval.systems.evidence.index.grades import check_grade
from nlp_retrieval.systems.evidence.index.passages import normal_text
from nlp_retrieval.systems.evidence.index.store import NewSource
from nlp_retrieval.systems.evidence.index.urls import anchor_of, canonical_url
from nlp_retrieval.systems.evidence.reading.document import SourceDocument
from nlp_retrieval.systems.evidence.reading.quality import QualityRules, assess_source_quality

__all__ = ["FIELDS", "checked_document", "checked_source", "read_source"]

FIELDS = ("content", "url", "title", "source_quality", "fetch_date")
"""The fields of a document."""

_NEEDED = ("content", "url")
_LONGEST_TITLE = 500
_MOST_DOUBTFUL = 1000


def checked_source(
    content: str,
    url: str,
    title: str = "",
    source_quality: str | None = None,
    fetch_date: str = "",
    rules: QualityRules | None = None,
) -> NewSource:
    """Return a source in the form for storage.

    Args:
        content: its text.
        url: of the page.
        title: white space in it is folded, and it is cut to 500 characters.
        source_quality: "A" to "E"; None: by the rules.
        fetch_date: ISO 8601, or empty.
        rules: of grades; None: the built-in ones.

    Raises:
        InputError: a value cannot be used.
    """
    canonical = canonical_url(url)
    if source_quality is None:
        grade: str = assess_source_quality(url.strip(), rules)
    else:
        grade = check_grade(source_quality, "source_quality")
    shown = _title(title)
    given = {name for name, value in (("quality", source_quality), ("title", shown)) if value}
    moment = "" if fetch_date == "" else moment_of(fetch_date)
    anchor = anchor_of(url)
    return NewSource(normal_text(content), canonical, url.strip(), shown, grade, fetch_date, moment, frozenset(given), anchor)


def read_source(document: SourceDocument) -> NewSource:
    """Return a source that was read from a file or a page, in the form for storage.

    Args:
        document: its title and grade count as given by a person only if it says so, and its date orders the versions of its URL
            only if a person gave it.

    Raises:
        InputError: it cannot be used.
    """
    found = checked_source(document.content, document.url, document.title, document.quality, document.fetch_date)
    moment = found.moment if "fetch_date" in document.given else ""
    doubtful: list[tuple[int, int]] = []
    begin = 0
    for text in document.doubtful[:_MOST_DOUBTFUL]:
        at = found.text.find(normal_line(text), begin)
        if at >= 0:
            begin = at + len(text)
            doubtful.append((at, begin))
    return replace(found, given=found.given & document.given, moment=moment, doubtful=tuple(doubtful))


def checked_document(document: object, rules: QualityRules | None = None) -> NewSource:
    """Return a source that is a mapping from :data:`FIELDS` to strings.

    Raises:
        InputError: it is not a mapping, lacks its content or URL, or has another field.
    """
    if not isinstance(document, Mapping):
        raise ItemError(f'a document is a mapping such as {{"content": ..., "url": ...}}, not {type(document).__name__}')
    for field in document:
        if field not in FIELDS:
            raise ItemError(f"there is no field {str(field)[:40]!r}; {nearest(str(field)[:40], FIELDS)}")
    if lacking := [field for field in _NEEDED if field not in document]:
        raise ItemError(f'the field "{lacking[0]}" is missing (found: {", ".join(document) or "none"})')
    return checked_source(**document, rules=rules)


def normal_line(text: str) -> str:
    """Return a piece of text in the form of a stored text."""
    return normalize("NFC", text).strip()


def _title(title: str) -> str:
    if not isinstance(title, str):
        raise InputError(f"a title is a string, not {type(title).__name__}")
    if (half := find_lone_surrogate(title)) is not None:
        raise InputError(lone_surrogate_message("the title", half))
    return " ".join(normalize("NFC", title).replace("\0", " ").split())[:_LONGEST_TITLE].rstrip()
