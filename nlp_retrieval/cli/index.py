"""``nlp-retrieval index``: a corpus becomes an index directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import megabytes, parse_component, parse_options, say

NAME = "index"


def command(
    corpus: Annotated[str, typer.Argument(help="File, folder or database URL of the corpus.")],
    index: Annotated[Path, typer.Argument(help="The index directory; made where it does not exist.")],
    loader: Annotated[
        str, typer.Option("--loader", "-l", help="What reads the corpus: jsonl, beir, hotpotqa, database, ...")
    ] = "jsonl",
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A parameter of the loader, as key=value. Repeatable.")
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            "-r",
            help="name or name:key=value,key=value. Repeatable. By default Lucene's BM25 where there is a Java, else bm25s.",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Give up an index of other items that is there.")] = False,
) -> None:
    """Index a corpus.

    What is there already is not built again; further retrievers join an index of the same items.
    """
    from nlp_retrieval.core.interfaces import BaseLoader
    from nlp_retrieval.core.registry import build_as
    from nlp_retrieval.core.retriever import BaseRetriever
    from nlp_retrieval.core.searcher import Searcher
    from nlp_retrieval.retrievers.lexical import default_lexical_retriever

    first_parameter = "url" if loader == "database" else "path"
    settings = {"name": loader, first_parameter: corpus} | parse_options(option or [])
    source = build_as(BaseLoader, "loaders", settings, "corpus")
    chosen = [build_as(BaseRetriever, "retrievers", parse_component(text), "--retriever") for text in retriever or []]
    searcher = Searcher(chosen or [default_lexical_retriever()])
    report = searcher.index(source, index, replace=replace)
    for record in searcher.index_records():
        size = sum(segment.bytes for segment in record.segments)
        state = f"built in {record.cost.seconds:.1f} s" if record.fingerprint in report.fingerprints else "was there already"
        say(f"{record.config['name']}: {state}, {megabytes(size)}")
    say(f"{report.n_items:,} items in {index} ({report.seconds:.1f} s)")
