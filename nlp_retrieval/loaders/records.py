"""Loaders of records of any source: which field becomes the id, the text and the title; a missing one is an error."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.records import (
    CONTENT_NAMES,
    ID_NAMES,
    JsonObject,
    as_id,
    as_text,
    as_title,
    likely,
    make_item,
    metadata_of,
    quoted,
    with_title,
)
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError


def missing_field(location: str, parameter: str, field: str, present: Collection[str], aliases: Sequence[str]) -> SourceError:
    """Return the error about a missing field, with the parameter that could name another and the name probably meant."""
    meant = likely(field, present, aliases)
    cure = f'pass {parameter}="{meant}"' if meant else f"pass {parameter}= and the name of the field that holds it"
    return SourceError(f'{location}: no "{field}" field (found: {quoted(present)}); {cure}')


def joined_text(
    location: str, row: JsonObject, fields: str | Sequence[str], parameter: str, aliases: Sequence[str] = CONTENT_NAMES
) -> str:
    """Return a text field, or several joined by line ends; of several, some may be missing, null or empty."""
    names = [fields] if isinstance(fields, str) else fields
    there = [field for field in names if field in row]
    if not there:
        raise missing_field(location, parameter, names[0], row, aliases)
    if isinstance(fields, str):
        return as_text(location, fields, row[fields])
    return "\n".join(text for field in there if (text := as_title(location, field, row[field])))


class RecordLoader(BaseLoader):
    """Base of loaders of records: a subclass yields the records of its source, and this class turns them into items."""

    path: str | Path
    """Location of the records, for messages."""

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
        """Yield the records of the source, each with its location for messages, in bounded memory."""

    def _id_field_in(self, fields: Collection[str]) -> str | None:
        """The field with the id: an item that was written as JSON has ``item_id`` in place of ``id``."""
        return "item_id" if self.id_field == "id" and "id" not in fields and "item_id" in fields else self.id_field

    def _texts(self) -> Sequence[str]:
        return [self.content_field] if isinstance(self.content_field, str) else self.content_field

    def taken_fields(self, fields: Collection[str]) -> list[str]:
        """Return the fields that become id, text and title."""
        return [field for field in (self._id_field_in(fields), *self._texts(), self.title_field) if field is not None]

    def check_columns(self, location: str, columns: Collection[str]) -> None:
        """Refuse a table without the columns in use, each once, before a row is read; the default title may be missing."""
        wanted: list[tuple[str, str | None, Sequence[str]]] = [("id_field", self._id_field_in(columns), ID_NAMES)]
        wanted += [("content_field", field, CONTENT_NAMES) for field in self._texts()]
        wanted += [("title_field", self.title_field, ("title",))]
        wanted += [("metadata_fields", field, ()) for field in self.metadata_fields or ()]
        for parameter, field, aliases in wanted:
            if field not in (None, "title") and field not in columns:
                raise missing_field(location, parameter, field, columns, aliases)
        used = self.used_columns(list(columns))
        if (repeated := first_repeated(used)) is not None:
            raise SourceError(f'{location}: {used.count(repeated)} columns are called "{repeated[:40]}"; rename one')

    def used_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a table that become items."""
        if self.metadata_fields is None:  # pandas writes the index of a frame so
            return [name for name in columns if not name.startswith("__index_level_") or name in self.taken_fields(columns)]
        used = {*self.taken_fields(columns), *self.metadata_fields, "metadata"}
        return [name for name in columns if name in used]

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the source."""
        unseen = set(self.metadata_fields or ())
        rows = 0
        for rows, (location, row) in enumerate(self.records(), 1):
            id_field = self._id_field_in(row)
            if id_field is not None and id_field not in row:
                raise missing_field(location, "id_field", id_field, row, ID_NAMES)
            item_id = str(rows - 1) if id_field is None else as_id(location, id_field, row[id_field])
            content = joined_text(location, row, self.content_field, "content_field")
            metadata = self._metadata(location, row)
            unseen -= metadata.keys()
            yield make_item(location, item_id, content, metadata)
        if unseen and rows:
            warnings.warn(
                f"{self.path}: none of its {rows} rows has the metadata fields {quoted(sorted(unseen))}",
                RetrievalWarning,
                stacklevel=2,
            )

    def _metadata(self, location: str, row: JsonObject) -> JsonObject:
        metadata = metadata_of(location, row, self.taken_fields(row))
        title = "" if self.title_field is None else as_title(location, self.title_field, row.get(self.title_field))
        if self.metadata_fields is not None:
            everything = row | metadata
            metadata = {field: everything[field] for field in self.metadata_fields if field in everything}
        elif self.title_field != "title":
            metadata.pop("title", None)
        return with_title(location, title, metadata)
