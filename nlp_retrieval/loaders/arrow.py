"""Items of Parquet files, and of data sets of the Hugging Face library ``datasets``.

Batches are checked for damage, and their values converted to JSON. No script of a data set is run: ``datasets`` 4 and later,
which the extra asks for, have none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, READS_FILE, given, may_set
from nlp_retrieval.core.files.frames import BATCH, open_parquet, rows_of_batches
from nlp_retrieval.core.files.opening import expanded, explain_file_limit
from nlp_retrieval.core.files.records import JsonObject
from nlp_retrieval.errors import DependencyError, RetrievalError, SourceError, install, nearest
from nlp_retrieval.loaders.records import RecordLoader


def _check_schema(loader: RecordLoader, location: str, schema: pa.Schema) -> None:
    """Refuse a table without the columns in use, or with a time as id, text or title: it was guessed from a text."""
    names = schema.names
    loader.check_columns(location, names)
    for field in loader.taken_fields(names):
        if field in names and pa.types.is_temporal(schema.field(field).type):
            raise SourceError(f'{location}: column "{field}" holds {schema.field(field).type}, and not text; name another')


class ParquetLoader(RecordLoader):
    """Items from a Parquet file, or from all ``*.parquet`` in a folder, by name; read in parts, so they may be of any size.

    Only the columns in use are read. Dates and times become ISO 8601 text, decimals floats.

    Args:
        path: the file or folder.
        id_field: the column that holds the id, unique: text or integer. None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.

    Examples:
        >>> import pyarrow.parquet as pq
        >>> pq.write_table(pa.table({"doc": ["1"], "text": ["It hunts."]}), "animals.parquet")
        >>> ParquetLoader("animals.parquet", id_field="doc", content_field="text").load()
        [SearchableItem(item_id='1', content='It hunts.')]
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
        """Yield the rows as objects, each with its number."""
        path = expanded(self.path)
        with explain_file_limit(path):
            files = sorted(path.glob("*.parquet")) if os.path.isdir(path) else [path]  # noqa: PTH112 -- for names of any length
        if not files:
            raise SourceError(f"{path}: no *.parquet in this folder; name the folder that directly holds them")
        for file in files:
            try:
                with explain_file_limit(file):
                    opened, at_once = open_parquet(file)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise SourceError(
                    f"{file}: not a Parquet file that can be read ({str(error)[:200]}); check the path, or write it again"
                ) from error
            with opened:
                schema = opened.schema_arrow
                _check_schema(self, str(file), schema)
                yield from rows_of_batches(str(file), opened.iter_batches(at_once, columns=self.used_columns(schema.names)))


class HuggingFaceLoader(RecordLoader):
    """Items from a data set of Hugging Face's ``datasets`` (the extra ``huggingface``).

    A folder that ``save_to_disk`` wrote is read in place. Any other path is a folder of data files, or a name on the hub, which
    is taken from the cache of this machine, or downloaded; with ``HF_HUB_OFFLINE=1`` only the cache is used. The library
    guesses the types of texts in CSV and JSON files; the loaders ``jsonl`` and ``csv`` read such files as they are.

    Args:
        path: a folder, or a name on the hub (``mteb/scifact``).
        config: a configuration of the data set (``corpus``). None: its only or default one.
        split: one of its splits; for a single data set of ``save_to_disk``, the split it was made from.
        revision: a commit, branch or tag on the hub. None: the newest.
        id_field: the column that holds the id, unique: text or integer. None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.

    Examples:
        >>> HuggingFaceLoader("BeIR/scifact", config="corpus", split="corpus", id_field="_id", content_field="text")
        HuggingFaceLoader(path='BeIR/scifact', config='corpus', split='corpus', id_field='_id', content_field='text')
    """

    name = "huggingface"
    manifest_may_set = may_set(*FIELD_NAMES, "config", "split", "revision", path=given("load, or download, the data set"))

    def __init__(
        self,
        path: str | Path,
        config: str | None = None,
        split: str = "train",
        revision: str | None = None,
        id_field: str | None = "id",
        content_field: str | Sequence[str] = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
    ) -> None:
        super().__init__(id_field, content_field, title_field, metadata_fields)
        self.path = path
        self.config_name = config
        self.split = split
        self.revision = revision

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the rows as objects, each with its number."""
        source = f"{self.path}, split {self.split}"
        yield from rows_of_batches(source, self._batches(source))

    def _batches(self, source: str) -> Iterator[pa.RecordBatch]:
        try:
            dataset = self._open()
            _check_schema(self, source, dataset.features.arrow_schema)
            for table in dataset.with_format("arrow").iter(batch_size=BATCH):
                yield from table.select(self.used_columns(table.column_names)).to_batches()
        except (RetrievalError, pa.ArrowException, UnicodeDecodeError):
            raise
        except Exception as error:  # the library and its readers raise any exceptions
            raise SourceError(
                f"{source}: datasets cannot read it ({str(error.__cause__ or error)[:300]}); check path, config, split and "
                "network, or download it on another machine (save_to_disk) and name the folder"
            ) from error

    def _open(self) -> Any:
        try:
            import datasets
        except ImportError:
            raise DependencyError(f"HuggingFaceLoader needs datasets: {install('huggingface')}") from None
        folder = expanded(self.path)
        if folder.is_file():  # which would be looked up on the hub by this name
            raise SourceError(f"{self.path}: this is a file; name its folder, or read it with the loader csv, jsonl or parquet")
        if not any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
            place = str(folder if folder.exists() else self.path)
            return datasets.load_dataset(place, self.config_name, split=self.split, revision=self.revision)
        dataset = datasets.load_from_disk(str(folder))
        splits = dataset if isinstance(dataset, datasets.DatasetDict) else {str(dataset.split or self.split): dataset}
        if self.split not in splits:
            raise SourceError(f'{self.path}: no split "{self.split}"; {nearest(self.split, splits)}')
        return splits[self.split]
