"""What a judging project hands out and keeps: pairs to judge, judgements, and how far judging has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Decision = Literal["graded", "skipped", "withdrawn", "settled", "not judged"]


@dataclass(frozen=True)
class PairToJudge:
    """A pair of question and passage as a judge sees it: without system, rank and score.

    ``grades``, by judge, are those to settle.
    """

    number: int
    query_id: str
    question: str
    title: str
    content: str
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
    """One decision of a person or a model about one pair; it belongs to the text with the digest.

    ``grade`` is None unless a grade was given or a disagreement settled; ``seconds`` is how long it took, None if unknown;
    ``date`` is ISO 8601, in UTC.
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
    seconds: float | None = None
    date: str = ""


@dataclass(frozen=True)
class Progress:
    """How far judging has come: in all (``chosen``, ``judged``, ``disputed``), and of one judge (``mine``, ``skipped``)."""

    chosen: int
    judged: int
    mine: int
    skipped: int
    disputed: int
