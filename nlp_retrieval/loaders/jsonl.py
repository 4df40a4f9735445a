"""Items from a JSON Lines file of any layout: the user says which field is which."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders.files import JsonObject, read_json_lines
from nlp_retrieval.loaders.records import (
    CONTENT_NAMES,
    ID_NAMES,
    as_id,
    as_text,
    as_title,
    likely,
    make_item,
    metadata_of,
    quoted,
    with_title,
)

__all__ = ["JsonlLoader"]


class JsonlLoader(BaseLoader):
    """Items from a JSON Lines file: one object per line, UTF-8, plain or gzip; blank lines are skipped.

    Ids are text or integers, which become text. The fields of an object named ``metadata`` join the other fields. A field
    named ``title`` that is not the ``title_field`` is left out unless ``metadata_fields`` names it, because ``title`` in
    the metadata of an item is its title.

    Args:
        path: the file.
        id_field: the field that holds the id, unique in the file.
        content_field: the field that holds the text.
        title_field: the field that holds the title; a row may lack it. None: the items have no titles.
        metadata_fields: the fields to keep as metadata; a row may lack some. None: all the others.
    """

    name = "jsonl"

    def __init__(
        self,
        path: str | Path,
        id_field: str = "id",
        content_field: str = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.id_field = id_field
        self.content_field = content_field
        self.title_field = title_field
        self.metadata_fields = metadata_fields

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the file.

        Raises:
            SourceError: the file is missing or damaged, or a line is not an object with an id and a text.
        """
        unseen = dict.fromkeys(self.metadata_fields or ())
        rows = 0
        for place, row in read_json_lines(self.path):
            rows += 1
            item_id = as_id(place, self.id_field, self._required(place, row, "id_field", self.id_field, ID_NAMES))
            content = self._required(place, row, "content_field", self.content_field, CONTENT_NAMES)
            metadata = self._metadata(place, row)
            if unseen:
                unseen = {field: None for field in unseen if field not in metadata}
            yield make_item(place, item_id, as_text(place, self.content_field, content), metadata)
        if unseen and rows:
            warnings.warn(
                f"{self.path}: none of its {rows} rows has the metadata fields {quoted(unseen)}",
                RetrievalWarning,
                stacklevel=2,
            )

    def _required(self, place: str, row: JsonObject, parameter: str, field: str, aliases: tuple[str, ...]) -> JsonValue:
        if field in row:
            return row[field]
        meant = likely(field, row, aliases)
        cure = f'pass {parameter}="{meant}"' if meant else f"pass {parameter}= and the name of the field that holds it"
        raise SourceError(f'{place}: no "{field}" field (found: {quoted(row)}); {cure}')

    def _metadata(self, place: str, row: JsonObject) -> JsonObject:
        title = "" if self.title_field is None else as_title(place, self.title_field, row.get(self.title_field))
        metadata = metadata_of(place, row, (self.id_field, self.content_field, self.title_field or ""))
        if self.metadata_fields is not None:
            everything = row | metadata
            metadata = {field: everything[field] for field in self.metadata_fields if field in everything}
        elif self.title_field != "title":
            metadata.pop("title", None)
        return with_title(place, title, metadata)
