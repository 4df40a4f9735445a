"""``nlp-retrieval demo``: run a whole benchmark on the collection that comes with the package.

A language model is called only if one is named; its availability is checked before anything is written.
"""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import say
from nlp_retrieval.cli.runs import VerboseOption, refuse_failures, run_benchmark

if TYPE_CHECKING:
    from nlp_retrieval.lm.language_model import LanguageModel

CLAIM = "The discoverer of the dwarf planet that has a heart-shaped plain of frozen nitrogen was born in Kansas."
N_CLAIMS = 81


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
    wandb: Annotated[bool, typer.Option(help="Write offline Weights & Biases runs.")] = True,
    claims: Annotated[int, typer.Option(min=1, max=N_CLAIMS, help="Search this many of the claims, drawn evenly.")] = N_CLAIMS,
    lm: Annotated[
        str | None, typer.Option(help="Add the configuration that uses a language model: openai/gpt-4o-mini, ollama_chat/...")
    ] = None,
    lm_base_url: Annotated[
        str | None, typer.Option(help="URL of an OpenAI-compatible server for it, with --lm openai/MODEL.")
    ] = None,
    lm_api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with its API key; default: the provider's usual one.")
    ] = None,
    verbose: VerboseOption = False,
) -> None:
    """Run a whole benchmark on the included data.

    Compares eight configurations on 81 multi-hop claims and 300 short passages, all included; nine with a language model.
    """
    from nlp_retrieval.benchmarks.settings import read_benchmark_config
    from nlp_retrieval.reports.trackers import trackers_of

    chosen = shipped_claims(claims)
    model = _language_model(lm, lm_base_url, lm_api_key_env)
    if model is not None:
        check_language_model(model, chosen)
    config = write_demo(output, chosen, model)
    say(f"collection and configuration: {output}")
    settings = read_benchmark_config(config)
    refuse_failures(run_benchmark(settings, None, trackers_of(settings) if wandb else [], verbose=verbose))
    _explain_one(settings.searchers["link graph"])
    if model is None:
        say(
            "one more configuration asks a language model: --lm openai/gpt-4o-mini (make demo LM=...), "
            "or --lm openai/MODEL --lm-base-url http://localhost:8000/v1"
        )
    say(f"open {output}/run/report.html in a browser; change {config} and run: nlp-retrieval benchmark {config}")


def shipped_claims(number: int) -> list[dict[str, Any]]:
    """This many of the included claims, evenly drawn: they are sorted by their number of hops."""
    rows: list[dict[str, Any]] = json.loads(_shipped("claims.json"))
    return [rows[(2 * position + 1) * len(rows) // (2 * number)] for position in range(number)]


def _language_model(name: str | None, base_url: str | None, api_key_env: str | None) -> LanguageModel | None:
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.lm.language_model import LanguageModel

    if name is None:
        for option, value in (("--lm-base-url", base_url), ("--lm-api-key-env", api_key_env)):
            if value is not None:
                raise ConfigurationError(
                    f"{option} says how to reach a language model, and none is named; add --lm openai/MODEL"
                )
        return None
    if "/" not in name:
        raise ConfigurationError(f"--lm {name}: expected provider/model, such as openai/{name}")
    return LanguageModel(name, base_url=base_url, api_key_env=api_key_env)


def check_language_model(model: LanguageModel, claims: list[dict[str, Any]]) -> None:
    """Report the expected language model calls, and make the first one; its answer is kept for the run.

    Raises:
        DependencyError: DSPy is not installed.
        ModelError: the endpoint gives no answer.
    """
    from nlp_retrieval.core.secrets import without_secrets
    from nlp_retrieval.errors import ModelError
    from nlp_retrieval.lm.asking import ask, using
    from nlp_retrieval.lm.endpoint import ModelEndpoint
    from nlp_retrieval.lm.engine import default_folder
    from nlp_retrieval.lm.language_model import LanguageModel
    from nlp_retrieval.processors.signatures import Decomposer
    from nlp_retrieval.processors.with_model import ClaimPhrases

    say(
        f"{model.model}: about {len(claims):,} calls for {len(claims)} claims, fewer with --claims; "
        f"answers are kept in {default_folder()} and not asked for again"
    )
    once = LanguageModel(model.model, model.base_url, model.api_key_env, endpoint=ModelEndpoint(retries=1))
    question = {"claim": claims[0]["claim"]}
    processor = ClaimPhrases(once)
    with using(once):
        outcome = ask(Decomposer().decompose, question, "phrases", lambda answer: processor.read(question, answer))
    if outcome.endpoint_failed:
        at = f" at {model.base_url}" if model.base_url is not None else ""
        raise ModelError(f"{model.model}{at}: {without_secrets(outcome.reason)}; check --lm, --lm-base-url and the key")


def _explain_one(searcher: object) -> None:
    """Show how the link graph reaches its results, for one claim."""
    from nlp_retrieval.benchmarks.entrants import Explains
    from nlp_retrieval.cli.search import print_hits

    if isinstance(searcher, Explains):
        say("how the link graph reaches what it finds, for one claim:")
        (hits,) = searcher.search([CLAIM], 4)
        print_hits(CLAIM, hits, searcher.explain(CLAIM, hits))


def write_demo(folder: Path, claims: list[dict[str, Any]], lm: LanguageModel | None) -> Path:
    """Write the collection and its configuration into a folder; return the configuration file.

    Raises:
        OutputError: the folder cannot be written.
    """
    from nlp_retrieval.core.files.atomic import write_output
    from nlp_retrieval.retrievers.default import default_lexical_retriever

    config = folder / "sweep.yaml"
    write_output(folder / "corpus.jsonl", _shipped("corpus.jsonl"))
    write_output(folder / "claims.json", (json.dumps(claims, indent=1, ensure_ascii=False) + "\n").encode())
    parts = ("corpus", "corpus.jsonl"), ("claims", "claims.json"), ("index", "index"), ("run", "run")
    values = {key: yaml_value((folder / name).as_posix()) for key, name in parts}
    values |= {"config": shlex.quote(config.as_posix()), "lexical": default_lexical_retriever().name}
    settings = _shipped("sweep.yaml")
    if lm is not None:
        settings += _shipped("language_model.yaml")
        fields = {"model": lm.model, "base_url": lm.base_url, "api_key_env": lm.api_key_env}
        values["lm"] = yaml_value({key: value for key, value in fields.items() if value is not None})
    write_output(config, Template(settings.decode()).substitute(values).encode())
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
