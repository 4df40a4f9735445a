"""``nlp-retrieval index``: index a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import megabytes, parse_component, say
from nlp_retrieval.cli.corpus import Corpus, Loader, LoaderOptions, corpus_loader
from nlp_retrieval.cli.worker_options import RayOption, WorkersOption

NAME = "index"


def command(
    corpus: Corpus,
    index: Annotated[Path, typer.Argument(help="The index directory; created if it does not exist.")],
    loader: Loader = None,
    option: LoaderOptions = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            "-r",
            help="name or name:key=value,key=value. Repeatable. Default: Lucene's BM25 if Java is installed, else bm25.",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing index of other items.")] = False,
    workers: WorkersOption = None,
    ray: RayOption = None,
) -> None:
    """Index a corpus.

    With --workers or --ray, other processes encode the passages; the index is the same.

    Existing parts are not built again; retrievers can be added to an index of the same items.
    """
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.retrievers.default import default_lexical_retriever

    chosen = [build_as(BaseRetriever, "retrievers", parse_component(text), "--retriever") for text in retriever or []]
    searcher = Searcher(chosen or [default_lexical_retriever()])
    report = searcher.index(corpus_loader(corpus, loader, option), index, replace=replace, workers=workers, ray=ray)
    for record in searcher.index_records():
        size = sum(segment.bytes for segment in record.segments)
        state = f"built in {record.cost.seconds:.1f} s" if record.fingerprint in report.fingerprints else "was there already"
        say(f"{record.config['name']}: {state}, {megabytes(size)}")
    if report.resumed:
        say(f"{report.resumed:,} passages were not encoded again: an interrupted run had done so")
    if report.shared:
        say(f"{report.shared:,} passages were not encoded again, for retrievers with one encoder; the time of each counts it")
    say(f"{report.n_items:,} items in {index} ({report.seconds:.1f} s)")
