"""A study as one HTML page that needs no network: an overview, every answer with its reasons, and the changes between plans.

Text of documents is escaped, and the content security policy of the page allows only its own style sheet and script. The HTML
holds everything; the script opens link targets and hides what a filter excludes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import write_output
from nlp_retrieval.reports import asset, counted, rendered
from nlp_retrieval.systems.policy.answers import SIGNAL_FIELDS, AnswerChunk, AnswerFile, ChunkMatch, QuestionAnswer, StudyReport
from nlp_retrieval.systems.policy.editions import EditionChanges, PassageChange, word_runs
from nlp_retrieval.systems.policy.page.export import AnswerRow, row_of
from nlp_retrieval.systems.policy.study import PolicyStudy

# Parts of the page: subjects, answers, passages and changes, ready for the template.


@dataclass(frozen=True)
class PassageView:
    """A passage of an answer."""

    rank: int
    chunk: AnswerChunk
    runs: list[tuple[str, str]]
    bars: list[tuple[str, float | None]]
    chain: list[tuple[str, str]]
    origin: str


@dataclass(frozen=True)
class ListView:
    """The passages that one method found."""

    name: str
    passages: list[PassageView]
    total: int


@dataclass(frozen=True)
class AnswerView:
    """A question with its lists."""

    anchor: str
    number: int
    question: str
    lists: list[ListView]
    row: AnswerRow

    @property
    def best(self) -> float | None:
        """Return the highest combined score; None if nothing was found."""
        scores = [shown_list.passages[0].chunk.combined_score for shown_list in self.lists if shown_list.passages]
        return max(scores, default=None)

    @property
    def place(self) -> str:
        """Return where the best sentence stands: its page and document."""
        page = f"page {self.row.page}" if self.row.page else ""
        return ", ".join(filter(None, (page, self.row.document)))

    @property
    def counts(self) -> str:
        """Return the number of passages; by method if there are two, because they find many of the same."""
        if len(self.lists) == 1:
            return counted(self.lists[0].total, "passage")
        return ", ".join(f"{shown_list.total} {shown_list.name.lower()}" for shown_list in self.lists)


@dataclass(frozen=True)
class ChangeView:
    """Comparison of a passage in two editions."""

    relation: str
    earlier: list[tuple[str, str]]
    later: list[tuple[str, str]]
    earlier_id: str
    later_id: str


@dataclass(frozen=True)
class EditionView:
    """Two editions of a plan."""

    edition: EditionChanges
    changes: list[ChangeView]
    total: int


@dataclass(frozen=True)
class SubjectView:
    """All about one subject."""

    anchor: str
    name: str
    file: str
    passages: int
    answers: dict[int, AnswerView]
    editions: list[EditionView]


@dataclass(frozen=True)
class StudyView:
    """The page."""

    title: str
    field: str
    profile: str
    description: str
    methods: list[str]
    questions: list[tuple[int, str]]
    subjects: list[SubjectView]
    groups: list[str]
    about: list[str]


METHOD_NAMES = {"vector_similarity": "By signals", "graph_hop": "Along relations"}

SIGNAL_NAMES = {field: names[0].removeprefix("multi_signal.").replace("_", " ") for field, names in SIGNAL_FIELDS.items()}
"""Fields of a passage, and the signals as every other place names them."""

_MOST_PASSAGES = 4000
_SHOWN = (3, 10)
"""Passages of the whole page, at most, and of an answer, at least and at most; the files have all."""

_MOST_CHANGES = 300


def study_view(report: StudyReport, study: PolicyStudy) -> StudyView:
    """Return the view model of the page."""
    files = list(report.everything())
    numbers = sorted({answer.question_number for file in files for answer in file.questions.values()})
    n_lists = sum(len(answer.lists()) for file in files for answer in file.questions.values())
    shown = min(max(_MOST_PASSAGES // max(1, n_lists), _SHOWN[0]), _SHOWN[1])
    subjects = [
        _subject(file_number, file, report, study.changes(file.metadata.subject), shown)
        for file_number, file in enumerate(files, start=1)
    ]
    groups = {
        match.group
        for file in files
        for answer in file.questions.values()
        for chunks in answer.lists().values()
        for chunk in chunks
        for match in chunk.matches
    }
    profile = study.profile
    known = {answer.number: answer.asked_of(f"the {profile.subject}") for answer in profile.questions}
    methods = sorted({name for file in files for name in _methods(file)}, key=list(METHOD_NAMES).index)
    return StudyView(
        title=profile.description or profile.name,
        field=profile.subject,
        profile=profile.name,
        description=profile.description,
        methods=[METHOD_NAMES[name] for name in methods],
        questions=[(number, known.get(number, "")) for number in numbers],
        subjects=subjects,
        groups=sorted(groups),
        about=_about(files),
    )


def marked_runs(content: str, matches: Sequence[ChunkMatch]) -> list[tuple[str, str]]:
    """Return a text in pieces, each with the groups whose matches cover it, joined by commas; empty for none."""
    borders = {0, len(content)}
    for match in matches:
        borders |= {position for position in (match.begin, match.end) if 0 <= position <= len(content)}
    places = sorted(borders)
    runs: list[tuple[str, str]] = []
    for begin, end in pairwise(places):
        groups = ", ".join(dict.fromkeys(match.group for match in matches if match.begin <= begin and match.end >= end))
        if runs and runs[-1][1] == groups:
            runs[-1] = runs[-1][0] + content[begin:end], groups
        else:
            runs.append((content[begin:end], groups))
    return runs


def _subject(number: int, file: AnswerFile, report: StudyReport, editions: list[EditionChanges], shown: int) -> SubjectView:
    name = file.metadata.subject
    anchor = f"s{number}"
    answers = {question.question_number: _answer(anchor, question, file, shown) for question in file.questions.values()}
    path = report.present[name]
    return SubjectView(
        anchor,
        name,
        _relative(path, report.output),
        file.metadata.passages,
        answers,
        [_edition(edition) for edition in editions],
    )


def _answer(anchor: str, question: QuestionAnswer, file: AnswerFile, shown: int) -> AnswerView:
    lists = []
    for method, chunks in question.lists().items():
        passages = [_passage(rank, chunk) for rank, chunk in enumerate(chunks[:shown], start=1)]
        lists.append(ListView(METHOD_NAMES.get(method, method), passages, len(chunks)))
    number = question.question_number
    return AnswerView(f"{anchor}-q{number}", number, question.question, lists, row_of(question, file))


def _passage(rank: int, chunk: AnswerChunk) -> PassageView:
    bars = [(name, getattr(chunk, field)) for field, name in SIGNAL_NAMES.items()]
    chain = []
    origin = ""
    if chunk.chain is not None and chunk.chain.steps:
        chain = [
            ("starts at", chunk.chain.first),
            *((step.kind.replace("_", " ").lower(), step.target) for step in chunk.chain.steps),
        ]
    elif chunk.chain is not None:
        origin = chunk.chain.origin
    return PassageView(rank, chunk, marked_runs(chunk.content, chunk.matches), bars, chain, origin)


def _edition(edition: EditionChanges) -> EditionView:
    changed = [change for change in edition.changes if change.relation != "unchanged"]
    return EditionView(edition, [_change(change) for change in changed[:_MOST_CHANGES]], len(changed))


def _change(change: PassageChange) -> ChangeView:
    runs = word_runs(_text(change.earlier), _text(change.later))
    return ChangeView(
        change.relation,
        [(what, text) for what, text in runs if what != "new"],
        [(what, text) for what, text in runs if what != "gone"],
        "" if change.earlier is None else change.earlier.item_id,
        "" if change.later is None else change.later.item_id,
    )


def _text(item: SearchableItem | None) -> str:
    return "" if item is None else item.content


def _methods(file: AnswerFile) -> set[str]:
    return {name for answer in file.questions.values() for name in answer.lists()} & set(METHOD_NAMES)


def _about(files: list[AnswerFile]) -> list[str]:
    if not files:
        return []
    settings = files[0].metadata
    limits = f"An answer holds at most {settings.top_k} passages"
    if settings.min_similarity:
        limits += f" with a combined score of at least {settings.min_similarity:g}"
    if settings.n_per_document is not None:
        limits += f", and at most {settings.n_per_document} of one document"
    about = [f"{limits}."]
    if settings.keywords:
        about.append("Questions are searched for together with their keywords.")
    if settings.where is not None:
        about.append(f"Only passages that fulfil a filter are searched: {json.dumps(settings.where, ensure_ascii=False)}.")
    return about


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


_FILES = Path(__file__).parent / "files"


def render_study(report: StudyReport, study: PolicyStudy) -> str:
    """Return the page."""
    return rendered(
        "policy.html",
        _FILES,
        view=study_view(report, study),
        style=asset("report.css") + asset("passages.css") + asset("policy.css", _FILES),
        script=asset("policy.js", _FILES),
    )


def write_study_page(report: StudyReport, study: PolicyStudy, path: str | Path) -> None:
    """Write the page; a reader sees the old page or the complete new one.

    Args:
        report: of a run.
        study: that was run, with its index open.
        path: the file to write. Its folder is created if missing.

    Raises:
        SourceError: a file of answers is missing.
        OutputError: the folder or the file cannot be written.

    Examples:
        >>> write_study_page(study.run("first"), study, "first/study.html")
        >>> Path("first/study.html").read_text()[:15]
        '<!DOCTYPE html>'
    """
    write_output(Path(path), render_study(report, study).encode())
