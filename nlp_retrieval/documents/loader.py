"""Files of text, Markdown, HTML, PDF and DOCX as items: what every system, and every search, reads documents with.

A folder is read to any depth, in the order of its names. Links (they may lead out of it), devices and unsupported files
are skipped and counted in a warning; names that begin with a dot, and lock files of office programs, without one. A manifest is
a CSV file, which names files below its own folder only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nlp_retrieval.core import READS_FILE, BaseLoader, may_set
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.documents.blocks import clean_text, suspicious
from nlp_retrieval.documents.reading import SUFFIXES, read_document, read_file
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders import JsonObject, make_item, quoted, read_rows
from nlp_retrieval.text import printable

MANIFESTS = (".csv", ".tsv")
"""Files that list documents with their files or URLs."""

_UNSEEN = (".", "~$")


def files_in(
    folder: Path, left_out: dict[str, list[str]], others: tuple[str, ...] = (), known: tuple[Path, ...] = ()
) -> Iterator[Path]:
    """Yield the documents of a folder, and files whose names end in another way; note what else there is, unless it is known.

    Examples:
        >>> Path("pages").mkdir()
        >>> _ = Path("pages/krill.txt").write_text("Krill.")
        >>> [path.name for path in files_in(Path("pages"), {})]
        ['krill.txt']
    """
    errors: list[OSError] = []
    for current, folders, names in os.walk(folder, onerror=errors.append):
        here = Path(current)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(_UNSEEN) and name not in links)
        for path in [here / name for name in (*links, *sorted(names))]:
            if path.name.startswith(_UNSEEN) or path in known:
                continue
            if path.is_symlink() or not path.is_file():
                left_out.setdefault("links, devices, pipes and sockets skipped", []).append(printable(str(path)))
            elif path.name.lower().endswith((*SUFFIXES, *others)):
                yield path
            else:
                left_out.setdefault("unsupported files skipped", []).append(printable(str(path)))
    if errors:
        closed = left_out.setdefault("folders skipped because they cannot be opened", [])
        closed += [printable(str(error)) for error in errors]


_FIELDS = {name: name for name in ("file", "url", "canonical", "quality", "date", "title", "doi")}
_FIELDS |= {"filename": "file", "canonicalurl": "canonical", "grade": "quality"}
_FIELDS |= {"accessed": "fetch_date", "fetchdate": "fetch_date"}


@dataclass(frozen=True)
class Described:
    """What a row of a manifest says about a document: its fields as far as said, other values, and the path of its file.

    Fields are "file", "url", "canonical", "quality", "fetch_date", "date", "title" and "doi".

    Examples:
        >>> Described("sources.csv, line 2", {"title": "Krill"}).fields["title"]
        'Krill'
    """

    where: str
    fields: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


def read_manifest(path: Path) -> tuple[list[Described], list[str]]:
    """Return the rows of a manifest, and what is wrong with the files that they name.

    Columns are ``file`` or ``url``, ``canonical url``, ``grade``, ``date``, ``title`` and ``doi``, with spaces and case as
    people write them; others become metadata.

    Raises:
        SourceError: a column is missing or twice, or it has no rows.

    Examples:
        >>> _ = Path("krill.txt").write_text("Krill.")
        >>> _ = Path("sources.csv").write_text(chr(10).join(["file,year", "krill.txt,2020"]))
        >>> [(row.file.name, row.metadata) for row in read_manifest(Path("sources.csv"))[0]]
        [('krill.txt', {'year': '2020'})]
    """
    folder = path.parent.resolve()
    rows: list[Described] = []
    faults: list[str] = []
    for number, (where, row) in enumerate(read_rows(path)):
        meant = {column: _FIELDS.get("".join(char for char in column.casefold() if char.isalnum()), "") for column in row}
        fields_meant = [known for known in meant.values() if known]
        if not number and (twice := next((known for known in fields_meant if fields_meant.count(known) > 1), "")):
            raise SourceError(f"{where}: several columns mean the {twice}; remove all but one")
        if not number and not {"file", "url", "canonical", "doi"} & set(fields_meant):
            raise SourceError(f'{where}: no column "file" or "url" (found: {quoted(row)})')
        fields, metadata = dict[str, str](), dict[str, str]()
        file: Path | None = None
        for column, value in row.items():
            if cleaned := " ".join(clean_text(str(value))[0].split())[:2_000]:
                (fields if meant[column] else metadata)[meant[column] or column] = cleaned
        if name := fields.get("file", ""):
            real = Path(os.path.realpath(folder / name))
            if Path(name).is_absolute() or not real.is_relative_to(folder):
                faults.append(f"{where}: '{printable(name)[:120]}' leads out of the folder of the manifest; copy it there")
            elif not os.path.isfile(real):  # noqa: PTH113 -- Path's own raises for a name that is too long
                faults.append(f"{where}: '{printable(name)[:120]}' is no file in {printable(str(folder))}; check its name")
            else:
                file = real
        if fields or metadata:
            rows.append(Described(where, fields, metadata, file))
    if not rows:
        raise SourceError(f"{path}: it lists no source")
    return rows, faults


class DocumentsLoader(BaseLoader):
    """Items from documents, one for each: text, Markdown, HTML, PDF and DOCX, as their readers see them.

    An item's id is the path of its file relative to the folder. Its metadata are ``document`` (the name of the file), ``title``
    (if it has one), ``page_starts`` (of a PDF: each page with text, from 1, and where it begins in the text), and what a
    manifest says. ``ChunkingLoader`` cuts documents into passages. Of a folder, what cannot be read is skipped with a warning.

    Args:
        path: a file; a folder, with its folders; or a manifest: a CSV file with a column ``file``, and others, such as
            ``country`` and ``year``, that become metadata. A file ``manifest.csv`` in a folder describes files of it.

    Examples:
        >>> _ = Path("notes.txt").write_text("Krill live in cold water.")
        >>> DocumentsLoader("notes.txt").load()
        [SearchableItem(item_id='notes.txt', content='Krill live in cold water.')]
    """

    name = "documents"
    manifest_may_set = may_set(path=READS_FILE)

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the documents, in the order of their names, or of the manifest.

        Raises:
            SourceError: the path does not exist, the only file cannot be read, or a line of the manifest is wrong.
            DependencyError: a package for a kind of file is not installed.
        """
        path = expanded(self.path)
        left_out: dict[str, list[str]] = {}
        folder, is_listed = path.parent, True
        if path.is_dir():
            own = path / "manifest.csv"
            rows = {row.file: row for row in _rows(own)} if own.is_file() else {}
            wanted, folder = [(file, rows.get(file.resolve())) for file in files_in(path, left_out, known=(own,))], path
        elif path.suffix.lower() in MANIFESTS:
            wanted = [(row.file, row) for row in _rows(path) if row.file is not None]
        else:
            wanted, is_listed = [(path, None)], False
        for file, row in wanted:
            try:
                yield _item_of(file, folder, row, left_out, follow_link=not is_listed)
            except SourceError as error:
                if not is_listed:
                    raise
                left_out.setdefault("files skipped because they cannot be read", []).append(str(error))
        for reason, cases in left_out.items():
            warnings.warn(f"{reason}: {len(cases):,} (first: {cases[0]})", RetrievalWarning, stacklevel=2)


