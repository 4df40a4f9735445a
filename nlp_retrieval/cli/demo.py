"""``nlp-retrieval demo``: run a whole benchmark on the collection that comes with the package."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from nlp_retrieval.cli.console import default_lexical_retriever, say
from nlp_retrieval.cli.runs import refuse_failures, run_benchmark

CLAIM = "The discoverer of the dwarf planet that has a heart-shaped plain of frozen nitrogen was born in Kansas."


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
    wandb: Annotated[bool, typer.Option(help="Write offline Weights & Biases runs.")] = True,
) -> None:
    """Run a whole benchmark on the included data.

    Compares eight configurations on 81 multi-hop claims and 300 short passages, all included.
    """
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.cli.search import print_hits
    from nlp_retrieval.core.search.base_searcher import BaseSearcher

    config = write_demo(output)
    say(f"collection and configuration: {output}")
    settings = read_benchmark_config(config)
    refuse_failures(run_benchmark(settings, wandb=wandb))
    linked = settings.searchers["link graph"]
    if isinstance(linked, BaseSearcher):
        say("how the link graph reaches what it finds, for one claim:")
        (hits,) = linked.search([CLAIM], 4)
        print_hits(CLAIM, hits, linked.explain(CLAIM, hits))
    say(f"open {output}/run/report.html in a browser; change {config} and run: nlp-retrieval benchmark {config}")


def write_demo(folder: Path) -> Path:
    """Write the collection and its configuration into a folder; return the configuration file."""
    from nlp_retrieval.core.files.atomic import write_output

    config = folder / "sweep.yaml"
    write_output(folder / "corpus.jsonl", _shipped("corpus.jsonl"))
    write_output(folder / "claims.json", _shipped("claims.json"))
    parts = ("corpus", "corpus.jsonl"), ("claims", "claims.json"), ("index", "index"), ("run", "run")
    values = {key: yaml_value((folder / name).as_posix()) for key, name in parts}
    values |= {"config": shlex.quote(config.as_posix()), "lexical": default_lexical_retriever().name}
    write_output(config, Template(_shipped("sweep.yaml").decode()).substitute(values).encode())
    return config


def _shipped(name: str) -> bytes:
    return resources.files("nlp_retrieval.demo").joinpath(name).read_bytes()


def yaml_value(value: object) -> str:
    """Return a value as text for a line of YAML.

    Examples:
        >>> f"corpus: {yaml_value({'loader': 'jsonl', 'path': 'my animals.jsonl'})}"
        'corpus: {loader: jsonl, path: my animals.jsonl}'
        >>> yaml_value("2024")  # text stays text
        "'2024'"
    """
    import yaml

    in_a_list = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return in_a_list.strip()[1:-1]
