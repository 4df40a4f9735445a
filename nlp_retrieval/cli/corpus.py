"""How commands are told of a corpus: where it is, what reads it, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import parse_options

if TYPE_CHECKING:
    from nlp_retrieval.core.components.interfaces import BaseLoader

Corpus = Annotated[str, typer.Argument(help="File, folder or database URL of the corpus.")]
Loader = Annotated[str, typer.Option("--loader", "-l", help="What reads the corpus: jsonl, beir, hotpotqa, database, ...")]
LoaderOptions = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="A parameter of the loader, as key=value. Repeatable.")
]


def corpus_loader(corpus: str, loader: str, options: list[str] | None) -> BaseLoader:
    """Build what reads a corpus.

    Raises:
        ConfigurationError: there is no such loader, or it has no such parameter.
    """
    from nlp_retrieval.core.components.interfaces import BaseLoader
    from nlp_retrieval.core.components.registry import build_as

    first_parameter = "url" if loader == "database" else "path"
    settings = {"name": loader, first_parameter: corpus} | parse_options(options or [])
    return build_as(BaseLoader, "loaders", settings, "corpus")
