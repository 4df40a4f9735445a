"""Items of text files with a record a line: JSON lines, and CSV and TSV files with any delimiter.

A row of CSV whose number of cells differs from the header, an unclosed quotation mark and a zero byte are errors that name the
line; nothing is padded, cut or skipped except blanks around ids, and rows without a text. Where a tab is the delimiter, by the
name of the file or as given, a quotation mark is text.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, READS_FILE, may_set
from nlp_retrieval.core.files.records import MAX_ENTRY, JsonObject, quoted, too_long
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.files import raw_lines, read_json_lines
from nlp_retrieval.loaders.records import RecordLoader

_DELIMITERS = ",\t;|"
_EXCEL = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # a first line that tells Excel the delimiter


class CsvLoader(RecordLoader):
    r"""Items from a CSV or TSV file with a line of column names, plain or gzip; streamed, so it may be of any size.

    Cells are text. A column without a name is left out (pandas writes its index so). Rows without a text are skipped.

    Args:
        path: the file.
        id_field: the column that holds the id, unique in the file. None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
        number_fields: the columns whose cells are numbers in the metadata, so that filters compare them as such; an empty
            cell and NaN are null.
        delimiter: separator of cells. None: a tab in a file called ``.tsv`` or ``.tab``, and in others the most frequent one in
            the first line of comma, tab, semicolon and bar. Where it is a tab, a quotation mark is text.
        columns: the names of the columns of a file without a line of names, in order.

    Examples:
        >>> CsvLoader("animals.csv", content_field="text", title_field="name", delimiter=";").load()
        [SearchableItem(item_id='1', title='Fox', content='It hunts.')]
    """

    name = "csv"
    manifest_may_set = may_set(*FIELD_NAMES, "number_fields", "delimiter", "columns", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        id_field: str | None = "id",
        content_field: str | Sequence[str] = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
        number_fields: Sequence[str] = (),
        delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None,
        columns: Annotated[Sequence[str], Field(min_length=1)] | None = None,
    ) -> None:
        super().__init__(id_field, content_field, title_field, metadata_fields)
        self.path = path
        self.number_fields = number_fields
        self.delimiter = delimiter
        self.columns = columns

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the rows as objects, each with its line.

        Raises:
            SourceError: the file is missing or damaged, a column is missing, or a row has too few or too many cells.
        """
        for n_before, (location, row) in enumerate(read_rows(self.path, self.delimiter, self.columns)):
            if n_before == 0:
                try:
                    self.check_columns(str(self.path) if self.columns else f"{self.path}, line 1", row)
                except SourceError as error:
                    names = 'where the file has no line of names, pass columns=["id", "content"]'
                    raise SourceError(f"{error}; {names}" if self.columns is None else str(error)) from None
            if (id_field := self._id_field_in(row)) is not None and id_field in row:
                row[id_field] = str(row[id_field]).strip()  # as judgements name it
            for field in self.number_fields:
                if field not in row:
                    raise SourceError(f'{location}: no column "{field}" for number_fields (found: {quoted(row)}); correct it')
                row[field] = _number(location, field, str(row[field]))
            yield location, row


