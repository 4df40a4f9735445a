"""Turning raw records of any source into items, queries and gold, with errors that name the record's location.

For all loaders, an id is text or an integer, which becomes text (the exports of MS MARCO and many databases number their rows);
floats, booleans, null and white space are refused, because ``1.0`` and ``1`` would be one id or two depending on the program
that wrote the file. A missing field is an error that lists the existing fields.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import JsonValue, ValidationError

from nlp_retrieval.core.components.component import BaseLoader
from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.loaders.files import JsonObject, kind

ID_NAMES = ("id", "_id", "docid", "doc_id", "item_id", "pid", "passage_id", "document_id", "uid", "key")
CONTENT_NAMES = ("content", "contents", "text", "body", "passage", "abstract", "document", "description", "paragraph")
"""Usual names of the field with the text, the most common first."""

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


def as_id(location: str, field: str, value: JsonValue) -> str:
    """Return an id as text.

    Raises:
        SourceError: it is neither text nor an integer, or is empty.
    """
    if isinstance(value, str):
        if value and not value.isspace():
            return value
        raise SourceError(f'{location}: "{field}" is empty; every record needs an id of its own')
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise SourceError(f'{location}: "{field}" is {kind(value)}; an id is text or an integer')


def as_text(location: str, field: str, value: JsonValue) -> str:
    """Return a text field as it is; it may be empty.

    Raises:
        SourceError: it is not text.
    """
    if isinstance(value, str):
        return value
    raise SourceError(f'{location}: "{field}" is {kind(value)}; expected text')


def as_title(location: str, field: str, value: JsonValue) -> str:
    """Return a title, or an empty string for null.

    Raises:
        SourceError: it is neither text nor null.
    """
    return "" if value is None else as_text(location, field, value)


def metadata_of(location: str, row: JsonObject, taken: Collection[str]) -> JsonObject:
    """Return the unused fields of a row, joined by the fields of an object named ``metadata``.

    Args:
        location: location of the row.
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
            raise SourceError(f'{location}: "{key}" is in the row and, with another value, in its "metadata"; rename one')
        metadata[key] = value
    return metadata


def with_title(location: str, title: str, metadata: JsonObject) -> JsonObject:
    """Put a title in front of the metadata.

    Raises:
        SourceError: the metadata has another title.
    """
    if not title:
        return metadata
    if metadata.get("title") not in (None, "", title):
        raise SourceError(f'{location}: "title" is in the row and, with another value, in its "metadata"; rename one')
    return metadata | {"title": title}


def make_item(location: str, item_id: str, content: str, metadata: JsonObject) -> SearchableItem:
    """Build an item.

    Raises:
        SourceError: a value cannot be stored: it is too deeply nested, not finite, or has a lone surrogate.
    """
    try:
        return SearchableItem(item_id=item_id, content=content, metadata=metadata)
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{location}: item {item_id!r:.80}: {_reason(error)}") from None


def make_query(location: str, query_id: str, text: str, family: str | None = None, metadata: JsonObject | None = None) -> Query:
    """Build a query.

    Raises:
        SourceError: as :func:`make_item`.
    """
    try:
        return Query(query_id=query_id, text=text, family=family, metadata=metadata or {})
    except (ValidationError, RecursionError) as error:
        raise SourceError(f"{location}: query {query_id!r:.80}: {_reason(error)}") from None


