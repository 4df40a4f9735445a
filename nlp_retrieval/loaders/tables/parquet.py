"""Items from Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, READS_FILE, may_set
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.fields import RecordLoader
from nlp_retrieval.loaders.files import JsonObject
from nlp_retrieval.loaders.tables.arrow_rows import BATCH, check_schema, rows_of_batches

__all__ = ["ParquetLoader"]


class ParquetLoader(RecordLoader):
    """Items from a Parquet file, or from all ``*.parquet`` in a folder, by name; read in parts, so they may be of any size.

    Only the columns in use are read. Dates and times become ISO 8601 text, decimals floats.

    Args:
        path: the file or folder.
        id_field: the column that holds the id, unique: text or integer; a name, or a path into structs (``doc.id``).
            None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
    """

    name = "parquet"
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
        """Yield the rows as objects, each with its number.

        Raises:
            SourceError: a file is missing or damaged, a column is missing or not text, or a value cannot be converted to JSON.
        """
        for file in self._files():
            try:
                opened = pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise SourceError(
                    f"{file}: not a Parquet file that can be read ({str(error)[:200]}); check the path, or write it again"
                ) from error
            with opened:
                schema = opened.schema_arrow
                check_schema(self, str(file), schema)
                used = None if self.metadata_fields is None else self.used_columns(schema.names)
                yield from rows_of_batches(str(file), opened.iter_batches(BATCH, columns=used))

    def _files(self) -> list[Path]:
        path = Path(self.path).expanduser()
        if not path.exists():
            raise SourceError(
                f"{self.path}: no such file or folder; check the path (the current folder is {str(Path.cwd())!r})"
            )
        if not path.is_dir():
            return [path]
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise SourceError(f"{self.path}: no *.parquet in this folder; name the folder that holds them, or a file")
        return files
