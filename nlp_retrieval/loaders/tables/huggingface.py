"""Items from data sets of the Hugging Face library ``datasets``: folders on disk, cached sets and names on the hub.

No script of a data set is run: ``datasets`` 4 and later have no scripts, and earlier versions are refused. Folders of
``save_to_disk`` are read as Arrow, in batches, without a copy in the cache. In a folder of data files, ``datasets`` assigns the
files to splits; the loaders of such files read them, so that no value changes by a guess at its type.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, given, may_set
from nlp_retrieval.errors import DependencyError, RetrievalError, RetrievalWarning, SourceError, install, nearest
from nlp_retrieval.loaders.fields import RecordLoader
from nlp_retrieval.loaders.files import JsonObject, read_lines
from nlp_retrieval.loaders.json_list import read_json_file_of_records
from nlp_retrieval.loaders.records import quoted
from nlp_retrieval.loaders.tables.arrow_rows import BATCH, check_schema, rows_of_batches
from nlp_retrieval.loaders.tables.delimited import CsvLoader
from nlp_retrieval.loaders.tables.parquet import ParquetLoader

__all__ = ["HuggingFaceLoader"]


class HuggingFaceLoader(RecordLoader):
    """Items from a data set of Hugging Face's ``datasets`` (the extra ``huggingface``).

    A folder that ``save_to_disk`` wrote, or one of JSON, CSV, Parquet or text files, is read in place; files are read like
    those of the loaders ``jsonl``, ``csv`` and ``parquet``, so cells of CSV are text. Any other path is a name on the hub: it
    is taken from the cache of this machine, or downloaded; with ``HF_HUB_OFFLINE=1`` only the cache is used.

    Args:
        path: a folder, a file, or a name on the hub (``mteb/scifact``).
        config: a configuration of the data set (``corpus``). None: its only or default one.
        split: one of its splits; for a single data set of ``save_to_disk``, the split it was made from.
        revision: a commit, branch or tag on the hub. None: the newest.
        id_field: the column that holds the id, unique: text or integer; or a path into objects. None: the number of the row,
            from 0, by which ``datasets`` knows it too.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
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
        """Yield the rows as objects, each with its number.

        Raises:
            DependencyError: ``datasets`` is not installed.
            SourceError: there is no such data set or split, the hub cannot be reached, a column is missing or not text.
        """
        source = f"{self.path}, split {self.split}"
        folder = Path(self.path).expanduser()
        saved = any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))
        if folder.exists() and not saved:
            yield from self._records_of_files(source, folder)
        else:
            yield from rows_of_batches(source, self._batches(source, folder, saved))

    def _records_of_files(self, source: str, folder: Path) -> Iterator[tuple[str, JsonObject]]:
        """The records of the data files of a split, each read as its own loader reads it."""
        with _clear_errors(source):
            given = (str(folder), None) if folder.is_dir() else (str(folder.absolute().parent), [folder.name])
            builder = _datasets().load_dataset_builder(given[0], self.config_name, data_files=given[1])
            files = {str(split): [str(file) for file in names] for split, names in builder.config.data_files.items()}
        form = type(builder).__module__.rpartition(".")[2]
        for file in self._split_of(files):
            if form == "csv":
                yield from self._csv(file, builder.config).records()
            elif form == "parquet":
                fields = (self.id_field, self.content_field, self.title_field, self.metadata_fields)
                yield from ParquetLoader(file, *fields).records()
            elif form == "json":
                yield from read_json_file_of_records(file)
            elif form == "text":
                for number, line in read_lines(file):
                    yield f"{file}, line {number}", {"text": line}
            else:
                raise SourceError(
                    f"{source}: {file} is read by datasets as {form!r}, and only CSV, JSON, Parquet and text files are read "
                    "from a folder; load it with datasets and write it with save_to_disk"
                )

    def _csv(self, file: str, read_as: Any) -> CsvLoader:
        return _CsvOfFolder(
            file,
            self.id_field,
            self.content_field,
            self.title_field,
            self.metadata_fields,
            delimiter=None if read_as.sep == "," else read_as.sep,
            columns=read_as.names,
            encoding=read_as.encoding or "utf-8",
        )

    def _batches(self, source: str, folder: Path, saved: bool) -> Iterator[pa.RecordBatch]:
        checked = False
        with _clear_errors(source):
            for table in self._open(folder, saved).with_format("arrow").iter(batch_size=BATCH):
                if not checked:
                    check_schema(self, source, table.schema)
                    checked = True
                yield from table.select(self.used_columns(table.column_names)).to_batches()

    def _open(self, folder: Path, saved: bool) -> Any:
        datasets = _datasets()
        if not saved:
            found = datasets.load_dataset(str(self.path), self.config_name, split=self.split, revision=self.revision)
            _say_what_was_guessed(str(self.path), found)
            return found
        found = datasets.load_from_disk(str(folder))
        if isinstance(found, datasets.DatasetDict):
            return self._split_of(found)
        if found.split is not None and str(found.split) != self.split:
            raise SourceError(
                f'{self.path}: it was made of the split "{found.split}", and "{self.split}" is asked for; '
                f'pass split="{found.split}"'
            )
        return found

    def _split_of(self, splits: Any) -> Any:
        if self.split not in splits:
            raise SourceError(f'{self.path}: no split "{self.split}"; {nearest(self.split, splits)}')
        return splits[self.split]


class _CsvOfFolder(CsvLoader):
    """A CSV file in a folder of data files, read as the folder's settings say."""

    offers = ()


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise DependencyError(f"HuggingFaceLoader needs datasets: {install('huggingface')}") from None
    return datasets


@contextmanager
def _clear_errors(source: str) -> Iterator[None]:
    """Turn exceptions of the library and its readers into an error that names the source."""
    try:
        yield
    except (RetrievalError, pa.ArrowException, UnicodeDecodeError):
        raise
    except ConnectionError as error:
        raise SourceError(
            f"{source}: neither a folder here nor in the cache, and the hub cannot be reached ({str(error)[:200]}); "
            "check path, name and network, or download it on another machine (save_to_disk) and name the folder"
        ) from None
    except Exception as error:
        reason = str(error.__cause__ or error)[:300]
        raise SourceError(f"{source}: datasets cannot read it: {reason}; check path, config and split") from error


def _say_what_was_guessed(name: str, found: Any) -> None:
    """Warn if ``datasets`` turned texts of a file into numbers or times, because the texts cannot be restored."""
    form = found.info.builder_name
    guessed = {"csv": ("int", "float", "bool", "timestamp", "date"), "json": ("timestamp",)}.get(form, ())
    changed = [column for column, feature in found.features.items() if getattr(feature, "dtype", "").startswith(guessed)]
    if guessed and changed:
        warnings.warn(
            f"{name}: datasets guessed the types of {quoted(changed)} from its {form.upper()} files (001 reads as 1, a date as "
            "a time); to have the text as it is, download the files into a folder and name the folder",
            RetrievalWarning,
            stacklevel=2,
        )
