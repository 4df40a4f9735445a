"""The commands ``nlp-retrieval judge``: from rankings without gold to a comparison that can be trusted."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlp_retrieval.cli.console import aligned, echo, language_model, say
from nlp_retrieval.cli.indexes import Loader, LoaderOptions, corpus_loader
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.printing import counted

if TYPE_CHECKING:
    from nlp_retrieval.core.models import Query, SearchableItem
    from nlp_retrieval.evaluation.rankings import Ranking
    from nlp_retrieval.judging.pool import JudgingPool
    from nlp_retrieval.judging.project_file import ProjectSettings
    from nlp_retrieval.judging.report import JudgingReport

Project = Annotated[Path, typer.Argument(help="Folder of the judging project.")]
JudgeName = Annotated[str, typer.Option("--judge", help="Your name; it is kept with every judgement.")]

app = typer.Typer(help="Judge passages, and compare systems without gold.", no_args_is_help=True, add_completion=False)
questions_app = typer.Typer(help="Get questions from a log.", no_args_is_help=True, add_completion=False)
app.add_typer(questions_app, name="questions")

_DIFFERENCE, _MOST_COMPARED = 0.05, 10


@app.command()
def new(
    project: Project,
    runs: Annotated[list[Path] | None, typer.Option(help="A benchmark's output folder, or a TREC run. Repeatable.")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A benchmark's YAML: its searchers are asked.")] = None,
    queries: Annotated[Path | None, typer.Option(help="A question per line (.txt), or topics. Default: of the runs.")] = None,
    corpus: Annotated[str | None, typer.Option(help="File, folder or database URL of the corpus.")] = None,
    loader: Loader = None,
    option: LoaderOptions = None,
    design: Annotated[str, typer.Option(help="depth-k: every pair; decisive: those that tell systems apart.")] = "depth-k",
    budget: Annotated[int | None, typer.Option(help="Number of pairs to judge; default: all.")] = None,
    measure: Annotated[str | None, typer.Option(help="To compare by, precision@k; default: precision at --depth.")] = None,
    compare: Annotated[list[str] | None, typer.Option(metavar="A:B", help="Repeatable; default: every two systems.")] = None,
    depth: Annotated[int, typer.Option(help="Passages of each list that take part.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    unit: Annotated[str, typer.Option(help="item, or title: any passage of a title counts for it.")] = "item",
    scale: Annotated[str, typer.Option(help="binary, graded (0 to 3), or names from 0, as in no,partly,yes.")] = "binary",
    relevant_from: Annotated[int, typer.Option(help="The least grade that is relevant.")] = 1,
    instructions: Annotated[Path | None, typer.Option(help="Text file with instructions for judges.")] = None,
) -> None:
    """Make a project of what several systems found.

    The first passages of every system for every question are the pairs to judge. Nobody sees which system found a passage.
    """
    from nlp_retrieval.judging.project import INSTRUCTIONS, JudgingProject
    from nlp_retrieval.loaders.files import read_lines

    if (runs is None) == (config is None):
        raise ConfigurationError("give either --runs (folders or TREC runs) or --config (searchers that answer --queries)")
    asked = None if queries is None else _questions(queries)
    if config is not None:
        by_system, items, known = _searched(config, asked, depth)
    else:
        by_system, items, known = _read_runs(runs or [])
    if corpus is not None:
        items = corpus_loader(corpus, loader, option).stream()
    questions = known if asked is None else asked
    if questions is None:
        raise ConfigurationError("TREC runs hold no questions: give them with --queries FILE")
    if items is None:
        raise ConfigurationError("TREC runs hold no passages: give the corpus with --corpus FILE")
    made = JudgingProject.create(
        project,
        questions,
        by_system,
        items,
        design=design,  # type: ignore[arg-type]  # checked there
        depth=depth,
        budget=budget,
        seed=seed,
        measure=measure,
        scale=[name.strip() for name in scale.split(",")] if "," in scale else scale,
        relevant_from=relevant_from,
        instructions=INSTRUCTIONS if instructions is None else "\n".join(line for _, line in read_lines(instructions)).strip(),
        unit=unit,  # type: ignore[arg-type]  # checked there
        comparisons=_compared(compare, list(by_system)),
    )
    pool = made.pool()
    say(
        f"{project}: {pool.chosen.sum():,} of {counted(len(pool.item_ids), 'pair')} to judge, of "
        f"{counted(int(pool.drawn.sum()), 'question')} and {counted(len(pool.systems), 'system')}. Next: nlp-retrieval judge "
        f"serve {project} --judge NAME"
    )
    _say_prospects(pool, made.settings)


def _say_prospects(pool: JudgingPool, settings: ProjectSettings) -> None:
    """Say what is better known before anybody judges: how many questions it takes."""
    from itertools import combinations

    from nlp_retrieval.evaluation.resampling import family_numbers
    from nlp_retrieval.judging.pool import is_sum
    from nlp_retrieval.judging.sequences import families_to_decide

    measure = settings.measure
    if not is_sum(measure):
        return
    compared = list(settings.comparisons or combinations(pool.systems, 2))
    first = compared[:_MOST_COMPARED]
    needed = [families_to_decide(pool, measure, one, other, _DIFFERENCE, len(compared)) for one, other in first]
    if most := max(filter(None, needed), default=None):
        numbers = family_numbers(pool.families)
        has, known = (len({*each.tolist()}) for each in (numbers[pool.drawn], numbers))
        needs = "they can decide" if has >= most else "give a larger --budget" if known >= most else "more questions are needed"
        takes = f"takes about {counted(most, 'family', 'families')} of questions; this project has {has:,}: {needs}"
        say(f"A difference of {_DIFFERENCE:g} in {measure} {takes}")


@app.command()
def serve(
    project: Project,
    judge: JudgeName,
    overlap: Annotated[float, typer.Option(help="Share of the pairs that two people judge, to measure agreement.")] = 0.0,
    settle: Annotated[bool, typer.Option("--settle", help="Settle the pairs to which people gave different grades.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for a phone in the same network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")] = 0,
) -> None:
    """Serve the page on which one person judges, until Ctrl-C.

    Open the address that is printed: its last part is a token, without which nothing is shown. Every decision is kept at once.
    Several people may judge at the same time, each with a command of their own.
    """
    from nlp_retrieval.judging.project import JudgingProject
    from nlp_retrieval.judging.server import JudgingService
    from nlp_retrieval.service.serving import serve as serve_it
    from nlp_retrieval.service.settings import ServiceSettings, read_token

    token = secrets.token_urlsafe(24)
    settings = ServiceSettings(host=host, port=port, tokens=read_token(token, None), log_level="warning")
    serve_it(
        lambda: JudgingService(JudgingProject(project), judge, overlap, settles=settle),
        settings,
        lambda address: say(f"judging {project} on {address}/#{token} (Ctrl-C ends it; nothing is lost)"),
    )


@app.command("import")
def import_(
    project: Project,
    file: Annotated[Path, typer.Argument(help="TREC qrels, CSV, TSV or JSON lines.")],
    judge: Annotated[str, typer.Option("--judge", help="Under whose name; an export has its own.")] = "imported",
) -> None:
    """Add judgements that exist already."""
    from nlp_retrieval.judging.project import JudgingProject

    added, unknown = JudgingProject(project).import_qrels(file, judge)
    left = f"; {unknown:,} left out, as no system of this project found what they judge" if unknown else ""
    say(f"{file}: {counted(added, 'judgement')} added{left}")


@app.command()
def export(
    project: Project,
    file: Annotated[Path, typer.Argument(help="TREC qrels; .jsonl: with who, when, note and seconds.")],
) -> None:
    """Write the judgements to a file."""
    from nlp_retrieval.judging.project import JudgingProject

    say(f"{file}: {counted(JudgingProject(project).export(file), 'judgement')}")


@app.command()
def report(
    project: Project,
    measures: Annotated[str | None, typer.Option(help="As in precision@10,mrr@10: the first decides.")] = None,
    margin: Annotated[float, typer.Option(help="Differences below it do not matter.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print which system is better, and how sure that is."""
    from pydantic_core import to_json

    from nlp_retrieval.cli.runs import names_of
    from nlp_retrieval.judging.project import JudgingProject
    from nlp_retrieval.judging.report import report_of

    made = report_of(JudgingProject(project), names_of(measures), margin=margin)
    if as_json:
        typer.echo(to_json(made, inf_nan_mode="null").decode())
    else:
        echo(_report_lines(made))


