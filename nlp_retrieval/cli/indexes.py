"""Commands of an index directory: ``index``, ``add``, ``delete``, ``compact``, ``verify``; and their arguments."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import Trust, built, default_lexical_retriever, parse_options, say
from nlp_retrieval.errors import ConfigurationError

if TYPE_CHECKING:
    from nlp_retrieval.core.files.frames import BaseLoader


Corpus = Annotated[str, typer.Argument(help="File, folder or database URL of the corpus.")]
"""The argument of a command that names a corpus."""

Loader = Annotated[str | None, typer.Option("--loader", "-l", help="csv, beir, database, ... Default: by the suffix.")]
"""The option of a command that names a loader."""

LoaderOptions = Annotated[list[str] | None, typer.Option("--option", "-o", help="key=value, for the loader. Repeatable.")]
"""The option of a command that sets parameters of a loader, as ``key=value``."""


_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def corpus_loader(corpus: str, loader: str | None, options: list[str] | None) -> BaseLoader:
    """Build the loader of a corpus.

    Raises:
        ConfigurationError: the loader or a parameter does not exist; or no loader was given, and the suffix identifies none.

    Examples:
        >>> corpus_loader("animals.jsonl", None, None)  # chosen by its suffix
        JsonlLoader(path='animals.jsonl')
        >>> corpus_loader("animals.csv", "csv", ["delimiter=;"])
        CsvLoader(path='animals.csv', delimiter=';')
    """
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.core.files.frames import BaseLoader

    loader = loader or _BY_SUFFIX.get(PurePath(corpus.removesuffix(".gz")).suffix.lower())
    if loader is None:
        raise ConfigurationError(
            f"{corpus}: no loader is known for a file of this name; pass --loader: csv, parquet or jsonl for such files, "
            "hotpotqa, beir for a folder in BEIR's layout, huggingface, ir_datasets, database for a URL"
        )
    settings = {"name": loader, "url" if loader == "database" else "path": corpus} | parse_options(options or [])
    return build_as(BaseLoader, "loaders", settings, "corpus")


WorkersOption = Annotated[int | None, typer.Option("--workers", help="Processes of one core each; default: this one.")]
RayOption = Annotated[str | None, typer.Option("--ray", metavar="auto|HOST:PORT", help="Use this machine's Ray, or another.")]


def index(
    corpus: Corpus,
    index: Annotated[Path, typer.Argument(help="The index directory; created if it does not exist.")],
    loader: Loader = None,
    option: LoaderOptions = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option("--retriever", "-r", help="name:key=value. Repeatable. Default: BM25, by Lucene if Java is there."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing index of other items.")] = False,
    workers: WorkersOption = None,
    ray: RayOption = None,
) -> None:
    """Index a corpus.

    Existing parts are not built again; retrievers can be added to an index of the same items. With --workers or --ray, other
    processes encode the passages; the index is the same.
    """
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.core.search.searcher import Searcher

    source = corpus_loader(corpus, loader, option)
    chosen = [built(BaseRetriever, "--retriever", text) for text in retriever or []]
    searcher = Searcher(chosen or [default_lexical_retriever()])
    report = searcher.index(source, index, replace=replace, workers=workers, ray=ray)
    for record in searcher.index_records():
        size = sum(segment.bytes for segment in record.segments)
        state = f"built in {record.seconds:.1f} s" if record.fingerprint in report.fingerprints else "was there already"
        say(f"{record.config['name']}: {state}, {size / 1e6:,.1f} MB")
    if report.resumed:
        say(f"{report.resumed:,} passages were not encoded again: an interrupted run had already encoded them")
    say(f"{report.n_items:,} items in {index} ({report.seconds:.1f} s)")


def add(
    corpus: Corpus,
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    loader: Loader = None,
    option: LoaderOptions = None,
    update: Annotated[bool, typer.Option("--update", help="Replace items of the same id; else that is an error.")] = False,
    trust: Trust = False,
) -> None:
    """Add items to an index, for all of its retrievers.

    Existing items are not indexed again; a search sees all of the new items or none.
    """
    from nlp_retrieval.core.index.build import add_items
    from nlp_retrieval.core.search.base_searcher import builders_of

    source = corpus_loader(corpus, loader, option).stream()
    report = add_items(index, builders_of(index, trust=trust), source, replace=update)
    replaced = f", {report.replaced:,} replaced" if update else ""
    say(f"{report.added:,} items added{replaced}; {report.n_items:,} items in {index} ({report.seconds:.1f} s)")


def delete(
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    item_id: Annotated[list[str] | None, typer.Argument(help="Ids of the items.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A file of ids, one a line; - for standard input.")] = None,
    retriever: Annotated[str | None, typer.Option("--retriever", "-r", help="Drop this retriever instead.")] = None,
    trust: Trust = False,
) -> None:
    """Delete items from an index, or drop a retriever of it.

    An unknown id is an error, and then nothing is deleted.
    """
    from nlp_retrieval.core.index.build import delete_items
    from nlp_retrieval.core.search.base_searcher import builders_of, drop_retriever
    from nlp_retrieval.loaders.files import read_lines

    if retriever is not None:
        if item_id or file is not None:
            raise ConfigurationError("ids and --retriever are two things; give one of them")
        say(f"{retriever} dropped; {index} has {', '.join(drop_retriever(index, retriever, trust=trust))}")
        return
    ids = list(item_id or [])
    if file is not None:
        ids += [line for _, line in read_lines("/dev/stdin" if file == Path("-") else file) if line.strip()]
    if not ids:
        raise ConfigurationError("no ids were given; name them, or a file of them with --file")
    report = delete_items(index, builders_of(index, trust=trust), ids)
    say(f"{report.deleted:,} items deleted; {report.n_items:,} items in {index} ({report.seconds:.1f} s)")


def compact(index: Annotated[Path, typer.Argument(help="An index directory.")], trust: Trust = False) -> None:
    """Compact an updated index, as if it had been built at once.

    Joins segments and drops deleted items. Updates do this themselves when there is much to do; it is never
    required.
    """
    from nlp_retrieval.core.index.build import compact_index
    from nlp_retrieval.core.search.base_searcher import builders_of

    report = compact_index(index, builders_of(index, trust=trust))
    say(f"{report.n_items:,} items in {index} ({report.seconds:.1f} s)")


def verify(
    index: Annotated[Path, typer.Argument(help="An index directory, or a project.")],
) -> None:
    """Check every file of an index, or of a project.

    Every source and review of a project is checked too, also those checked before; tables on a server are not. Exit code 3 if
    one is damaged.
    """
    from nlp_retrieval.cli.serve import recognized_kind, service_class

    kind = recognized_kind(index) or "index"
    damaged = service_class(kind).damage_in(index)
    for message in damaged:
        say(message)
    if damaged:
        raise typer.Exit(3)
    say(f"{index}: every file {'is whole' if kind != 'index' else 'matches its checksum'}")
