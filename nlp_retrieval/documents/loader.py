"""Files of text, Markdown, HTML, PDF and DOCX as items: what every system, and every search, reads documents with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nlp_retrieval.core import READS_FILE, BaseLoader, may_set
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.documents.folders import (
    Described,
    LeftOut,
    described,
    files_in,
    is_json_lines,
    is_manifest,
    read_manifest,
    refuse_faults,
)
from nlp_retrieval.documents.reading import read_document, read_file
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import JsonObject, make_item

MANIFEST = "manifest.csv"


class DocumentsLoader(BaseLoader):
    """Items from documents, one for each: text, Markdown, HTML, PDF and DOCX, as their readers see them.

    An item's id is the path of its file relative to the folder. Its metadata are ``document`` (the name of the file), ``title``
    (if it has one), ``page_starts`` (of a PDF: each page with text, from 1, and where it begins in the text), the values of the
    front matter of text and Markdown, and those of a manifest, which count first. ``ChunkingLoader`` cuts documents into
    passages, each with its ``page``.

    Files of a folder that cannot be read are skipped with a warning.

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
        left_out = LeftOut()
        folder, is_listed = path.parent, True
        if path.is_dir():
            own = path / MANIFEST
            rows = {row.file: row for row in _rows(own)} if own.is_file() else {}
            files = [file for file in files_in(path, left_out, known=(own,)) if not is_json_lines(file)]
            wanted, folder = [(file, rows.get(file.resolve())) for file in files], path
        elif is_manifest(path):
            wanted = [(row.file, row) for row in _rows(path) if row.file is not None]
        else:
            wanted, is_listed = [(path, None)], False
        for file, row in wanted:
            try:
                yield _item_of(file, folder, row, left_out, follow_link=not is_listed)
            except SourceError as error:
                if not is_listed:
                    raise
                left_out.fail("files skipped because they cannot be read", str(error))
        left_out.warn()


def _rows(path: Path) -> list[Described]:
    rows, faults = read_manifest(path)
    refuse_faults(
        path, faults + [f"{row.where}: it names no file; remove the row" for row in rows if not row.fields.get("file")]
    )
    return rows


def _item_of(file: Path, folder: Path, row: Described | None, left_out: LeftOut, *, follow_link: bool) -> SearchableItem:
    shown = str(file)
    read = read_document(read_file(file, follow_link), name=shown)
    for note in read.notes:
        left_out.add("notes on how files were read", note)
    if read.removed.suspicious:
        left_out.add("documents with text that readers do not see, which was omitted", f"{shown}: {read.removed.describe()}")
    said = [described(dict(read.metadata), shown), *([row] if row is not None else [])]
    relative = file.resolve().relative_to(folder.resolve()) if row is not None else file.relative_to(folder)
    metadata: JsonObject = {"document": relative.as_posix()}
    if title := next(filter(None, (one.fields.get("title") for one in reversed(said))), read.title):
        metadata["title"] = title
    if read.pages:
        metadata["page_starts"] = [list(page) for page in read.pages]
    for one in said:
        metadata |= one.metadata
        for name, fields in (("date", ("fetch_date", "date")), ("url", ("canonical", "url")), ("doi", ("doi",))):
            if value := next(filter(None, map(one.fields.get, fields)), ""):
                metadata[name] = value
    return make_item(shown, relative.as_posix(), read.text, metadata)