def _report_lines(made: JudgingReport) -> Iterator[str]:
    yield made.sentence
    yield f"{made.judged:,} of {made.chosen:,} chosen pairs are judged."
    yield from (f"Note: {note}." for note in made.notes)
    if made.decisions:
        together = f", all {len(made.decisions):,} differences together" if len(made.decisions) > 1 else ""
        yield f"\nDifferences in {made.measure}, with 95% intervals that hold at every look{together}:"
        yield from aligned(
            [
                f"{each.system} - {each.baseline}",
                "" if each.value is None else f"{each.value:+z.3f}",
                each.reason or f"[{each.low:z.3f}, {each.high:z.3f}]",
                each.verdict,
            ]
            for each in made.decisions
        )
    if known := {name: means for name, means in made.means.items() if means}:
        yield "\nMeans of the questions that are judged completely; the pool is taken for all that is relevant:"
        systems = dict.fromkeys(system for means in known.values() for system in means)
        cells = [[f"{means[system]:.3f}" if system in means else "" for means in known.values()] for system in systems]
        yield from aligned([("system", *known), *((system, *row) for system, row in zip(systems, cells, strict=True))])
    if made.model is None:
        return
    if (agreed := made.model.agreement) is None:
        yield f"\n{made.model.name} as a judge: how far it agrees with people is unknown; too few pairs were judged by both."
    else:
        yield (
            f"\n{made.model.name} as a judge: kappa with people {_figure(agreed.kappa, agreed.kappa_interval)}, weighted "
            f"{_figure(agreed.weighted, agreed.weighted_interval)}; its grade minus theirs, on average:"
        )
        yield from aligned((bias.part, f"{bias.bias:+z.2f}", f"of {counted(bias.pairs, 'pair')}") for bias in made.model.biases)


