"""Results of a benchmark: quality and cost of every configuration, as data.

Quality and cost are separate, because quality can be compared byte by byte between two runs and time cannot. The
table, the page, Weights & Biases and the JSON files are all written from these objects alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa

from nlp_retrieval.benchmarks.cost import Cost, Prices, amount, price_per_1000_queries
from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.queries import synthetic_note
from nlp_retrieval.core.tables import DataTable, columns_of, html_table, html_text
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.answers import GoldAnswer
from nlp_retrieval.evaluation.comparison import (
    LEVEL,
    RESAMPLES,
    Comparison,
    Pairwise,
    compare_by_group,
    compare_pairs,
    intervals_by_group,
    verdict,
)
from nlp_retrieval.evaluation.evaluator import Evaluation
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import Ranking, RunLists
from nlp_retrieval.lm.answering import AnsweredQuestion
from nlp_retrieval.text.printing import counted

Measures = dict[str, float]
"""Mean over queries by measure name."""


@dataclass(frozen=True, repr=False)
class ConfigurationResult:
    """One row of the comparison: measures over all queries and by group (``"hops=3"``).

    Equal configurations and models have equal fingerprints. ``cost`` is None if it was not measured, as for a run of another
    tool. ``intervals`` are those of the means, low and high, by group (``""``: all queries) and measure; not of differences.
    """

    name: str
    config: Config
    fingerprint: str
    measures: Measures
    groups: dict[str, Measures]
    cost: Cost | None
    empty_queries: int
    intervals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        measures = ", ".join(f"{name} {value:.3f}" for name, value in self.measures.items())
        return f"<{self.name!r}: {measures}>"


@dataclass(frozen=True)
class Counted:
    """Counts of the queries and judgements behind the figures, and of those excluded; ``first`` gives an example id of each.

    Queries without a relevant document score 0, as in trec_eval. ``own_ids`` counts queries that are passages themselves.
    """

    queries: int
    without_relevant: int = 0
    unjudged: int = 0
    unasked: int = 0
    missing_documents: int = 0
    missing_queries: int = 0
    gold_missing: str = "count"
    dropped: int = 0
    own_ids: int = 0
    first: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedConfiguration:
    """A configuration that failed while others could be run; a traceback only if the error is not one of the project's own."""

    name: str
    config: Config
    error: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True, repr=False)
