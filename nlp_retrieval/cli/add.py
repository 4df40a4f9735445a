"""``nlp-retrieval add``: add new items to an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.corpus import Corpus, Loader, LoaderOptions, corpus_loader
from nlp_retrieval.cli.trusting import Trust

NAME = "add"


def command(
    corpus: Corpus,
    index: Annotated[Path, typer.Argument(help="An index directory.")],
    loader: Loader = None,
    option: LoaderOptions = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace an item with the same id; otherwise that is an error.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Add items to an index, for all of its retrievers.

    Existing items are not indexed again; a search sees all of the new items or none.
    """
    from nlp_retrieval.core.index.update import add_items
    from nlp_retrieval.core.search.base_searcher import resolver

    report = add_items(index, corpus_loader(corpus, loader, option).stream(), resolver(trust=trust), replace=update)
    replaced = f", {report.replaced:,} replaced" if update else ""
    say(f"{report.added:,} items added{replaced}; {report.n_items:,} items in {index} ({report.seconds:.1f} s)")