@app.command()
def health(
    project: Project,
) -> None:
    """Print what makes a comparison unsafe."""
    from nlp_retrieval.judging.health import health_of
    from nlp_retrieval.judging.project import JudgingProject

    state = health_of(JudgingProject(project))
    echo([*(f"{warning}." for warning in state.warnings or ["Nothing unsafe was found"]), ""])
    rows = [("system", f"judged@{state.k}", "unjudged", f"precision@{state.k}", "found alone", "relevant of these")]
    for each in state.systems:
        counts = f"{each.alone:,}", f"{each.relevant_alone:,}"
        rows.append((each.system, f"{each.judged:.3f}", f"{each.unjudged:,}", f"{each.precision:.3f}", *counts))
    echo(aligned(rows))


@app.command()
def agreement(project: Project) -> None:
    """Print how far people agree beyond chance."""
    from nlp_retrieval.judging.agreement import measure_agreement
    from nlp_retrieval.judging.project import JudgingProject

    opened = JudgingProject(project)
    agreed = measure_agreement(opened.grades())
    if not agreed.n:
        typer.echo(
            f"No pair was graded by two people. Ask for it: nlp-retrieval judge serve {project} --judge NAME --overlap 0.1"
        )
        return
    alpha = _figure(agreed.alpha, agreed.alpha_interval)
    lines = [f"Krippendorff's alpha (ordinal) {alpha} on {counted(agreed.n, 'pair')} with several grades."]
    lines += [
        f"{' and '.join(pair.judges)}: {pair.same:.0%} of {pair.n:,} alike, kappa "
        f"{_figure(pair.kappa, pair.kappa_interval)}, weighted {_figure(pair.weighted, pair.weighted_interval)}; "
        f"mean {pair.means[0]:.2f} and {pair.means[1]:.2f}."
        for pair in agreed.pairs
    ]
    if disputed := opened.disputed():
        pairs = counted(len(disputed), "pair")
        lines.append(f"To settle {pairs} with different grades: nlp-retrieval judge serve {project} --settle --judge NAME")
    echo(lines)


def _figure(value: float, interval: tuple[float, float]) -> str:
    if math.isnan(value):
        return "unknown (only one grade was given)"
    return f"{value:.2f}" + ("" if math.isnan(interval[0]) else f" [{interval[0]:.2f}, {interval[1]:.2f}]")


@app.command()
def model(
    project: Project,
    lm: Annotated[str, typer.Option(help="A language model: openai/gpt-4o-mini, or openai/NAME:base_url=URL")],
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be asked, and ask nothing.")] = False,
) -> None:
    """Let a model judge every pair.

    Its grades decide nothing: the report says how far they agree with people's.
    """
    from nlp_retrieval.judging.model_judge import ModelJudge
    from nlp_retrieval.judging.project import JudgingProject

    opened, judge = JudgingProject(project), ModelJudge(language_model(lm))
    planned = judge.plan(opened)
    say(f"{counted(planned.calls, 'call')}, at most about {planned.tokens_in:,} tokens in and {planned.tokens_out:,} out")
    if plan:
        return
    done, counts = judge.judge(opened), judge.lm.counts
    say(
        f"{counted(done.graded, 'pair')} graded by {judge.name}; {counted(counts.calls, 'call')}, "
        f"{counted(counts.cache_hits, 'answer')} from disk, {counts.tokens_in:,} tokens in and {counts.tokens_out:,} out"
    )
    for reason, count in done.not_judged.items():
        say(f"{counted(count, 'pair')} not judged: {reason}")


def _compared(texts: list[str] | None, systems: list[str]) -> list[tuple[str, str]] | None:
    known = {f"{one}:{other}": (one, other) for one in systems for other in systems}
    for text in texts or []:
        if text not in known:
            raise ConfigurationError(f"--compare {text}: write two systems as A:B; there are {', '.join(systems)}")
    return None if texts is None else [known[text] for text in texts]