class BenchmarkReport:
    """A finished benchmark.

    Args:
        configurations: in the given order.
        baseline: the name of the configuration to compare the others with.
        k_values: the cutoffs, ascending.
        query_counts: number of queries by group; the key ``""`` counts all.
        n_items: size of the corpus.
        manifest: everything needed to run it again: configurations, fingerprints, versions, seeds, hardware.
        comparisons: every other configuration against the baseline in every measure, by group (``""``: all queries).
        pairwise: every two configurations compared in the main measure; None for a single one.
        failed: configurations that failed, in the given order.
        prices: prices of language models; None if nothing is priced.
        files: paths of the run's files by kind (``"report"``, ``"results"``, ``"trec"``, ...).
        counted: the queries and judgements behind the figures.

    Examples:
        >>> searchers = {"plain": Searcher(["bm25"]), "reranked": Searcher(["bm25"], reranker="overlap")}
        >>> benchmark = Benchmarker(searchers, JsonlLoader("animals.jsonl"), queries, gold, index_path="index")
        >>> report = benchmark.run().report
        >>> report.baseline, [result.name for result in report.configurations], report.n_items
        ('plain', ['plain', 'reranked'], 3)
    """

    configurations: list[ConfigurationResult]
    baseline: str
    k_values: list[int]
    query_counts: dict[str, int]
    n_items: int
    manifest: Config
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    pairwise: Pairwise | None = None
    failed: list[FailedConfiguration] = field(default_factory=list)
    prices: Prices | None = None
    files: dict[str, str] = field(default_factory=dict)
    counted: Counted | None = None

    @property
    def main_measure(self) -> str:
        """The measure to sort, test pairs and draw by."""
        measured = list(dict.fromkeys(key for result in self.configurations for key in result.measures))
        wanted = self.manifest.get("main")
        return wanted if wanted in measured else next(iter(measured), "")

    @property
    def relevant_from(self) -> int:
        """The lowest grade of a relevant document; 1 without a record of it."""
        recorded = self.manifest.get("relevant_from")
        return recorded if isinstance(recorded, int) and recorded > 1 else 1

    @property
    def synthetic_note(self) -> str:
        """Return how many queries a model wrote, and what that means for every figure; ``""`` if it wrote none."""
        written = self.manifest.get("synthetic")
        return synthetic_note(written, self.query_counts.get("", written)) if isinstance(written, int) else ""

    def table(self, group: str = "") -> DataTable:
        """Return a row for each configuration: ``recall@5`` and the other measures, their intervals, and cost.

        Costs are named as in :class:`Cost`; those of stages and of language models are prefixed with their names.

        Args:
            group: group of queries, such as ``"hops=3"``; by default all. Cost is that of all queries.

        Raises:
            ConfigurationError: the group does not exist.
        """
        if group and group not in self.query_counts:
            raise ConfigurationError(
                f"no group of queries is called {group!r}; {nearest(group, filter(None, self.query_counts))}"
            )
        rows = [
            {"configuration": result.name, "baseline": result.name == self.baseline}
            | _quality(result, group)
            | _cost(result.cost, self.prices)
            for result in self.configurations
        ]
        return DataTable(pa.table(columns_of(rows)))

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        counts = f"{counted(len(self.configurations), 'configuration')}{failed}"
        queries = counted(self.query_counts.get("", 0), "query", "queries")
        return f"<benchmark: {counts}, {queries}, {counted(self.n_items, 'item')}; baseline {self.baseline!r}>"

    def __str__(self) -> str:
        heading, rows, marks = self._shown_table()
        lines = [heading, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        cells = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([*cells, marks, *self._failures()])

    def _repr_html_(self) -> str:
        heading, rows, marks = self._shown_table()
        return html_table(heading, rows, marks) + "".join(f"<p>{html_text(failure)}</p>" for failure in self._failures())

    def _failures(self) -> list[str]:
        return [f"{configuration.name} failed: {configuration.reason}" for configuration in self.failed]

    def _shown_table(self) -> tuple[list[str], list[list[str]], str]:
        """Return heading, rows and legend of what a notebook and ``print`` show."""
        measured = {Measure.parse(name) for result in self.configurations for name in result.measures}
        main, ends = Measure.parse(self.main_measure), (None, max(self.k_values, default=0))
        if not self.manifest.get("measures"):
            measured = {measure for measure in measured if measure.family in _SHOWN and measure.cutoff in ends}
        shown = [main, *sorted(measured - {main}, key=lambda measure: measure.order)]
        verdicts = {(comparison.system, comparison.measure): verdict(comparison) for comparison in self.comparisons.get("", [])}
        rows = [
            [
                result.name + (" (baseline)" if result.name == self.baseline else ""),
                *(_figure(result, str(measure), verdicts.get((result.name, str(measure)), "")) for measure in shown),
                "" if result.cost is None else amount(result.cost.latency_ms),
                "" if result.cost is None else amount(result.cost.index_bytes / 1e6),
            ]
            for result in self.configurations
        ]
        tested = "; ▲ better, ▼ worse than the baseline by the corrected test" if verdicts else ""
        marks = f"{self.synthetic_note} [interval]{tested}. report.table() has all figures.".lstrip()
        return ["", *(measure.label for measure in shown), "median ms", "index MB"], rows, marks


@dataclass(frozen=True, repr=False)
class BenchmarkRun:
    """A finished run: the report, and the lists it is based on.

    Args:
        report: quality and cost.
        lists: the results of each configuration, and the gold.
        per_query: every measure of every query, by configuration.
        answers: the questions with the passages read and the answers, by configuration; empty if nothing was answered.
        right_answers: the expected answers, in the order of the queries; empty if there were none.

    Examples:
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> run = Benchmarker({"bm25": Searcher(["bm25"])}, corpus, queries, gold, index_path="index").run()
        >>> run.per_query["bm25"]["recall@5"].tolist()
        [1.0, 1.0]
    """

    report: BenchmarkReport
    lists: RunLists
    per_query: dict[str, dict[str, Scores]]
    answers: dict[str, list[AnsweredQuestion]] = field(default_factory=dict)
    right_answers: list[GoldAnswer] = field(default_factory=list)

    def __repr__(self) -> str:
        return repr(self.report)

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    @property
    def query_ids(self) -> list[str]:
        """Ids of the queries, in order."""
        return self.lists.query_ids

    @property
    def families(self) -> list[str | None]:
        """Family of each query; None if it has none."""
        return self.lists.families

    @property
    def rankings(self) -> dict[str, list[Ranking]]:
        """Lists of each configuration, one per query."""
        return {name: self.lists.rankings(name) for name in self.lists.listings}


_SHOWN = ("perfect_recall", "recall", "ndcg", "answer_em", "answer_f1")
_MARKS = {"better": " ▲", "worse": " ▼"}


def _quality(result: ConfigurationResult, group: str) -> dict[str, object]:
    """Every measure, each followed by its interval."""
    measures = result.groups.get(group, {}) if group else result.measures
    intervals = result.intervals.get(group, {})
    row: dict[str, object] = {}
    for name in sorted(measures, key=lambda name: Measure.parse(name).order):
        low, high = intervals.get(name, (None, None))
        row |= {name: measures[name], f"{name}.low": low, f"{name}.high": high}
    return row


def _cost(cost: Cost | None, prices: Prices | None) -> dict[str, object]:
    """Return its costs, as figures by name; empty if it was not measured."""
    if cost is None:
        return {}
    row: dict[str, object] = {}
    for name, value in asdict(cost).items():
        nested = value if isinstance(value, dict) else {}
        row |= {f"{name}.{part}": figure for part, figure in nested.items() if not isinstance(figure, dict)}
        row |= {} if isinstance(value, dict) or value is None else {name: value}
    return row if prices is None else row | {"price_per_1000_queries": price_per_1000_queries(cost, prices)}


def _figure(result: ConfigurationResult, measure: str, verdict_text: str) -> str:
    value = result.measures.get(measure)
    if value is None:
        return ""
    low, high = result.intervals.get("", {}).get(measure, (None, None))
    interval = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return f"{value:.3f}{interval}{_MARKS.get(verdict_text, '')}"


# Judging: from the measures of every query to the report's means, intervals and comparisons. Nothing is searched, so a run can
# be judged again from its files, against another baseline or with other runs.


@dataclass(frozen=True)
class Entrant:
    """Facts about a configuration other than its quality; its cost is None if it was not measured."""

    config: Config
    fingerprint: str
    cost: Cost | None


def masks_of(labels: Sequence[str | None], order: Sequence[str] = ()) -> dict[str, Mask]:
    """Return the queries of each group; empty if there is no group, or a single one with all queries."""
    present = set(labels)
    names = [name for name in dict.fromkeys([*order, *(label for label in labels if label is not None)]) if name in present]
    if len(present) < 2:
        return {}
    return {name: np.array([label == name for label in labels]) for name in names}


def judged(
    report: BenchmarkReport,
    entrants: Mapping[str, Entrant],
    evaluations: Mapping[str, Evaluation],
    families: Sequence[str | None],
    groups: Mapping[str, Mask],
    seed: int,
    resamples: int | None = None,
) -> BenchmarkReport:
    """Complete a report with means, intervals and comparisons."""
    per_query = {name: evaluations[name].per_query for name in entrants}
    intervals = intervals_by_group(per_query, families, groups, seed, resamples)
    measured = replace(
        report,
        configurations=[
            ConfigurationResult(
                name=name,
                config=entrant.config,
                fingerprint=entrant.fingerprint,
                measures=evaluations[name].means(),
                groups={group: evaluations[name].means(mask) for group, mask in groups.items()},
                cost=entrant.cost,
                empty_queries=evaluations[name].empty_queries,
                intervals=intervals[name],
            )
            for name, entrant in entrants.items()
        ],
        query_counts={"": len(families)} | {group: int(mask.sum()) for group, mask in groups.items()},
        comparisons=compare_by_group(per_query, report.baseline, families, groups, seed, resamples),
    )
    pairwise = compare_pairs(per_query, measured.main_measure, families, seed, resamples)
    drawn = max((one.resamples for compared in measured.comparisons.values() for one in compared), default=None)
    significance = {"tests": drawn, "intervals": resamples or RESAMPLES, "level": LEVEL, "seed": seed}
    return replace(measured, pairwise=pairwise, manifest=report.manifest | {"significance": significance})
