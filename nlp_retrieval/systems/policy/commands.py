"""The commands of ``nlp-retrieval policy``."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import Trust, parse_filter, say

if TYPE_CHECKING:
    from nlp_retrieval import Evaluation
    from nlp_retrieval.systems.policy.answers import StudyReport
    from nlp_retrieval.systems.policy.asking import Method
    from nlp_retrieval.systems.policy.study import PolicyStudy


def tell(report: StudyReport, study: PolicyStudy) -> None:
    """Print the number of new and kept answers, and the location of the files."""
    field = study.profile.subject
    n_questions = len(report.questions)
    asked = f"{len(report.answered):,} of {len(report.files):,} ({field}), {n_questions:,} question{'s' * (n_questions != 1)}"
    say(f"asked {asked} ({report.seconds:.1f} s); {len(report.kept):,} were already answered")
    if report.replaced:
        say(f"note: {_listed(report.replaced)}: replaced answers of another index, profile or setting")
    say(f"answers: {report.output}")


def write_page(report: StudyReport, study: PolicyStudy, path: Path | None = None) -> None:
    """Write the page, by default next to the answers, and print its path."""
    from nlp_retrieval.systems.policy.page.page import write_study_page

    path = path or report.output / "report.html"
    write_study_page(report, study, path)
    say(f"page: {path}")


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def ask_command(
    config: Annotated[
        Path | None, typer.Argument(help="A study's configuration (YAML): profile, index, searcher, hop. Or use --index.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="With --index: a profile of the package (climate), or your own file.")
    ] = None,
    index: Annotated[Path | None, typer.Option("--index", help="An index directory; its own retrievers are used.")] = None,
    question: Annotated[
        list[int] | None,
        typer.Option("--question", "-q", help="Number of a question in the profile. Repeatable. Default: all."),
    ] = None,
    country: Annotated[
        list[str] | None,
        typer.Option(
            "--country",
            "--subject",
            help="Countries (or other subjects) to ask about, as named in the index. Repeatable. Default: all.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="vector (signals), hop (along relations), or both. Default: vector.")
    ] = None,
    hop: Annotated[bool, typer.Option("--hop", help="Same as --method both.")] = False,
    top_k: Annotated[int | None, typer.Option(help="Maximum number of passages; default: the profile's.")] = None,
    min_similarity: Annotated[float | None, typer.Option(help="Minimum score, 0 to 1; default: the profile's.")] = None,
    n_per_document: Annotated[
        int | None, typer.Option(help="Maximum number of passages of one document; default: the profile's.")
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help='An additional filter: {"year": {"gte": 2020}}.')] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for answers and page; default: the configuration's, or answers.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write report.html next to the answers.")] = True,
    as_csv: Annotated[Path | None, typer.Option("--csv", help="Also write best sentence, page and value as CSV.")] = None,
    log_file: Annotated[Path | None, typer.Option("--log-file", help="File for a log, with rotation.")] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG (filters, counts), INFO, WARNING or ERROR.")] = "INFO",
    trust: Trust = False,
) -> None:
    """Ask every question about every country."""
    from nlp_retrieval.core import write_output
    from nlp_retrieval.systems.policy.log import log_to
    from nlp_retrieval.systems.policy.page.export import answers_csv

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
        if as_csv is not None:
            write_output(as_csv, answers_csv(report, study.profile.subject).encode("utf-8-sig"))
            say(f"table: {as_csv}")


def _method(method: str | None, *, hop: bool) -> Method:
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.systems.policy.asking import check_method

    if hop and method not in (None, "both"):
        raise ConfigurationError(f"--hop means --method both, which contradicts --method {method}; use one of them")
    return check_method("both" if hop else method or "vector")


def _study(config: Path | None, profile: str | None, index: Path | None, *, trust: bool) -> tuple[PolicyStudy, Path]:
    from nlp_retrieval.errors import ConfigurationError
    from nlp_retrieval.rerankers import load_profile
    from nlp_retrieval.systems.policy.config import StudyConfig, searchers_of
    from nlp_retrieval.systems.policy.study import PolicyStudy
    from nlp_retrieval.systems.policy.vectors import with_word_vectors

    if config is not None:
        if profile is not None or index is not None:
            raise ConfigurationError(f"{config} already names profile and index; omit --profile and --index, or the file")
        settings = StudyConfig.read(config)
        return settings.study(), settings.output
    if index is None:
        raise ConfigurationError(
            "give a configuration (study.yaml), or --index DIR --profile climate; or try: nlp-retrieval policy demo"
        )
    name = profile or "climate"
    searcher, along = searchers_of(index, name, trust=trust)
    return PolicyStudy(load_profile(name), with_word_vectors(searcher.open(index)), along), Path("answers")


_SHOWN = ("recall@5", "recall@10", "ndcg@10")


def demo_command(
    folder: Annotated[Path, typer.Option("--output", help="Folder for all files of the demo.")] = Path("policy-demo"),
) -> None:
    """Answer questions about twelve invented countries: index their plans, ask, and judge the answers."""
    from nlp_retrieval import Searcher
    from nlp_retrieval.systems.policy.config import StudyConfig
    from nlp_retrieval.systems.policy.demo.writing import gold_of, judged_answers, write_study
    from nlp_retrieval.systems.policy.study import PolicyStudy

    config = write_study(folder)
    settings = StudyConfig.read(config)
    say(f"plans, questions and configuration: {folder}")
    study = settings.study(replace=True)
    report = study.run(folder / "answers", method="both" if study.hop is not None else "vector")
    tell(report, study)
    gold = gold_of(folder)
    rows = judged_answers(report.answers(), gold)
    plain = PolicyStudy(study.profile, Searcher(study.searcher.retrievers).open(settings.index), keywords=settings.keywords)
    plain_report = plain.run(folder / "sentence-vectors-alone")
    rows = {"sentence vectors alone": next(iter(judged_answers(plain_report.answers(), gold).values()))} | rows
    _print(rows)
    _tell_changes(study, folder)
    write_page(report, study, folder / "report.html")
    say(f"change {config} and run: nlp-retrieval policy ask {shlex.quote(config.as_posix())}")


def _print(rows: dict[str, Evaluation]) -> None:
    from rich.console import Console
    from rich.table import Table

    from nlp_retrieval.systems.policy.page.page import METHOD_NAMES

    n_questions = len(next(iter(rows.values())).query_ids)
    table = Table("method", *_SHOWN, title=f"{n_questions} questions whose answers are known")
    for name, judged in rows.items():
        means = judged.means()
        table.add_row(METHOD_NAMES.get(name, name).lower(), *(f"{means[measure]:.3f}" for measure in _SHOWN))
    Console().print(table)


def _tell_changes(study: PolicyStudy, folder: Path) -> None:
    """Report how many of the known changes between the plans were found."""
    with (folder / "plans" / "changes.tsv").open(encoding="utf-8") as file:
        known = {(row["later"], row["earlier"], row["relation"]) for row in csv.DictReader(file, delimiter="\t")}
    computed = {
        (change.later.item_id if change.later else "", change.earlier.item_id if change.earlier else "", change.relation)
        for subject in study.subjects
        for edition in study.changes(subject)
        for change in edition.changes
    }
    say(f"changes between the plans: {len(known & computed)} of {len(known)} found, {len(computed - known)} found by mistake")


app = typer.Typer(help="Ask a profile's questions about every country of an index.", no_args_is_help=True)
app.command("ask")(ask_command)
app.command("demo")(demo_command)