def _questions(path: Path) -> list[Query]:
    """Return questions from a file: one per line in .txt without tags and tabs, otherwise as TopicsLoader reads them."""
    from nlp_retrieval.core.models import Query
    from nlp_retrieval.loaders.files import read_lines
    from nlp_retrieval.loaders.topics import TopicsLoader

    if path.suffix == ".txt":
        lines = [line for _, read in read_lines(path) if (line := read.strip())]
        if lines and not any(line.startswith("<") or "\t" in line for line in lines):
            return [Query(query_id=f"q{number}", text=line) for number, line in enumerate(lines, start=1)]
    return TopicsLoader(path).queries()


_Found = tuple[dict[str, dict[str, "Ranking"]], "Iterator[SearchableItem] | None", "list[Query] | None"]


def _read_runs(paths: list[Path]) -> _Found:
    """Return the rankings by system, and what folders of benchmarks have besides: passages and queries."""
    from nlp_retrieval.core.models import Query, SearchableItem
    from nlp_retrieval.evaluation.ranking_files import read_lists
    from nlp_retrieval.evaluation.trec import read_run

    by_system: dict[str, dict[str, Ranking]] = {}
    passages: dict[str, SearchableItem] = {}
    questions: dict[str, Query] = {}
    for path in paths:
        if not path.is_dir():
            _add(by_system, {path.name.partition(".")[0] or path.name: dict(read_run(path))})
            continue
        lists = read_lists(path)
        for number, query_id in enumerate(lists.query_ids):
            questions.setdefault(query_id, Query(query_id=query_id, text=lists.texts[number], family=lists.families[number]))
        titles = dict(zip(lists.item_ids, lists.titles, strict=True))
        for item_id, text in lists.passages.items():
            passages[item_id] = SearchableItem(item_id=item_id, content=text, metadata={"title": titles.get(item_id, "")})
        _add(by_system, {name: dict(zip(lists.query_ids, lists.rankings(name), strict=True)) for name in lists.listings})
    return by_system, iter(passages.values()) if passages else None, list(questions.values()) or None


def _add(by_system: dict[str, dict[str, Ranking]], added: dict[str, dict[str, Ranking]]) -> None:
    if known := by_system.keys() & added.keys():
        raise ConfigurationError(f"two of the runs are named {min(known)!r}; rename one, so that they can be told apart")
    by_system |= added


def _searched(config: Path, questions: list[Query] | None, depth: int) -> _Found:
    """Let the searchers of a benchmark's configuration answer the questions."""
    from nlp_retrieval.benchmarks.entrants import TrecRun
    from nlp_retrieval.benchmarks.settings import read_benchmark_config

    if questions is None:
        raise ConfigurationError("--config needs questions for its searchers: --queries FILE")
    settings: Any = read_benchmark_config(config)
    searchers = {name: searcher for name, searcher in settings.searchers.items() if not isinstance(searcher, TrecRun)}
    if not searchers:
        raise ConfigurationError(f"{config} has no searcher that can be asked a question; give finished runs with --runs")
    by_system: dict[str, dict[str, Ranking]] = {}
    for name, searcher in searchers.items():
        searcher.index(settings.loader, settings.index_path)
        lists = searcher.search([question.text for question in questions], depth)
        by_system[name] = {
            question.query_id: [(hit.item.item_id, hit.score) for hit in hits]
            for question, hits in zip(questions, lists, strict=True)
        }
    return by_system, settings.loader.stream(), questions


@questions_app.command("from-log")
def from_log(
    log: Annotated[Path, typer.Argument(help="CSV, TSV, JSON, JSON lines, or text with a question per line.")],
    file: Annotated[Path, typer.Argument(help="Where to write them: a file named .jsonl, as --queries takes it.")],
    sample: Annotated[int | None, typer.Option(help="Number of questions to draw; default: all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw; a larger sample contains the smaller one.")] = 0,
    column: Annotated[str | None, typer.Option(help="Column with the question; default: one of the usual names.")] = None,
) -> None:
    """Draw questions from a log, each once.

    Questions that differ in case, spaces, Unicode form or the mark at the end are one. Near-duplicates (the same content words,
    inflected, in another order, or with a typo) become a family, which counts once in statistics.
    """
    from nlp_retrieval.judging.query_log import sample_log
    from nlp_retrieval.loaders.topics import write_queries

    drawn = sample_log(log, sample, seed=seed, column=column)
    write_queries(file, drawn.queries)
    say(
        f"{log}: {counted(drawn.entries, 'entry', 'entries')}, {drawn.unusable:,} without words or too long, "
        f"{drawn.repeated:,} repeated; {counted(drawn.distinct, 'question')} in {counted(drawn.families, 'family', 'families')}"
    )
    say(f"{file}: {counted(len(drawn.queries), 'question')}. Next: nlp-retrieval judge new PROJECT --queries {file}")
