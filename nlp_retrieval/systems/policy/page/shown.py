"""What the page of a study is made of: subjects, answers, passages and changes, ready to be printed."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from nlp_retrieval.reports import counted
from nlp_retrieval.systems.policy.changes import EditionChanges
from nlp_retrieval.systems.policy.schema import AnswerChunk

__all__ = ["AnswerView", "ChangeView", "EditionView", "ListView", "PassageView", "StudyView", "SubjectView"]


@dataclass(frozen=True)
class PassageView:
    """A passage of an answer.

    Args:
        rank: from 1.
        chunk: as the file has it.
        runs: its content in pieces, each with the groups of patterns that it matches.
        bars: what each signal said, 0..1; None where it said nothing.
        chain: the relations that led to it, each as "kind" and the passage that it leads to.
        origin: why it was found where no relation led to it; empty where nothing says so.
    """

    rank: int
    chunk: AnswerChunk
    runs: list[tuple[str, str]]
    bars: list[tuple[str, float | None]]
    chain: list[tuple[str, str]]
    origin: str


@dataclass(frozen=True)
class ListView:
    """The passages that one method found.

    Args:
        name: of the method.
        passages: those that are shown, best first.
        total: how many there are.
        graph: a drawing of their relations; empty where there are none.
    """

    name: str
    passages: list[PassageView]
    total: int
    graph: Markup


@dataclass(frozen=True)
class AnswerView:
    """A question with its lists.

    Args:
        anchor: of this answer in the page.
        number: of the question.
        question: its text.
        lists: by method.
    """

    anchor: str
    number: int
    question: str
    lists: list[ListView]

    @property
    def best(self) -> float | None:
        """The highest combined score, which shades the cell of the overview; None where nothing was found."""
        scores = [one.passages[0].chunk.combined_score for one in self.lists if one.passages]
        return max(scores, default=None)

    @property
    def shade(self) -> int:
        """How dark the cell is, 0 to 5."""
        best = self.best
        return 0 if best is None else 1 + min(max(int(best * 5), 0), 4)

    @property
    def counts(self) -> str:
        """How many passages there are; where two methods were asked, by each, because they find many of the same."""
        if len(self.lists) == 1:
            return counted(self.lists[0].total, "passage")
        return ", ".join(f"{one.total} {one.name.lower()}" for one in self.lists)


@dataclass(frozen=True)
class ChangeView:
    """A passage of two editions, side by side.

    Args:
        relation: what became of it.
        earlier: the earlier text in pieces, each "same" or "gone".
        later: the later text in pieces, each "same" or "new".
        earlier_id: id of the earlier passage, or empty.
        later_id: id of the later one, or empty.
    """

    relation: str
    earlier: list[tuple[str, str]]
    later: list[tuple[str, str]]
    earlier_id: str
    later_id: str


@dataclass(frozen=True)
class EditionView:
    """Two editions of a plan.

    Args:
        edition: their names and how many passages have which fate.
        changes: what is not the same in both.
        total: how many changes there are, also those that are not shown.
    """

    edition: EditionChanges
    changes: list[ChangeView]
    total: int


@dataclass(frozen=True)
class SubjectView:
    """All about one subject.

    Args:
        anchor: of this subject in the page.
        name: of the subject.
        file: of its answers, relative to the page.
        passages: how many the index has of it.
        answers: by the number of the question.
        editions: what changed between plans.
    """

    anchor: str
    name: str
    file: str
    passages: int
    answers: dict[int, AnswerView]
    editions: list[EditionView]


@dataclass(frozen=True)
class StudyView:
    """The page.

    Args:
        title: of the page.
        field: what the subjects are.
        profile: its name.
        description: of the profile.
        methods: that were asked.
        questions: number and text, with the subject's place left open.
        subjects: in the order of the index.
        groups: of patterns that are marked somewhere, in order.
        about: of the settings, a sentence each.
    """

    title: str
    field: str
    profile: str
    description: str
    methods: list[str]
    questions: list[tuple[int, str]]
    subjects: list[SubjectView]
    groups: list[str]
    about: list[str]