def _rows(path: Path) -> list[Described]:
    rows, faults = read_manifest(path)
    faults += [f"{row.where}: it names no file; remove the row" for row in rows if not row.fields.get("file")]
    if faults:
        raise SourceError("\n".join(faults))
    return rows


def _item_of(
    file: Path, folder: Path, row: Described | None, left_out: dict[str, list[str]], *, follow_link: bool
) -> SearchableItem:
    shown = str(file)
    read = read_document(read_file(file, follow_link), name=shown)
    for note in read.notes:
        left_out.setdefault("notes on how files were read", []).append(note)
    if hidden := suspicious(read.removed):
        left_out.setdefault("documents with text that readers do not see, which was omitted", []).append(f"{shown}: {hidden}")
    relative = file.relative_to(folder) if row is None else file.resolve().relative_to(folder.resolve())
    said = row or Described(shown)
    metadata: JsonObject = {"document": relative.as_posix()}
    if title := said.fields.get("title") or read.title:
        metadata["title"] = title
    if read.pages:
        metadata["page_starts"] = [list(page) for page in read.pages]
    for name, fields in (("date", ("date", "fetch_date")), ("url", ("canonical", "url")), ("doi", ("doi",))):
        if value := next(filter(None, map(said.fields.get, fields)), ""):
            metadata[name] = value
    return make_item(shown, relative.as_posix(), read.text, {**metadata, **said.metadata})
