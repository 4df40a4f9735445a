"""What a judging project hands out and keeps: pairs to judge, judgements, how far judging has come; and judgements as files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.text.printing import spreadsheet_cell, visible

Decision = Literal["graded", "skipped", "withdrawn", "settled", "not judged"]


@dataclass(frozen=True)
class PairToJudge:
    """A pair of question and passage as a judge sees it: without system, rank and score.

    Args:
        number: of the pair, from 0.
        query_id: of the question.
        question: its text.
        title: of the passage; empty if it has none.
        content: its text.
        before: the passage before it in the same document; empty if there is none.
        after: the passage after it.
        sha256: of title and content.
        grades: what others said, by their names, where a disagreement is to be settled.
    """

    number: int
    query_id: str
    question: str
    title: str
    content: str
    before: str = ""
    after: str = ""
    sha256: str = ""
    grades: Mapping[str, int] | None = None


@dataclass(frozen=True)
class ModelGrade:
    """What a model says about a pair.

    Args:
        pair: number of the pair.
        grade: on the scale of the project, also between two grades; None if it is not judged.
        quote: of the passage.
        note: its reason, or why it is not judged.

    Examples:
        >>> project = JudgingProject.create("judging", queries, {"a": {"q1": [("whale", 1.0)]}}, items)
        >>> project.judge_by_model("words in common", [ModelGrade(pair=0, grade=0.4)])
        >>> project.pool("words in common").model.tolist()
        [0.4]
    """

    pair: int
    grade: float | None
    quote: str = ""
    note: str = ""


@dataclass(frozen=True)
class RelevanceJudgement:
    """One decision of a person or a model about one pair.

    Args:
        query_id: of the question.
        item_id: of the passage, or its title in a project by titles.
        sha256: of the text that was judged.
        decision: "graded", "settled" (a disagreement), "skipped", "withdrawn", or "not judged" (a model without a usable
            answer).
        grade: None unless "graded" or "settled"; a model may give one between two grades.
        judge: who.
        is_model: whether it is a model or another component.
        note: in the judge's words.
        quote: of the passage, by a model.
        seconds: that it took; NaN if unknown.
        span: part of the passage that answers, in characters of its content; None for all of it.
        date: ISO 8601, in UTC.
    """

    query_id: str
    item_id: str
    sha256: str
    decision: Decision
    grade: float | None
    judge: str
    is_model: bool = False
    note: str = ""
    quote: str = ""
    seconds: float = float("nan")
    span: tuple[int, int] | None = None
    date: str = ""


@dataclass(frozen=True)
class Progress:
    """How far judging has come.

    Args:
        chosen: pairs that the design chose.
        judged: of these, judged by at least one person.
        mine: judged by this judge.
        skipped: skipped by this judge.
        pending: of the chosen, still to be judged by this judge.
        seconds_left: for these at this judge's pace (median of the last 30); None before three judgements.
        disputed: pairs with different grades that nobody settled.
    """

    chosen: int
    judged: int
    mine: int
    skipped: int
    pending: int
    seconds_left: float | None
    disputed: int


# Judgements as files.


_COLUMNS = (
    "query_id", "item_id", "grade", "decision", "judge", "is_model", "date", "seconds", "note", "quote", "span", "sha256",
)  # fmt: skip


def judgements_jsonl(judgements: Sequence[RelevanceJudgement]) -> str:
    """Return judgements as JSON lines."""
    return "".join(canonical_json(_plain(each)) + "\n" for each in judgements)


def judgements_csv(judgements: Sequence[RelevanceJudgement]) -> str:
    """Return judgements as CSV."""
    written = io.StringIO()
    table = csv.DictWriter(written, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(row[name]) for name in _COLUMNS} for row in map(_plain, judgements))
    return written.getvalue()


def _plain(judgement: RelevanceJudgement) -> dict[str, Any]:
    values = asdict(judgement)
    seconds = values["seconds"]
    span = judgement.span
    return values | {
        "seconds": None if math.isnan(seconds) else round(seconds, 2),
        "span": None if span is None else list(span),
    }


def _cell(value: object) -> str:
    if value is None:
        return ""
    shown = " ".join(visible(str(value)).split())
    return spreadsheet_cell(shown) if isinstance(value, str) else shown