def read_rows(
    path: str | Path, delimiter: str | None = None, columns: Sequence[str] | None = None
) -> Iterator[tuple[str, JsonObject]]:
    r"""Yield the rows of a CSV file by the names of its columns, each with its location (``items.csv, line 17``).

    Args:
        path: a file, plain or gzip.
        delimiter: see :class:`CsvLoader`.
        columns: see :class:`CsvLoader`.

    Raises:
        SourceError: the file is missing or damaged, or a row does not fit its header.

    Examples:
        >>> _ = Path("prey.csv").write_text("hunter,prey\nwhale,krill\n")
        >>> list(read_rows("prey.csv"))
        [('prey.csv, line 2', {'hunter': 'whale', 'prey': 'krill'})]
    """
    names, begins_blank = list(columns) if columns is not None else None, False
    for line, cells in read_cells(path, delimiter):
        location = f"{path}, line {line}"
        if not any(map(str.strip, cells)):
            begins_blank |= names is None
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            while names and not names[-1]:  # a delimiter at the end of the line
                names.pop()
            given = [name for name in names if name]
            if not given or len(set(given)) < len(given):
                raise SourceError(
                    f"{location}: a column has no name of its own (found: {quoted(names)}); name each once, or pass columns= "
                    "where the file has no line of names"
                )
            continue
        while len(cells) > len(names) and not cells[-1].strip():
            cells.pop()
        if len(cells) != len(names):
            raise SourceError(
                f"{location}: {len(cells)} cells, where there are {len(names)} columns ({quoted(names)}); put quotation marks, "
                "without a blank before, around cells that hold a delimiter or a line end, or pass delimiter=..."
            )
        row: JsonObject = dict(zip(names, cells, strict=True))
        row.pop("", None)
        begins_blank = False
        yield location, row
    if begins_blank:  # and no row of values follows: the names may be values
        raise SourceError(f"{path}: the first row is blank; begin the file with the names of the columns")


def read_cells(path: str | Path, delimiter: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file as they are, except empty ones, each with the number of the line on which it begins."""
    # the limit of the csv module is global, and its 128 KiB are less than a long article
    if csv.field_size_limit() < MAX_ENTRY:
        csv.field_size_limit(MAX_ENTRY)
    if delimiter is None and Path(path).name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        delimiter = "\t"
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise SourceError(f"{path}: the file is empty; a CSV file begins with the names of its columns")
    if (line := _EXCEL.fullmatch(first)) is not None:
        first, delimiter = "\n", delimiter or line[1]
    reader = csv.reader(
        chain([first], lines),
        delimiter=delimiter or max(_DELIMITERS, key="".join(first.split('"')[::2]).count),
        quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    before = 0
    try:
        for cells in reader:
            if cells:
                yield before + 1, cells
            before = reader.line_num
    except csv.Error as error:
        location = f"{path}, line {before + 1}"
        if str(error).startswith("field larger than"):
            raise too_long(location) from None
        raise SourceError(
            f"{location}: not a row of CSV: {error}; write a quotation mark within quoted cells twice, or separate the cells "
            "by tabs in a file called .tsv, where a quotation mark is text"
        ) from None


def _lines(path: str | Path) -> Iterator[str]:
    for number, line in raw_lines(path):
        if "\0" in line:
            raise SourceError(f"{path}, line {number}: it holds a zero byte; remove it, or save the file as UTF-8")
        yield from io.StringIO(line, newline="") if "\r" in line else (line,)  # CR alone may end lines too


def _number(location: str, field: str, cell: str) -> JsonValue:
    written = cell.strip()
    if not written or written.lower() == "nan":
        return None
    for kind in (int, float):
        with suppress(ValueError):
            if "_" not in written and math.isfinite(number := kind(written)):
                return number
    raise SourceError(f'{location}: "{field}" is {cell[:40]!r}, which is no number; correct it, or leave number_fields out')


class JsonlLoader(RecordLoader):
    """Items from a JSON Lines file: one object per line, UTF-8, plain or gzip; blank lines are skipped.

    Ids are text or integers, which become text. The fields of an object named ``metadata`` join the other fields. A field named
    ``title`` that is not the ``title_field`` is left out unless ``metadata_fields`` names it, because ``title`` in the metadata
    of an item is its title.

    Args:
        path: the file.
        id_field: the field that holds the id, unique in the file. None: the number of the row, from 0.
        content_field: the field that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title; a row may lack it. None: the items have no titles.
        metadata_fields: the fields to keep as metadata; a row may lack some. None: all the others.

    Examples:
        >>> _ = Path("beir.jsonl").write_text(json.dumps({"_id": "1", "text": "It hunts.", "title": "Fox", "year": 2021}))
        >>> (item,) = JsonlLoader("beir.jsonl", id_field="_id", content_field="text").load()
        >>> item.text, item.metadata["year"]
        ('Fox. It hunts.', 2021)
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
