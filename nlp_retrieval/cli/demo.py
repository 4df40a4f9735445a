"""``nlp-retrieval demo``: a whole benchmark on the collection that comes with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say

NAME = "demo"

CLAIM = "The discoverer of the dwarf planet that has a heart-shaped plain of frozen nitrogen was born in Kansas."
_FILES = ("corpus.jsonl", "claims.json")


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
    wandb: Annotated[bool, typer.Option(help="Write offline Weights & Biases runs.")] = True,
) -> None:
    """Run a whole benchmark on shipped data.

    Six configurations, 81 multi-hop claims, 300 short passages, all shipped with the package.
    """
    from nlp_retrieval.benchmarks.config import read_benchmark_config
    from nlp_retrieval.cli.benchmark import run_benchmark

    config = write_demo(output)
    say(f"collection and configuration: {output}")
    settings = read_benchmark_config(config)
    run_benchmark(settings, None, log=wandb)
    _explain_one(settings.searchers["link graph"])
    say(f"open {output}/run/report.html in a browser; change {config} and run: nlp-retrieval benchmark {config}")


def _explain_one(searcher: object) -> None:
    """Show how the link graph reaches what it finds, for one claim."""
    from nlp_retrieval.benchmarks.explained import Explains
    from nlp_retrieval.cli.search import print_hits

    if isinstance(searcher, Explains):
        (hits,) = searcher.search([CLAIM], 4)
        print_hits(CLAIM, hits, searcher.explain(CLAIM, hits), signals=False)


def write_demo(folder: Path) -> Path:
    """Put the collection and its configuration into a folder; returns the configuration file.

    Raises:
        OutputError: the folder cannot be written.
    """
    from nlp_retrieval.benchmarks.output import write_output
    from nlp_retrieval.retrievers.lexical import default_lexical_retriever

    shipped = resources.files("nlp_retrieval.demo")
    for name in _FILES:
        write_output(folder / name, shipped.joinpath(name).read_bytes())
    values = {"folder": folder.as_posix(), "lexical": default_lexical_retriever().name}
    settings = Template(shipped.joinpath("sweep.yaml").read_text("utf-8")).substitute(values)
    write_output(folder / "sweep.yaml", settings.encode())
    return folder / "sweep.yaml"
