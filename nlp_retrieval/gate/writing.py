"""A report of a gate for people and for continuous integration: text, Markdown, JUnit XML, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from xml.etree.ElementTree import Element, SubElement, tostring

from nlp_retrieval.core.components.component import to_plain
from nlp_retrieval.core.models import excerpt
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.gate.checking import GateReport
from nlp_retrieval.gate.reasons import LostQuery
from nlp_retrieval.gate.verdict import MeasureVerdict
from nlp_retrieval.text.printing import counted, listed, visible

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_IDS = 5
_LONGEST = 80


def headline(report: GateReport) -> str:
    """Return the report in one sentence: ``"Worse: nDCG@10 fell from .712 to .655."``."""
    if report.verdict is None:
        enough = "" if report.passes else ", which is too little"
        said = f"Rankings agree with those of the baseline by {report.agreement:.2f} of 1{enough}"
        return f"{said}; without gold, this says nothing about quality."
    of_kind = [each for each in report.measures if each.verdict == report.verdict]
    falls = listed([f"{each.label} fell from {each.before:.3f} to {each.now:.3f}" for each in of_kind])
    queries = counted(report.queries, "query", "queries")
    if report.verdict == "worse":
        return f"Worse: {falls}."
    if report.verdict == "fell":
        return f"Beyond the margin, and whether by chance cannot be told: {falls}."
    if report.verdict == "cannot tell":
        return f"Cannot tell: {_why_open(of_kind)}."
    if report.same == report.queries:
        return f"No worse: the first results of all {queries} are the same."
    return f"No worse: no measure lost more than its margin over {queries}."


def _why_open(of_kind: Sequence[MeasureVerdict]) -> str:
    more = f"about {counted(max(each.more for each in of_kind), 'more query', 'more queries')} could tell"
    if fell := [each.label for each in of_kind if each.difference < 0]:
        return f"{listed(fell)} fell, and may have lost more than the margin; {more}"
    what = listed([each.label for each in of_kind])
    return f"{what} did not fall, but so few queries do not rule out a loss beyond the margin; {more}"


def lines_of(report: GateReport) -> Iterator[str]:
    """Yield the report as lines of text."""
    yield f"{'PASS' if report.passes else 'FAIL'}  {headline(report)}"
    for each in report.measures:
        yield f"  {_measure(each)}"
    yield f"  The first results are the same for {report.same:,} of {report.queries:,}; agreement {report.agreement:.2f}."
    if report.changes:
        yield "What changed since the baseline, in the order in which to look:"
        yield from (f"  {change.kind}: {visible(change.detail)}" for change in report.changes)
    elif report.same < report.queries:
        yield "Nothing that the baseline records has changed: versions, gold, and of a Searcher corpus, models and settings."
    if report.lost:
        yield "Queries whose results changed most:" if report.verdict is None else "Queries that lost most:"
        for query in report.lost:
            yield from (f"  {line}" for line in _query(query))
    yield from (f"note: {visible(note)}" for note in report.notes)
    if report.verdict is not None:
        changes = counted(report.looks, "change")
        yield f"Among {changes} judged by one baseline, a false \u201cworse\u201d has a chance of at most {report.level:.0%}."


def markdown(report: GateReport) -> str:
    """Return the report as Markdown, for a pull request: its text in a fence, so that nothing of a query or an id is markup."""
    text = "\n".join(lines_of(report))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"### Retrieval gate: {'passes' if report.passes else 'fails'}\n\n{fence}text\n{text}\n{fence}\n"


def junit(report: GateReport) -> bytes:
    """Return the report as JUnit XML: a test case for each measure, or for the agreement without gold."""
    cases = [(each.label, each.verdict not in report.failing, _measure(each)) for each in report.measures]
    if report.verdict is None:
        cases.append(("agreement", report.passes, headline(report)))
    suite = Element("testsuite", name="retrieval gate", tests=str(len(cases)))
    suite.set("failures", str(sum(not passes for _, passes, _ in cases)))
    for name, passes, said in cases:
        case = SubElement(suite, "testcase", classname="retrieval gate", name=name)
        if not passes:
            failure = SubElement(case, "failure", message=_NOT_IN_XML.sub("\ufffd", said))
            failure.text = _NOT_IN_XML.sub("\ufffd", "\n".join(lines_of(report)))
    written: bytes = tostring(suite, "utf-8", xml_declaration=True)
    return written


def as_json(report: GateReport) -> str:
    """Return the report as JSON; its keys are those of :class:`GateReport`."""
    plain = to_plain(asdict(report)) | {"headline": headline(report)}
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _measure(each: MeasureVerdict) -> str:
    said = (
        f"{each.label}: {each.before:.3f} -> {each.now:.3f} ({each.difference:+z.3f}; at least {each.low:+z.3f} with 95%), "
        f"margin {each.margin:g}: {each.verdict}"
    )
    return f"{said}; about {counted(each.more, 'more query', 'more queries')} could tell" if each.more else said


def _query(query: LostQuery) -> Iterator[str]:
    measured = f"{Measure.parse(query.measure).label} {query.before:.2f} -> {query.now:.2f}" if query.measure else ""
    what = measured or f"agreement {query.now:.2f}"
    yield f"{visible(query.query_id)}: {what}: {visible(excerpt(query.text, _LONGEST))}"
    for each in query.documents:
        text = f" \u201c{visible(excerpt(each.text, _LONGEST))}\u201d" if each.text else ""
        gone = "is no longer in the corpus" if each.text is None else "is found no more"
        where = gone if each.now is None else f"is now at {each.now:,}"
        yield f"  {visible(each.item_id)}{text} was at {each.before}, {where}"
    if query.came:
        yield f"  instead: {visible(', '.join(query.came[:_MOST_IDS]))}"
