"""Turning raw records of any source into items, queries and gold, with errors that name the record's location.

For all loaders, an id is text or an integer, which becomes text (the exports of MS MARCO and many databases number their rows);
floats, booleans, null and white space are refused, because ``1.0`` and ``1`` would be one id or two depending on the program
that wrote the file. A missing field is an error that lists the existing fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from pydantic import JsonValue, ValidationError

from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.files import JsonObject, kind

__all__ = [
    "as_id",
    "as_text",
    "as_title",
    "likely",
    "make_item",
    "make_query",
    "metadata_of",
    "quoted",
    "released_field",
    "supporting_titles",
]

ID_NAMES = ("id", "_id", "docid", "doc_id", "item_id", "pid", "passage_id", "document_id", "uid", "key")
CONTENT_NAMES = ("content", "contents", "text", "body", "passage", "abstract", "document", "description", "paragraph")

_SHOWN = 12


def quoted(names: Collection[str]) -> str:
    """List names for an error message, in their order, shortened if they are very many or very long."""
    shown = [f'"{name[:40]}"' for name in list(names)[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join(shown + more) or "none"


def likely(wanted: str, found: Iterable[str], aliases: Iterable[str]) -> str | None:
    """Return which of the existing names was probably meant, or None.

    Args:
        wanted: the name that is missing.
        found: the names that exist.
        aliases: names that such a field often has, the most common first.
    """
    by_case = {name.lower(): name for name in found}
    for alias in (wanted.lower(), *aliases):
        if alias in by_case:
            return by_case[alias]
    close = get_close_matches(wanted.lower(), by_case, n=1, cutoff=0.7)
    return by_case[close[0]] if close else None


def as_id(place: str, field: str, value: JsonValue) -> str:
    """Return an id as text.

    Raises:
        SourceError: it is neither text nor an integer, or is empty.
    """
    if isinstance(value, str):
        if value and not value.isspace():
            return value
        raise SourceError(f'{place}: "{field}" is empty; every record needs an id of its own')
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise SourceError(f'{place}: "{field}" is {kind(value)}; an id is text or an integer')


def as_text(place: str, field: str, value: JsonValue) -> str:
    """Return a text field as it is; it may be empty.

    Raises:
        SourceError: it is not text.
    """
    if isinstance(value, str):
        return value
    raise SourceError(f'{place}: "{field}" is {kind(value)}; expected text')


def as_title(place: str, field: str, value: JsonValue) -> str:
    """Return a title, or an empty string for null.

    Raises:
        SourceError: it is neither text nor null.
    """
    return "" if value is None else as_text(place, field, value)


def metadata_of(place: str, row: JsonObject, taken: Collection[str]) -> JsonObject:
    """Return the unused fields of a row, joined by the fields of an object named ``metadata``.

    Args:
        place: location of the row.
        row: the record.
        taken: top-level fields with a meaning of their own.

    Raises:
        SourceError: a name has one value inside ``metadata`` and another outside.
    """
    metadata = {key: value for key, value in row.items() if key not in taken and key != "metadata"}
    nested = row.get("metadata")
    if not isinstance(nested, dict):
        return metadata if nested is None else metadata | {"metadata": nested}
    for key, value in nested.items():
        if key in metadata and metadata[key] != value:
            raise SourceError(f'{place}: "{key}" is in the row and, with another value, in its "metadata"; rename one')
        metadata[key] = value
    return metadata


def with_title(place: str, title: str, metadata: JsonObject) -> JsonObject:
    """Put a title in front of the metadata.

    Raises:
        SourceError: the metadata has another title.
    """
    if not title:
        return metadata
    if metadata.get("title") not in (None, "", title):
        raise SourceError(f'{place}: "title" is in the row and, with another value, in its "metadata"; rename one')
    return metadata | {"title": title}


def make_item(place: str, item_id: str, content: str, metadata: JsonObject) -> SearchableItem:
    """Build an item.

    Raises:
        SourceError: a value cannot be stored: it is too deeply nested, not finite, or has a lone surrogate.
    """
    try:
        return SearchableItem(item_id=item_id, content=content, metadata=metadata)
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{place}: item {item_id!r:.80}: {_reason(error)}") from None


def make_query(place: str, query_id: str, text: str, family: str | None = None, metadata: JsonObject | None = None) -> Query:
    """Build a query.

    Raises:
        SourceError: as :func:`make_item`.
    """
    try:
        return Query(query_id=query_id, text=text, family=family, metadata=metadata or {})
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{place}: query {query_id!r:.80}: {_reason(error)}") from None


def _reason(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply; flatten it"
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "recursion_loop":
        return "its metadata is nested too deeply; flatten it"
    # the path into nested metadata names pydantic's union branches too; the first two parts are the user's own
    return f"{'.'.join(str(part) for part in first['loc'][:2])}: {first['msg']}"


def released_field(place: str, row: JsonObject, field: str, dataset: str) -> JsonValue:
    """Return a field of a record in a data set's release file.

    Raises:
        SourceError: there is no such field.
    """
    if field not in row:
        raise SourceError(f'{place}: no "{field}" field (found: {quoted(row)}); is this a release file of {dataset}?')
    return row[field]


def supporting_titles(place: str, row: Mapping[str, JsonValue], cure: str) -> list[str]:
    """Return the distinct titles of ``supporting_facts``, in order: the form that HotpotQA and HoVer share.

    Args:
        place: location of the record.
        row: the record.
        cure: advice if there are no supporting facts.

    Raises:
        SourceError: there are none, or they are not pairs of a title and the number of a sentence.
    """
    facts = row.get("supporting_facts")
    if facts is None or facts == []:
        raise SourceError(f'{place}: no "supporting_facts" (found: {quoted(row)}), so there is no gold; {cure}')
    titles: dict[str, None] = {}
    for fact in facts if isinstance(facts, list) else [facts]:
        match fact:
            case [str(title), *_] if title:
                titles[title] = None
            case _:
                raise SourceError(f'{place}: "supporting_facts" is not a list of [title, sentence number] pairs')
    return list(titles)