def _reason(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply; flatten it"
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "recursion_loop":
        return "its metadata is nested too deeply; flatten it"
    # the path into nested metadata names pydantic's union branches too; the first two parts are the user's own
    return f"{'.'.join(str(part) for part in first['loc'][:2])}: {first['msg']}"


def released_field(location: str, row: JsonObject, field: str, dataset: str) -> JsonValue:
    """Return a field of a record in a data set's release file.

    Raises:
        SourceError: there is no such field.
    """
    if field not in row:
        raise SourceError(f'{location}: no "{field}" field (found: {quoted(row)}); is this a release file of {dataset}?')
    return row[field]


def supporting_titles(location: str, row: Mapping[str, JsonValue], cure: str) -> list[str]:
    """Return the distinct titles of ``supporting_facts``, in order: the form that HotpotQA and HoVer share.

    Args:
        location: location of the record.
        row: the record.
        cure: advice if there are no supporting facts.

    Raises:
        SourceError: there are none, or they are not pairs of a title and the number of a sentence.
    """
    facts = row.get("supporting_facts")
    if facts is None or facts == []:
        raise SourceError(f'{location}: no "supporting_facts" (found: {quoted(row)}), so there is no gold; {cure}')
    titles: dict[str, None] = {}
    for fact in facts if isinstance(facts, list) else [facts]:
        match fact:
            case [str(title), *_] if title:
                titles[title] = None
            case _:
                raise SourceError(f'{location}: "supporting_facts" is not a list of [title, sentence number] pairs')
    return list(titles)


_EXACT = 2**53
"""Largest whole number up to which floats are exact."""

_LEAVE_OUT = "convert it to text, or leave it out with metadata_fields"


def plain_value(  # noqa: PLR0911 -- one for each kind of value
    location: str, column: str, value: object, whole: bool = False, cure: str = _LEAVE_OUT
) -> JsonValue:
    """Turn a value of a driver or a table into a JSON value; NaN, which tables use for missing values, becomes null.

    Args:
        location: its location.
        column: its column.
        value: to convert.
        whole: a decimal without fraction becomes an integer (Oracle's ids).
        cure: advice if it cannot be converted.

    Raises:
        SourceError: it cannot be converted: bytes, an interval.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case decimal.Decimal() if value.is_finite() and value == value.to_integral_value() and (whole or abs(value) > _EXACT):
            return int(value)
        case float() | decimal.Decimal():
            return None if math.isnan(value) else float(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case list() | tuple():
            return [plain_value(location, column, inner, cure=cure) for inner in value]
        case dict():
            return {str(key): plain_value(location, column, inner, cure=cure) for key, inner in value.items()}
    raise SourceError(
        f'{location}: column "{column}" holds {type(value).__name__}, which is neither text nor a JSON value; {cure}'
    )


def has_field(row: JsonObject, field: str) -> bool:
    """Return whether a record has a field, by name or by path."""
    return field in row or ("." in field and _parent(row, field) is not None)


def field_of(row: JsonObject, field: str) -> JsonValue:
    """Return the value of a field; null if the record lacks it."""
    if field in row:
        return row[field]
    parent = _parent(row, field) if "." in field else None
    return None if parent is None else parent[field.rpartition(".")[2]]


def _parent(row: JsonObject, path: str) -> JsonObject | None:
    """The innermost object on a path, if it has the last name of the path."""
    *outer, last = path.split(".")
    value: JsonValue = row
    for name in outer:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) and last in value else None


def without_fields(row: JsonObject, fields: Collection[str]) -> JsonObject:
    """Return the record without these fields; objects that are left empty by a path are removed too."""
    kept = {name: value for name, value in row.items() if name not in fields}
    for path in fields:
        if "." in path and path not in row and _parent(row, path) is not None:
            name, _, inner = path.partition(".")
            value = kept.pop(name, None)
            if isinstance(value, dict) and (rest := without_fields(value, [inner])):
                kept[name] = rest
    return kept


def missing_field(
    location: str,
    parameter: str | None,
    field: str,
    found: Collection[str],
    aliases: Sequence[str],
    given: Sequence[str] | None = None,
) -> SourceError:
    """Return the error about a missing field, with the name that was probably meant.

    Args:
        location: its location.
        parameter: which names the field. None: the reader cannot name another.
        field: its name.
        found: the existing names.
        aliases: other names that such a field often has.
        given: the whole list, if the parameter is a list of fields.
    """
    meant = likely(field, found, aliases)
    if parameter is None:
        cure = f'call "{meant}" so' if meant else "add it, or give the field that holds it this name"
    elif meant is None and given is not None:
        cure = f"name fields that are there in {parameter}"
    elif meant is None:
        cure = f"pass {parameter}= and the name of the field that holds it"
    else:
        corrected = meant if given is None else [meant if name == field else name for name in given]
        cure = f"pass {parameter}={json.dumps(corrected, ensure_ascii=False)}"
    return SourceError(f'{location}: no "{field}" field (found: {quoted(found)}); {cure}')


def joined_text(
    location: str, row: JsonObject, fields: str | Sequence[str], parameter: str, aliases: Sequence[str] = CONTENT_NAMES
) -> str:
    """Return a text field, or several joined by line ends; of several, some may be missing, null or empty.

    Raises:
        SourceError: all of them are missing, or one is not text.
    """
    if isinstance(fields, str):
        if not has_field(row, fields):
            raise missing_field(location, parameter, fields, row, aliases)
        return as_text(location, fields, field_of(row, fields))
    there = [field for field in fields if has_field(row, field)]
    if not there:
        raise missing_field(location, parameter, fields[0], row, aliases)
    return "\n".join(text for field in there if (text := as_title(location, field, field_of(row, field))))


class RecordLoader(BaseLoader):
    """Base of loaders of records: a subclass yields the records of its source, and this class turns them into items.

    Args:
        id_field: the field that holds the id, unique in the source. None: the number of the record, from 0.
        content_field: the field that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title. None: the items have no titles.
        metadata_fields: the fields to keep as metadata. None: all the others.
    """

    path: str | Path
    """Location of the records, for messages."""
    id_field: str | None
    content_field: str | Sequence[str]
    title_field: str | None
    metadata_fields: Sequence[str] | None

    def __init__(
        self,
        id_field: str | None,
        content_field: str | Sequence[str],
        title_field: str | None,
        metadata_fields: Sequence[str] | None,
    ) -> None:
        if not content_field:
            raise ConfigurationError(f"{type(self).__name__}: content_field is empty; name the field that holds the text")
        self.id_field = id_field
        self.content_field = content_field
        self.title_field = title_field
        self.metadata_fields = metadata_fields

    @abstractmethod
    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the records of the source, each with its location for messages, in bounded memory.

        Raises:
            SourceError: the source is missing or malformed.
        """

    @property
    def taken_fields(self) -> list[str]:
        """The fields that become id, text and title."""
        texts = [self.content_field] if isinstance(self.content_field, str) else self.content_field
        return [field for field in (self.id_field, *texts, self.title_field) if field is not None]

    def parameter_of(self, field: str) -> str:
        """Return the parameter that names a field in use."""
        return "id_field" if field == self.id_field else "title_field" if field == self.title_field else "content_field"

    def check_columns(self, location: str, columns: Collection[str]) -> None:
        """Refuse a table whose columns cannot hold id and text, before a row of it is read.

        Raises:
            SourceError: a column is missing; the message names the nearest.
        """
        wanted: list[tuple[str, str | Sequence[str], Sequence[str]]] = [("content_field", self.content_field, CONTENT_NAMES)]
        if self.id_field is not None:
            wanted.insert(0, ("id_field", self.id_field, ID_NAMES))
        if self.title_field not in (None, "title"):  # a table without the default title field has none
            wanted.append(("title_field", str(self.title_field), ("title",)))
        wanted.append(("metadata_fields", self.metadata_fields or (), ()))
        for parameter, given, aliases in wanted:
            for field in [given] if isinstance(given, str) else given:
                if field not in columns and field.partition(".")[0] not in columns:
                    several = None if isinstance(given, str) else given
                    raise missing_field(location, parameter, field, columns, aliases, several)

    def used_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a table that become items."""
        if self.metadata_fields is None:
            return list(columns)
        used = {*self.taken_fields, *self.metadata_fields, "metadata"}
        used |= {field.partition(".")[0] for field in used}
        return [name for name in columns if name in used]

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the source.

        Raises:
            SourceError: the source is missing or damaged, or a record cannot be an item.
        """
        unseen = dict.fromkeys(self.metadata_fields or ())
        rows = 0
        taken = self.taken_fields
        for location, row in self.records():
            item_id = str(rows) if self.id_field is None else self._id(location, row, self.id_field)
            rows += 1
            content = joined_text(location, row, self.content_field, "content_field")
            metadata = self._metadata(location, row, taken)
            if unseen:
                unseen = {field: None for field in unseen if field not in metadata}
            yield make_item(location, item_id, content, metadata)
        if unseen and rows:
            warnings.warn(
                f"{self.path}: none of its {rows} rows has the metadata fields {quoted(unseen)}", RetrievalWarning, stacklevel=2
            )

    def _id(self, location: str, row: JsonObject, field: str) -> str:
        if not has_field(row, field):
            raise missing_field(location, "id_field", field, row, ID_NAMES)
        return as_id(location, field, field_of(row, field))

    def _metadata(self, location: str, row: JsonObject, taken: Iterable[str]) -> JsonObject:
        title = "" if self.title_field is None else as_title(location, self.title_field, field_of(row, self.title_field))
        metadata = metadata_of(location, without_fields(row, list(taken)), ())
        if self.metadata_fields is not None:
            everything = row | metadata
            metadata = {field: field_of(everything, field) for field in self.metadata_fields if has_field(everything, field)}
        elif self.title_field != "title":
            metadata.pop("title", None)
        return with_title(location, title, metadata)
