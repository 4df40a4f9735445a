"""Items of text files with a record a line: JSON lines, and CSV and TSV files with any delimiter and encoding.

A row of CSV whose number of cells differs from the header, an unclosed quotation mark and a zero byte are errors that name the
line; nothing is padded, cut or skipped except blank lines.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.trust_rules import FIELD_NAMES, READS_FILE, may_set
from nlp_retrieval.core.files.opening import READ_ERRORS, open_bytes, read_error
from nlp_retrieval.core.files.records import MAX_ENTRY, JsonObject, quoted, too_long
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.files import SAVE_AS_UTF8, read_json_lines
from nlp_retrieval.loaders.records import RecordLoader

_DELIMITERS = ",\t;|"

Character = Annotated[str, Field(min_length=1, max_length=1)]
Quote = Character | Literal["auto"] | None
"""Quotation mark of cells; ``auto``: by the suffix of the file."""


class CsvLoader(RecordLoader):
    r"""Items from a CSV or TSV file with a line of column names, plain or gzip; streamed, so it may be of any size.

    Cells are text. A column without a name is left out (pandas writes its index so). Blank lines are skipped.

    Args:
        path: the file.
        id_field: the column that holds the id, unique in the file. None: the number of the row, from 0.
        content_field: the column that holds the text, or several, which are joined by line ends.
        title_field: the column that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the columns to keep as metadata. None: all the others.
        number_fields: the columns whose cells are numbers in the metadata, so that filters compare them as such; an empty
            cell and NaN are null.
        delimiter: separator of cells. None: a tab in a file called ``.tsv`` or ``.tab``, and in others the most frequent one in
            the first line of comma, tab, semicolon and bar.
        quote: the quotation mark of cells that hold delimiters or line ends. None: there is none, and a quotation mark is text.
            ``auto``: none in a file called ``.tsv`` or ``.tab``, ``"`` in any other.
        columns: the names of the columns of a file without a line of names, in order.
        encoding: of the file, as Python names it: ``utf-8``, ``utf-16``, ``latin-1``, ``cp1252``.

    Examples:
        >>> CsvLoader("animals.csv", content_field="text", title_field="name", delimiter=";").load()
        [SearchableItem(item_id='1', title='Fox', content='It hunts.')]
    """

    name = "csv"
    manifest_may_set = may_set(*FIELD_NAMES, "number_fields", "delimiter", "quote", "columns", "encoding", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        id_field: str | None = "id",
        content_field: str | Sequence[str] = "content",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
        number_fields: Sequence[str] = (),
        delimiter: Character | None = None,
        quote: Quote = "auto",
        columns: Annotated[Sequence[str], Field(min_length=1)] | None = None,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(id_field, content_field, title_field, metadata_fields)
        try:
            "".encode(encoding)
        except (LookupError, ValueError, TypeError):
            raise ConfigurationError(f"encoding: {encoding!r} is no encoding of text; such as utf-8 or latin-1") from None
        self.path = path
        self.number_fields = number_fields
        self.delimiter = delimiter
        self.quote = quote
        self.columns = columns
        self.encoding = encoding

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the rows as objects, each with its line.

        Raises:
            SourceError: the file is missing or damaged, a column is missing, or a row has too few or too many cells.
        """
        is_tsv = Path(self.path).name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        delimiter = self.delimiter or ("\t" if is_tsv else None)
        quote = (None if is_tsv else '"') if self.quote == "auto" else self.quote
        unchecked = True
        for location, row in read_rows(self.path, delimiter, quote, self.columns, self.encoding):
            if unchecked:
                try:
                    self.check_columns(str(self.path) if self.columns else f"{self.path}, line 1", row)
                except SourceError as error:
                    names = 'where the file has no line of names, pass columns=["id", "content"]'
                    raise SourceError(f"{error}; {names}" if self.columns is None else str(error)) from None
                unchecked = False
            for field in self.number_fields:
                if field not in row:
                    raise SourceError(f'{location}: no column "{field}" for number_fields (found: {quoted(row)}); correct it')
                row[field] = _number(location, field, str(row[field]))
            yield location, row


def read_rows(
    path: str | Path,
    delimiter: str | None = None,
    quote: str | None = '"',
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Iterator[tuple[str, JsonObject]]:
    r"""Yield the rows of a CSV file by the names of its columns, each with its location (``items.csv, line 17``).

    Args:
        path: a file, plain or gzip.
        delimiter: see :class:`CsvLoader`.
        quote: see :class:`CsvLoader`.
        columns: see :class:`CsvLoader`.
        encoding: see :class:`CsvLoader`.

    Raises:
        SourceError: the file is missing or damaged, or a row does not fit its header.

    Examples:
        >>> _ = Path("prey.csv").write_text("hunter,prey\nwhale,krill\n")
        >>> list(read_rows("prey.csv"))
        [('prey.csv, line 2', {'hunter': 'whale', 'prey': 'krill'})]
    """
    names = list(columns) if columns is not None else None
    for line, cells in read_cells(path, delimiter, quote, encoding):
        location = f"{path}, line {line}"
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
                f"{location}: {len(cells)} cells, where there are {len(names)} columns ({quoted(names)}); put quotation marks "
                "around cells that hold a delimiter or a line end, or pass delimiter=..."
            )
        row: JsonObject = dict(zip(names, cells, strict=True))
        row.pop("", None)
        yield location, row


def read_cells(path: str | Path, delimiter: str | None, quote: str | None, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file as they are, except blank ones, each with the number of the line on which it begins."""
    # the limit of the csv module is global, and its 128 KiB are less than a long article
    if csv.field_size_limit() < MAX_ENTRY:
        csv.field_size_limit(MAX_ENTRY)
    lines = _lines(path, encoding)
    first = next(lines, None)
    if first is None:
        raise SourceError(f"{path}: the file is empty; a CSV file begins with the names of its columns")
    bare = "".join(first.split(quote)[::2]) if quote else first
    reader = csv.reader(
        chain([first], lines),
        delimiter=delimiter or max(_DELIMITERS, key=bare.count),
        quotechar=quote,
        quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
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
            f"{location}: not a row of CSV: {error}; write a quotation mark within quoted cells twice, or pass quote=None to "
            "the loader where a quotation mark is text"
        ) from None


def _lines(path: str | Path, encoding: str) -> Iterator[str]:
    """The lines with their ends, decoded; a byte order mark is dropped."""
    name = codecs.lookup(encoding).name
    with open_bytes(path, utf16=name.startswith("utf-16")) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig" if name == "utf-8" else encoding, newline="")
        number = 1
        try:
            while line := text.readline(MAX_ENTRY + 1):
                if len(line) > MAX_ENTRY:
                    raise too_long(f"{path}, line {number}")
                if "\0" in line:
                    raise SourceError(
                        f"{path}, line {number}: it holds a zero byte; remove it, or pass the encoding (such as utf-16-le)"
                    )
                yield line
                number += 1
        except UnicodeError as error:
            ahead = error.object[: error.start].count(b"\n") if isinstance(error, UnicodeDecodeError) else 0
            reason = getattr(error, "reason", error)
            cure = f"{SAVE_AS_UTF8}, or give CsvLoader its encoding (latin-1, cp1252)"
            raise SourceError(f"{path}, line {number + ahead}: not {encoding} ({reason}); {cure}") from None
        except READ_ERRORS as error:
            raise read_error(f"{path}, line {number}", error) from error
        finally:
            text.detach()


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
