"""``nlp-retrieval policy ask``: the questions of a profile for every country of an index, with a page of reasons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import Trust, parse_filter
from nlp_retrieval.systems.policy.commands.output import tell, write_page

if TYPE_CHECKING:
    from nlp_retrieval.systems.policy.settings import Method
    from nlp_retrieval.systems.policy.study import PolicyStudy


def command(
    config: Annotated[
        Path | None, typer.Argument(help="A study's configuration (YAML): profile, index, searcher, hop. Or name --index.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", help="With --index: one of the package (climate), or a file of yours."),
    ] = None,
    index: Annotated[Path | None, typer.Option("--index", help="An index directory; searched by what it holds.")] = None,
    question: Annotated[
        list[int] | None, typer.Option("--question", "-q", help="Its number in the profile. Repeatable. By default all.")
    ] = None,
    country: Annotated[
        list[str] | None,
        typer.Option("--country", "--subject", help="Whom to ask about, as the index has it. Repeatable. By default all."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="vector (signals), hop (along relations), or both. By default vector."),
    ] = None,
    hop: Annotated[
        bool, typer.Option("--hop", help="The same as --method both: the vectors, and the hops beside them.")
    ] = False,
    top_k: Annotated[int | None, typer.Option(help="At most this many passages; by default the profile's.")] = None,
    min_similarity: Annotated[
        float | None, typer.Option(help="Leave out what scores less, 0 to 1; by default the profile's.")
    ] = None,
    n_per_document: Annotated[
        int | None, typer.Option(help="At most this many passages of one document; by default the profile's.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", help='A further filter, beside the country and that of the configuration: {"year": {"gte": 2020}}.'
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for answers and page; by default the configuration's, or answers.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write report.html beside the answers.")] = True,
    log_file: Annotated[Path | None, typer.Option("--log-file", help="Write a log here, with rotation.")] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG (filters, counts), INFO, WARNING or ERROR.")] = "INFO",
    trust: Trust = False,
) -> None:
    """Ask every question of every country.

    Writes one JSON file for each country, and a page. After an interruption, repeat the command: existing answers are kept.
    """
    from nlp_retrieval.systems.policy.log import log_to

    chosen = _method(method, hop=hop)
    filtered = None if where is None else parse_filter(where)
    with log_to(log_file, log_level):
        study, folder = _study(config, profile, index, trust=trust)
        report = study.run(
            output or folder, country or None, question or None, chosen, top_k, min_similarity, n_per_document, filtered
        )
        tell(report, study)
        if page:
            write_page(report, study)


def _method(method: str | None, *, hop: bool) -> Method:
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.systems.policy.settings import check_method

    if hop and method not in (None, "both"):
        raise ConfigurationError(f"--hop means --method both, and --method {method} is given too; leave one of them out")
    return check_method("both" if hop else method or "vector")


def _study(config: Path | None, profile: str | None, index: Path | None, *, trust: bool) -> tuple[PolicyStudy, Path]:
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.rerankers import load_profile
    from nlp_retrieval.systems.policy.composing import searchers_of
    from nlp_retrieval.systems.policy.config import StudyConfig
    from nlp_retrieval.systems.policy.study import PolicyStudy

    if config is not None:
        if profile is not None or index is not None:
            raise ConfigurationError(f"{config} names profile and index; leave out --profile and --index, or the file")
        settings = StudyConfig.read(config)
        return settings.study(), settings.output
    if index is None:
        raise ConfigurationError(
            "there is nothing to ask: name a configuration (study.yaml), or --index DIR --profile climate; or try: "
            "nlp-retrieval policy demo"
        )
    name = profile or "climate"
    asked_by = load_profile(name)
    searcher, along = searchers_of(index, name, trust=trust)
    searcher.open(index)
    return PolicyStudy(asked_by, searcher, along), Path("answers")
