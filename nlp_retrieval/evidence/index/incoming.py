"""What is added to an index, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping

from nlp_retrieval.core.surrogates import half_of_pair, no_text
from nlp_retrieval.core.unicode_forms import normalize
from nlp_retrieval.errors import InputError, ItemError, nearest
from nlp_retrieval.evidence.index.dates import moment_of, now
from nlp_retrieval.evidence.index.grades import check_grade
from nlp_retrieval.evidence.index.passages import normal_text
from nlp_retrieval.evidence.index.store import NewSource
from nlp_retrieval.evidence.index.urls import canonical_url

__all__ = ["FIELDS", "checked_document", "checked_source"]

FIELDS = ("content", "url", "title", "source_quality", "fetch_date")
"""The fields of a document."""

_NEEDED = ("content", "url")
_LONGEST_TITLE = 500


def checked_source(content: str, url: str, title: str = "", source_quality: str = "C", fetch_date: str = "") -> NewSource:
    """Return a source in the form in which it is stored.

    Args:
        content: its text.
        url: where it was read.
        title: white space in it is folded, and what is longer than 500 characters is cut.
        source_quality: "A" to "E".
        fetch_date: ISO 8601, or empty.

    Raises:
        InputError: one of them cannot be used.
    """
    canonical = canonical_url(url)
    grade = check_grade(source_quality, "source_quality")
    moment = now() if fetch_date == "" else moment_of(fetch_date)
    return NewSource(normal_text(content), canonical, url.strip(), _title(title), grade, fetch_date, moment)


def checked_document(document: object) -> NewSource:
    """Return a source that came as a mapping from :data:`FIELDS` to strings.

    Raises:
        InputError: it is none, lacks its content or URL, or has another field.
    """
    if not isinstance(document, Mapping):
        raise ItemError(f'a document is a mapping such as {{"content": ..., "url": ...}}, not {type(document).__name__}')
    for field in document:
        if field not in FIELDS:
            raise ItemError(f"there is no field {str(field)[:40]!r}; {nearest(str(field)[:40], FIELDS)}")
    if lacking := [field for field in _NEEDED if field not in document]:
        raise ItemError(f'the field "{lacking[0]}" is missing (found: {", ".join(document) or "none"})')
    return checked_source(**document)


def _title(title: str) -> str:
    if not isinstance(title, str):
        raise InputError(f"a title is a string, not {type(title).__name__}")
    if (half := half_of_pair(title)) is not None:
        raise InputError(no_text("the title", half))
    return " ".join(normalize("NFC", title).replace("\0", " ").split())[:_LONGEST_TITLE].rstrip()
