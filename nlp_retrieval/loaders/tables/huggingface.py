"""Items from data sets of the Hugging Face library ``datasets``: folders on disk, cached sets and names on the hub.

No script of a data set is run: ``datasets`` 4 and later has no such thing, and earlier ones are refused. What is on disk is
read as Arrow, in batches, without a copy in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nlp_retrieval.errors import DependencyError, RetrievalError, SourceError, nearest
from nlp_retrieval.loaders.fields import RecordLoader
from nlp_retrieval.loaders.files import JsonObject
from nlp_retrieval.loaders.tables.arrow_rows import BATCH, check_schema, rows_of_batches

__all__ = ["HuggingFaceLoader"]


class HuggingFaceLoader(RecordLoader):
    """Items from a data set of Hugging Face's ``datasets`` (the extra ``huggingface``).

    A folder that ``save_to_disk`` wrote, or one of JSON lines, CSV, Parquet or text files, is read in place. Any other path is
    a name on the hub: it is taken from the cache of this machine, or downloaded; with ``HF_HUB_OFFLINE=1`` only the cache is
    looked at.

    Args:
        path: a folder, or a name on the hub (``mteb/scifact``).
        config: which of the data set's configurations (``corpus``). None: its only or default one.
        split: which of its splits.
        revision: a commit, branch or tag on the hub. None: the newest.
        id_field: the column that holds the id, unique: text or integer; or a path into objects. None: the number of the row,
            from 0, by which ``datasets`` knows it too.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, where there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
    """

    name = "huggingface"

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
        """Yield the rows as objects, each with its number.

        Raises:
            DependencyError: ``datasets`` is not installed.
            SourceError: there is no such data set or split, the hub cannot be reached, a column is missing or no text.
        """
        source = f"{self.path}, split {self.split}"
        yield from rows_of_batches(source, self._batches(source))

    def _batches(self, source: str) -> Iterator[pa.RecordBatch]:
        checked = False
        for table in self._open(source).with_format("arrow").iter(batch_size=BATCH):
            if not checked:
                check_schema(self, source, table.schema)
                checked = True
            yield from table.select(self.used_columns(table.column_names)).to_batches()

    def _open(self, source: str) -> Any:
        try:
            import datasets
        except ImportError:
            raise DependencyError("HuggingFaceLoader needs datasets: pip install 'nlp_retrieval[huggingface]'") from None
        folder = Path(self.path).expanduser()
        try:
            if (folder / "dataset_dict.json").is_file():
                return self._split_of(datasets.load_from_disk(str(folder)))
            if (folder / "state.json").is_file():
                return datasets.load_from_disk(str(folder))
            return datasets.load_dataset(
                str(folder) if folder.is_dir() else str(self.path),
                self.config_name,
                split=self.split,
                revision=None if folder.is_dir() else self.revision,
                streaming=folder.is_dir(),
            )
        except RetrievalError:
            raise
        except ConnectionError as error:
            raise SourceError(
                f"{source}: neither a folder here nor in the cache, and the hub cannot be reached ({str(error)[:200]}); "
                "check path, name and network, or download it on another machine (save_to_disk) and name the folder"
            ) from None
        except Exception as error:  # the library raises what its readers do
            raise SourceError(f"{source}: datasets cannot open it: {str(error)[:300]}; check path, config and split") from error

    def _split_of(self, splits: Any) -> Any:
        if self.split not in splits:
            raise SourceError(f'{self.path}: no split "{self.split}"; {nearest(self.split, splits)}')
        return splits[self.split]
