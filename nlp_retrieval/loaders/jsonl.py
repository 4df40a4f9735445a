"""Items from a JSON Lines file of any layout: the user names the fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, READS_FILE, may_set
from nlp_retrieval.loaders.fields import RecordLoader
from nlp_retrieval.loaders.files import JsonObject, read_json_lines

__all__ = ["JsonlLoader"]


class JsonlLoader(RecordLoader):
    """Items from a JSON Lines file: one object per line, UTF-8, plain or gzip; blank lines are skipped.

    Ids are text or integers, which become text. A field is a name or a path into objects (``doc.body``). The fields of an
    object named ``metadata`` join the other fields. A field named ``title`` that is not the ``title_field`` is left out
    unless ``metadata_fields`` names it, because ``title`` in the metadata of an item is its title.

    Args:
        path: the file.
        id_field: the field that holds the id, unique in the file. None: the number of the row, from 0.
        content_field: the field that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title; a row may lack it. None: the items have no titles.
        metadata_fields: the fields to keep as metadata; a row may lack some. None: all the others.
    """

    name = "jsonl"
    manifest_may_set = may_set(*FIELD_NAMES, path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        id_field: str | None = "id",
        content_field: str | Sequence[str] = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
    ) -> None:
        super().__init__(id_field, content_field, title_field, metadata_fields)
        self.path = path

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the objects of the file, each with its line.

        Raises:
            SourceError: the file is missing or damaged, or a line is not an object.
        """
        return read_json_lines(self.path)
