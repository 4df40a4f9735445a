"""Reading files, folders, manifests and JSON lines as sources, and writing passages as a collection for a benchmark.

All of a manifest is checked before any source is read.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nlp_retrieval.core import expanded, remove_output, write_output
from nlp_retrieval.documents import (
    MANIFESTS,
    Described,
    Document,
    clean_text,
    clean_title,
    files_in,
    read_document,
    read_file,
    read_manifest,
    suspicious,
)
from nlp_retrieval.errors import DependencyError, FetchError, InputError, RetrievalWarning, SourceError
from nlp_retrieval.loaders import JsonObject, as_id, as_text, quoted, read_json_lines
from nlp_retrieval.systems.evidence.grades import assess_source_quality, check_grade
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.store import SourceDocument, moment_of
from nlp_retrieval.systems.evidence.index.urls import canonical_url, resolved_doi
from nlp_retrieval.text import counted, located, printable

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence.web_research.fetching import FetchedPage

JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
UNREADABLE = "files skipped because they cannot be read"
_SHOWN_FAULTS = 30


def read_sources(
    paths: Iterable[str | Path] | str | Path,
    quality: str = "",
    fetch_date: str = "",
    url: str = "",
    left_out: dict[str, list[str]] | None = None,
    fetch: Callable[[str], FetchedPage] | None = None,
) -> Iterator[SourceDocument]:
    """Yield the sources in files and folders, one at a time; what a page says of its own address or grade may be false."""
    for_all = _given(SourceDocument("", url, "", quality, fetch_date))
    _check("these sources", for_all)
    several = [expanded(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    manifests = {
        path: _manifest(path, fetches=fetch is not None)
        for path in several
        if path.suffix.lower() in MANIFESTS and path.is_file()
    }
    return _Reading(for_all, {} if left_out is None else left_out, fetch, manifests).read(several)


def _check(where: str, source: SourceDocument) -> None:
    """Refuse a grade or date that is none; the message has both if both are wrong."""
    faults: list[str] = []
    for check, value in ((moment_of, source.fetch_date), (partial(check_grade, what="quality"), source.quality)):
        try:
            if value:
                check(value)
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise SourceError(f"{where}: {'; '.join(faults)}")


@dataclass
class _Reading:
    """One reading of files and folders; what manifests say of a source is a source without content."""

    for_all: SourceDocument
    left_out: dict[str, list[str]]
    fetch: Callable[[str], FetchedPage] | None
    manifests: Mapping[Path, Sequence[tuple[Described, SourceDocument]]]

    def read(self, paths: list[Path]) -> Iterator[SourceDocument]:
        for path in paths:
            if path.is_dir():
                for file in files_in(path, self.left_out, JSON_LINES):
                    yield from self._skipping(self._sources(file, follow_link=False))
            elif path in self.manifests:
                for row, said in self.manifests[path]:
                    yield from self._skipping(self._listed(row, said))
            else:
                yield from self._sources(path, follow_link=True)
        for reason, cases in self.left_out.items():
            warnings.warn(f"{reason}: {len(cases):,} (first: {cases[0]})", RetrievalWarning, stacklevel=2)

    def _skipping(self, sources: Iterator[SourceDocument]) -> Iterator[SourceDocument]:
        """Yield sources up to one that cannot be read."""
        try:
            yield from sources
        except DependencyError:
            raise
        except (InputError, FetchError) as error:
            self.left_out.setdefault(UNREADABLE, []).append(str(error))

    def _listed(self, row: Described, said: SourceDocument) -> Iterator[SourceDocument]:
        if row.file is not None:
            yield from self._sources(row.file, follow_link=False, said=said)
        elif self.fetch is not None:
            yield self._fetched(row, said, self.fetch)

    def _fetched(self, row: Described, said: SourceDocument, fetch: Callable[[str], FetchedPage]) -> SourceDocument:
        url = resolved_doi(row.fields["url"]) if row.fields.get("url") else said.url
        try:
            page = fetch(url)
        except FetchError as error:
            of = "" if url in str(error) else f", {printable(url)}"
            raise SourceError(f"{row.where}{of}: {error}") from None
        moved = () if canonical_url(page.url) == canonical_url(url) else (page.url,)
        said = replace(said, fetch_date=said.fetch_date or page.fetch_date, aliases=(*said.aliases, *moved))
        read = read_document(page.content, name=page.url, media_type=page.media_type)
        return self._document(read, f"{row.where}, {printable(page.url)}", said)

    def _sources(self, path: Path, follow_link: bool, said: SourceDocument | None = None) -> Iterator[SourceDocument]:
        if said is None and path.name.lower().endswith(JSON_LINES) and path.is_file():
            for where, row in read_json_lines(path):
                sources = self._row(where, row)
                yield from sources if follow_link else self._skipping(sources)  # in a folder, the lines after it are read
            return
        read = read_document(read_file(path, follow_link), name=str(path))
        absolute = os.path.abspath(path)  # noqa: PTH100 -- Path's own follows no ..
        said = said or SourceDocument("", self.for_all.url or Path(absolute).as_uri(), quality="")
        yield self._document(replace(read, title=read.title or path.stem), printable(str(path)), said)

    def _document(self, read: Document, shown: str, said: SourceDocument) -> SourceDocument:
        """Return a source with the values of a manifest, else of its page."""
        if any(block.outside for block in read.blocks):
            self.left_out.setdefault("pages of which text outside the main text, as navigation, was left out", []).append(shown)
        for note in read.notes:
            self.left_out.setdefault("notes on how files were read", []).append(note)
        title = clean_title(said.title or read.title)
        return self._graded(replace(said, content=read.text, title=title, pages=read.pages), shown, read.removed)

    def _graded(self, source: SourceDocument, where: str, removed: Counter[str]) -> SourceDocument:
        """Return a source with the grade and the date of all sources, or that of its address, if it has no own."""
        if hidden := suspicious(removed):
            reason = "sources with text that readers do not see, which was omitted"
            self.left_out.setdefault(reason, []).append(f"{where}: {hidden}")
        try:
            grade = assess_source_quality(source.url)  # even if it is not needed: this detects a wrong URL
        except DependencyError:
            raise
        except InputError as error:
            raise SourceError(f"{where}: {error}") from None
        return replace(
            source,
            quality=source.quality or self.for_all.quality or grade,
            fetch_date=source.fetch_date or self.for_all.fetch_date,
            given=source.given | self.for_all.given,
        )

    def _row(self, where: str, row: JsonObject) -> Iterator[SourceDocument]:
        if missing := [name for name in ("content", "url") if name not in row]:
            raise SourceError(f'{where}: no "{missing[0]}" field (found: {quoted(row)})')
        names = ("content", "url", "title", "quality", "fetch_date")
        values = {name: "" if row.get(name) is None else as_text(where, name, row[name]) for name in names}
        content, removed = clean_text(values["content"])
        title = clean_title(values["title"])
        if not content.strip():
            raise SourceError(f'{where}: "content" has no visible text; remove the line')
        url = resolved_doi(values["url"])
        source = _given(SourceDocument(content.strip(), url, title, values["quality"], values["fetch_date"]))
        _check(where, source)
        yield self._graded(source, where, removed)


# What a row of a manifest says of a source.


def _given(said: SourceDocument) -> SourceDocument:
    """Return a source whose values came from a person."""
    return replace(said, given=frozenset(name for name in ("title", "quality", "fetch_date") if getattr(said, name)))


def _said(row: Described) -> tuple[SourceDocument, list[str]]:
    """Return what values by field say of a source, without its content, and what is wrong with them and left out."""
    faults, fields = [], row.fields
    urls: dict[str, str] = {}
    for name in (name for name in ("canonical", "doi", "url") if fields.get(name)):
        address = fields[name].rstrip(".,;") if name == "doi" else fields[name]
        try:
            canonical, fault = canonical_url(address), ""
        except InputError as error:
            canonical, fault = "", str(error)
        if name == "doi" and not canonical.startswith("https://doi.org/10."):
            fault = "it is not a DOI such as 10.1000/182"
        if fault:
            faults.append(f"{row.where}: {name} {printable(address)[:80]!r}: {fault}")
        else:
            urls[name] = canonical if name == "doi" else resolved_doi(address)
    url = urls.get("canonical") or urls.get("url") or urls.get("doi", "") or (row.file.as_uri() if row.file else "")
    aliases = tuple(address for address in dict.fromkeys(urls.values()) if address != url)
    grade, date = fields.get("quality", "").upper(), fields.get("fetch_date") or fields.get("date", "")
    said = _given(SourceDocument("", url, fields.get("title", ""), grade, date, aliases=aliases))
    try:
        _check(row.where, said)
    except SourceError as error:
        faults.append(str(error))
    return said, faults


def _manifest(path: Path, *, fetches: bool) -> list[tuple[Described, SourceDocument]]:
    """Return the sources that a CSV file lists, each by its canonical URL, else its URL, else its DOI; or list all faults."""
    listed, faults = read_manifest(path)
    rows: list[tuple[Described, SourceDocument]] = []
    by_url: dict[str, list[tuple[Described, SourceDocument]]] = {}
    for row in listed:
        said, wrong = _said(row)
        if row.file is None and not row.fields.get("file") and not wrong and not (said.url and fetches):
            wrong.append(f"{row.where}: it names no file{'; add --fetch http to fetch its URL' if said.url else ' and no URL'}")
        faults += wrong
        rows.append((row, said))
        if said.url:
            by_url.setdefault(canonical_url(said.url), []).append(rows[-1])
    for url, same in by_url.items():
        dates = [said.fetch_date for _, said in same]
        if len(same) > 1 and (len(set(dates)) < len(same) or not all(dates)):
            lines = " and ".join(row.where.rpartition(", ")[2] for row, _ in same[:5])
            faults.append(f"{lines}: both are {url}; keep one, or give each the date of its version")
    if faults:
        first = "".join(f"\n  {fault}" for fault in faults[:_SHOWN_FAULTS])
        raise SourceError(f"{path}: nothing was added, since {counted(len(faults), 'thing')} must be mended:{first}")
    return rows


# A project's passages as a collection in BEIR's layout, with judged claims, for a benchmark of searchers.


def export_collection(sources: EvidenceIndex, folder: str | Path, judged: str | Path | None = None) -> tuple[int, int]:
    """Write the searchable passages of a project, and judged claims, into a folder; return the number of both."""
    target = Path(folder)
    keys = dict.fromkeys(source.key for source in sources.sources())  # a text with several URLs once, under the first
    corpus = [_item(_id(key, number), one) for key in keys for number, one in enumerate(sources.passages(key))]
    queries, gold = ([], []) if judged is None else _judged(sources, Path(judged))
    for name in ("qrels/test.tsv", "queries.jsonl"):  # first, so that no claims are judged by passages of another export
        remove_output(target / name)
    write_output(target / "corpus.jsonl", _lines(corpus))
    if judged is not None:
        table = "".join(f"{query}\t{item}\t1\n" for query, item in gold)
        write_output(target / "queries.jsonl", _lines(queries))
        write_output(target / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{table}".encode())
    return len(corpus), len(queries)


def _id(key: str, number: int) -> str:
    return f"{key}::{number}"


def _item(item_id: str, passage: EvidencePassage) -> dict[str, object]:
    titled = {"title": passage.title} if passage.title else {}
    metadata = {name: passage[name] for name in ("url", "quality", "fetch_date") if passage[name]}
    return {"_id": item_id, **titled, "text": passage.content, "metadata": metadata}


def _judged(sources: EvidenceIndex, path: Path) -> tuple[list[dict[str, object]], list[tuple[str, str]]]:
    """Return queries, and pairs of query and gold passage, each once and in the order of the file."""
    queries: dict[str, dict[str, object]] = {}
    gold: dict[tuple[str, str], None] = {}
    for where, row in read_json_lines(path):
        claim = as_text(where, "claim", row.get("claim"))
        if not claim.strip():
            raise SourceError(f'{where}: "claim" is empty')
        if claim not in queries:
            metadata = {} if row.get("family") is None else {"family": as_id(where, "family", row["family"])}
            queries[claim] = {"_id": f"claim{len(queries) + 1}", "text": claim, "metadata": metadata}
        item_ids = _gold(sources, where, as_text(where, "url", row.get("url")), row)
        gold |= dict.fromkeys((str(queries[claim]["_id"]), item_id) for item_id in item_ids)
    if not queries:
        raise SourceError(f"{path}: it holds no claims; write one object per line, with claim, url and quote")
    return list(queries.values()), list(gold)


def _gold(sources: EvidenceIndex, where: str, url: str, row: JsonObject) -> Iterable[str]:
    source = sources.source(url)
    if source is None:
        raise SourceError(f"{where}: no text is stored under {url[:200]!r}; add it to the project, or remove the line")
    passages = sources.passages(source.key)
    if row.get("quote") is None:
        return [_id(source.key, number) for number in range(len(passages))]
    span = located(as_text(where, "quote", row["quote"]), sources.text(source.key), shortest=1)
    if span is None:
        raise SourceError(f"{where}: the text of {url[:200]!r} does not have this quote; copy it exactly")
    begin, end = span
    whole = [number for number, passage in enumerate(passages) if passage.start <= begin and end <= passage.end]
    parts = [number for number, passage in enumerate(passages) if passage.start < end and begin < passage.end]
    return [_id(source.key, number) for number in whole or parts]


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
