"""Arguments for a corpus: its location, its loader, and the loader's options."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli.console import parse_options
from nlp_retrieval.errors import ConfigurationError

if TYPE_CHECKING:
    from nlp_retrieval.core.components.component import BaseLoader

Corpus = Annotated[str, typer.Argument(help="File, folder or database URL of the corpus.")]
"""The argument of a command that names a corpus."""

Loader = Annotated[
    str | None,
    typer.Option("--loader", "-l", help="Loader of the corpus: csv, parquet, beir, database, ... Default: by its suffix."),
]
"""The option of a command that names a loader."""

LoaderOptions = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="A parameter of the loader, as key=value. Repeatable.")
]
"""The option of a command that sets parameters of a loader, as ``key=value``."""


_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def corpus_loader(corpus: str, loader: str | None, options: list[str] | None) -> BaseLoader:
    """Build the loader of a corpus.

    Raises:
        ConfigurationError: the loader or a parameter does not exist; or no loader was given, and the suffix identifies none.
    """
    from nlp_retrieval.core.components.component import BaseLoader
    from nlp_retrieval.core.components.registry import build_as

    loader = loader or _loader_of(corpus)
    first_parameter = "url" if loader == "database" else "path"
    settings = {"name": loader, first_parameter: corpus} | parse_options(options or [])
    return build_as(BaseLoader, "loaders", settings, "corpus")


def _loader_of(corpus: str) -> str:
    suffix = PurePath(corpus.removesuffix(".gz")).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise ConfigurationError(
            f"{corpus}: its name does not tell what reads it; pass --loader: csv, parquet or jsonl for files of these "
            "forms, hotpotqa for "
            "its release, beir for a folder in BEIR's layout, huggingface for a folder or name of a data set, "
            "ir_datasets for a name "
            "of its catalogue, database for a URL"
        )
    return _BY_SUFFIX[suffix]
