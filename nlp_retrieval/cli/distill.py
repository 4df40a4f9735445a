"""``nlp-retrieval distill``: turn an encoder into static embeddings for the words of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlp_retrieval.cli.console import megabytes, parse_component, say
from nlp_retrieval.cli.corpus import Corpus, Loader, LoaderOptions, corpus_loader

NAME = "distill"


def command(
    corpus: Corpus,
    folder: Annotated[Path, typer.Argument(help="Output folder; must be missing or empty.")],
    encoder: Annotated[
        str,
        typer.Option("--encoder", "-e", help="A model's hub name, a local folder, or name:key=value,key=value of an encoder."),
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    loader: Loader = None,
    option: LoaderOptions = None,
    dimension: Annotated[int, typer.Option(min=1, help="Dimension of the vectors; at most the encoder's.")] = 256,
    most_words: Annotated[int, typer.Option(min=0, help="Number of whole words to include, most frequent first.")] = 30_000,
) -> None:
    """Distil an encoder into static embeddings: one vector for each word of a corpus, to be used by the encoder `static`."""
    from nlp_retrieval.core.components.registry import build_as
    from nlp_retrieval.encoders.base import BaseEncoder
    from nlp_retrieval.encoders.static import distill_static

    source = build_as(BaseEncoder, "encoders", parse_component(encoder), "--encoder")
    items = corpus_loader(corpus, loader, option).stream()
    made = distill_static(source, items, folder, dimension=dimension, most_words=most_words)
    say(f"static embeddings of {source.name} in {made} ({megabytes(sum(file.stat().st_size for file in made.iterdir()))})")
    say(f"to use them: nlp-retrieval index {corpus} INDEX -r 'faiss:encoder={{name: static, model: {made}}}'")
