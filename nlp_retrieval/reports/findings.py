"""What a benchmark found, in one sentence: terminal, page and trackers begin with it.

The sentence is about the main measure over all queries. It calls a configuration better or worse only if the corrected
test does, so the highest value measured is not always the winner.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.comparison import Comparison, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import (
    ALPHA,
    best_first,
    by_figure,
    latency_interval,
    p_phrase,
    price_columns,
    shared_reason,
    signed,
)
from nlp_retrieval.text.printing import listed, printable

_WIDE = 0.1
"""Width of an interval from which two decimals are enough."""

_MOST_NAMES = 3


def headline(report: BenchmarkReport) -> str:
    """Return what was found, such as ``"link graph beats bm25: Recall@20 +.197 [.12, .27], p = .001; 6 ms slower"``.

    The difference is that of the best configuration that is better than the baseline, with its interval and its corrected
    p-value. If there is none, the sentence says what is worse, or that nothing is distinguishable and why.

    Args:
        report: a finished benchmark.

    Returns:
        One sentence without a full stop; ``""`` if nothing was measured.

    Examples:
        >>> searchers = {"plain": Searcher(["bm25"]), "reranked": Searcher(["bm25"], reranker="overlap")}
        >>> run = Benchmarker(searchers, JsonlLoader("animals.jsonl"), queries, gold, index_path="index").run()
        >>> headline(run.report)
        'reranked and plain have the same nDCG@10 in every query (mean .815)'
    """
    measure, label = report.main_measure, Measure.parse(report.main_measure).label
    ranked = [result for result in best_first(report) if math.isfinite(result.measures.get(measure, math.nan))]
    if not ranked:
        return ""
    top, baseline = ranked[0], next((result for result in ranked if result.name == report.baseline), None)
    if baseline is None or len(ranked) == 1:
        return f"{printable(top.name)}: {label} {_figure(top, measure)}"
    tests = by_figure(report)
    tested = [(result, test) for result in ranked if (test := tests.get(("", measure, result.name))) is not None]
    if not tested:
        others = "" if top is baseline else f"; {printable(baseline.name)} {_short(baseline.measures[measure])}"
        values = f"({_short(top.measures[measure])}{others})"
        return f"{printable(top.name)} has the highest {label} {values}; differences were not tested"
    if better := [result for result, test in tested if verdict(test, ALPHA) == "better"]:
        sentence = _won(report, better[0], baseline, tests["", measure, better[0].name])
        return sentence if better[0] is top else f"{sentence}; {printable(top.name)} measured higher, which may be chance"
    return _not_won(baseline, label, tested)


def tied_with_best(report: BenchmarkReport) -> list[str]:
    """Return the configurations that are not distinguishable from the best in the main measure, best first."""
    if report.pairwise is None or report.pairwise.measure != report.main_measure:
        return []
    best, *others = (result.name for result in best_first(report))
    pairs = report.pairwise.both_ways()
    tests = {name: pairs[name, best] for name in others if (name, best) in pairs}
    return [name for name, test in tests.items() if verdict(test, ALPHA) == "not distinguishable"]


def _won(report: BenchmarkReport, winner: ConfigurationResult, baseline: ConfigurationResult, test: Comparison) -> str:
    sentence = f"{printable(winner.name)} beats {printable(baseline.name)}: {Measure.parse(test.measure).label} {_change(test)}"
    if costs := [*_latency(winner, baseline), *_price(report, winner)]:
        sentence += f"; {', '.join(costs)}"
    return sentence


def _not_won(baseline: ConfigurationResult, label: str, tested: Sequence[tuple[ConfigurationResult, Comparison]]) -> str:
    name, value = printable(baseline.name), _short(baseline.measures[tested[0][1].measure])
    worse = [printable(result.name) for result, test in tested if verdict(test, ALPHA) == "worse"]
    if worse:
        rest = len(tested) - len(worse)
        others = f", {rest:,} not distinguishable" if rest else ""
        return f"nothing beats {name}: {label} {value}; {_some(worse)} {'is' if len(worse) == 1 else 'are'} worse{others}"
    comparisons = [test for _, test in tested]
    whose = printable(tested[0][0].name) if len(tested) == 1 else "nothing"
    if all(test.wins == test.losses == 0 for test in comparisons):
        whom = {1: whose, 2: "both others"}.get(len(tested), f"all {len(tested):,} others")
        return f"{whom} and {name} have the same {label} in every query (mean {value})"
    negated = f"{whose} is not" if len(tested) == 1 else "nothing is"
    if reason := shared_reason(comparisons):
        could = f"{whose} could not" if len(tested) == 1 else "nothing could"
        return f"{could} be distinguished from {name} in {label} ({value}): {reason}"
    largest, test = max(tested, key=lambda pair: abs(pair[1].difference))
    of = "" if len(tested) == 1 else f"largest difference: {printable(largest.name)} "
    return f"{negated} distinguishable from {name} in {label} ({value}): {of}{_change(test)}"


def _some(names: Sequence[str]) -> str:
    if any("," in name for name in names):
        names = [f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}" for name in names]
    return listed(names) if len(names) <= _MOST_NAMES else f"{len(names):,} configurations"


def _change(test: Comparison) -> str:
    """The difference, its interval and its corrected p: ``"+.197 [.12, .27], p = .001"``."""
    low, high = test.interval
    decimals = 2 if high - low >= _WIDE else 3
    ends = ", ".join(_bare(f"{end:z.{decimals}f}".replace("-", "\N{MINUS SIGN}")) for end in (low, high))
    p = _bare(p_phrase(test.p_holm).replace("<", "< "))
    return f"{_bare(signed(test.difference))} [{ends}], {p}"


def _figure(result: ConfigurationResult, measure: str) -> str:
    """A mean and its interval, if known."""
    interval = result.intervals.get("", {}).get(measure)
    ends = "" if interval is None else f" [{', '.join(map(_short, interval))}]"
    return f"{_short(result.measures[measure])}{ends}"


def _short(value: float) -> str:
    return _bare(f"{value:.3f}")


def _bare(text: str) -> str:
    """A number without the zero before its point: ``.197``."""
    return re.sub(r"(?<!\d)0\.", ".", text)


def _latency(winner: ConfigurationResult, baseline: ConfigurationResult) -> Iterable[str]:
    if winner.cost is None or baseline.cost is None:
        return
    spans = latency_interval(winner), latency_interval(baseline)
    more = winner.cost.latency_ms - baseline.cost.latency_ms
    if not more:
        yield "as fast"
    elif spans[0] and spans[1] and spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]:
        yield "latency not distinguishable"
    else:
        yield f"{_duration(abs(more))} {'slower' if more > 0 else 'faster'}"


def _duration(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 1 else f"{ms:.2g} ms"


def _price(report: BenchmarkReport, winner: ConfigurationResult) -> Iterable[str]:
    for column in price_columns(report):
        if (price := column.value(winner)) and report.prices is not None:
            yield f"{column.text(price)} {report.prices.currency} per 1,000 queries"
