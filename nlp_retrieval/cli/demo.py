"""``nlp-retrieval demo``: a whole benchmark on the collection that comes with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from nlp_retrieval.cli.console import say

NAME = "demo"

_FILES = ("corpus.jsonl", "claims.json")


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
    wandb: Annotated[bool, typer.Option(help="Write offline Weights & Biases runs.")] = True,
) -> None:
    """Run a whole benchmark on shipped data.

    Five configurations, 81 multi-hop claims, 300 short passages, all shipped with the package.
    """
    from nlp_retrieval.benchmarks.config import read_benchmark_config
    from nlp_retrieval.cli.benchmark import run_benchmark

    config = write_demo(output)
    say(f"collection and configuration: {output}")
    run_benchmark(read_benchmark_config(config), None, log=wandb)
    say(f"open {output}/run/report.html in a browser; change {config} and run: nlp-retrieval benchmark {config}")


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
