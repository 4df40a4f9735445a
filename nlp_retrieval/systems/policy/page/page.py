"""A study as one HTML page that needs no network: an overview, every answer with its reasons, and the changes between plans.

Text of documents is escaped, and the content security policy of the page allows only its own style sheet and script. The HTML
holds everything; the script opens link targets and hides what a filter excludes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markupsafe import Markup

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import write_output
from nlp_retrieval.reports import asset, counted, rendered
from nlp_retrieval.systems.policy.answers import SIGNAL_FIELDS, AnswerChunk, AnswerFile, ChunkMatch, QuestionAnswer, StudyReport
from nlp_retrieval.systems.policy.changes import EditionChanges, PassageChange, word_runs
from nlp_retrieval.systems.policy.page.export import AnswerRow, row_of
from nlp_retrieval.systems.policy.study import PolicyStudy
from nlp_retrieval.text import visible

# Parts of the page: subjects, answers, passages and changes, ready for the template.


@dataclass(frozen=True)
class PassageView:
    """A passage of an answer.

    Args:
        rank: from 1.
        chunk: as in the file.
        runs: its content in pieces, each with the groups of patterns that it matches.
        bars: value of each signal, 0..1; None without a value.
        chain: the relations that led to it, each as "kind" and the passage that it leads to.
        origin: why it was found if no relation led to it; may be empty.
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
        passages: the displayed ones, best first.
        total: number of all passages.
        graph: a drawing of their relations; empty if there are none.
    """

    name: str
    passages: list[PassageView]
    total: int
    graph: Markup


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


# Drawing of the relations that led to the passages of an answer: passages on a ring by rank, an arrow for every relation.

RELATION_CLASSES = {
    "SUPPORTS": "series-2",
    "EXPLAINS": "series-0",
    "CONTRADICTS": "series-1",
    "FOLLOWS": "series-6",
    "TEMPORAL_FOLLOWS": "series-3",
    "CAUSES": "series-4",
}
"""Colour of each type of relation; others have the last."""

_OTHER = "series-7"
_WIDTH, _HEIGHT = 420, 260
_RING, _NODE = 96.0, 11.0
_MOST = 24


def relation_graph(chunks: Sequence[AnswerChunk]) -> Markup:
    """Return a drawing of the chains of relations that led to passages; empty if no passage has one.

    Passages of the list have their rank; intermediate ones are small and have none.
    """
    edges: dict[tuple[str, str, str], None] = {}
    for chunk in chunks:
        for step in chunk.chain.steps if chunk.chain is not None else ():
            edges[step.source, step.target, step.kind] = None
    if not edges:
        return Markup()
    ranks = {chunk.id: rank for rank, chunk in enumerate(chunks, start=1)}
    linked = dict.fromkeys(name for source, target, _ in edges for name in (source, target))
    nodes = sorted(linked, key=lambda name: (ranks.get(name, len(ranks) + 1), name))[:_MOST]
    places = {name: _place(number, len(nodes)) for number, name in enumerate(nodes)}
    drawn = [(edge, places[edge[0]], places[edge[1]]) for edge in edges if edge[0] in places and edge[1] in places]
    kinds = sorted({edge[2] for edge, _, _ in drawn})
    parts = [_arrow(kind, begin, end) for (_, _, kind), begin, end in drawn]
    parts += [_node(name, ranks.get(name), centre) for name, centre in places.items()]
    parts += [_legend(number, kind) for number, kind in enumerate(kinds)]
    label = f"{len(drawn)} relations between {len(nodes)} passages"
    height = _HEIGHT + 16 * len(kinds)
    return Markup('<svg class="relations" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, height, label, Markup("").join(parts)
    )


def _place(number: int, total: int) -> tuple[float, float]:
    angle = 2 * math.pi * number / total - math.pi / 2
    return _WIDTH / 2 + 1.6 * _RING * math.cos(angle), _HEIGHT / 2 + _RING * math.sin(angle)


def _arrow(kind: str, begin: tuple[float, float], end: tuple[float, float]) -> Markup:
    """Return an arrow from ring to ring in the colour of its kind."""
    across, down = end[0] - begin[0], end[1] - begin[1]
    length = math.hypot(across, down)
    if length < 2 * _NODE:
        return Markup()
    unit = across / length, down / length
    start = begin[0] + unit[0] * _NODE, begin[1] + unit[1] * _NODE
    tip = end[0] - unit[0] * (_NODE + 1), end[1] - unit[1] * (_NODE + 1)
    left = tip[0] - 8 * unit[0] - 4 * unit[1], tip[1] - 8 * unit[1] + 4 * unit[0]
    right = tip[0] - 8 * unit[0] + 4 * unit[1], tip[1] - 8 * unit[1] - 4 * unit[0]
    path = f"M{_at(start)}L{_at(tip)}M{_at(left)}L{_at(tip)}L{_at(right)}"
    return Markup('<path class="{}" d="{}" fill="none" stroke="currentColor"><title>{}</title></path>').format(
        _class(kind), path, _kind_in_words(kind)
    )


def _node(name: str, rank: int | None, centre: tuple[float, float]) -> Markup:
    if rank is None:
        return Markup('<circle class="passed" cx="{:.1f}" cy="{:.1f}" r="6"><title>{}</title></circle>').format(
            *centre, visible(name)
        )
    return Markup(
        '<g class="found"><title>{}</title><circle cx="{:.1f}" cy="{:.1f}" r="{}"/>'
        '<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text></g>'
    ).format(visible(name), *centre, _NODE, centre[0], centre[1] + 4, rank)


def _legend(number: int, kind: str) -> Markup:
    y = _HEIGHT + 16 * number + 4
    return Markup(
        '<path class="{}" d="M10,{}h22" fill="none" stroke="currentColor"/><text class="label" x="38" y="{}">{}</text>'
    ).format(_class(kind), y, y + 4, _kind_in_words(kind))


def _class(kind: str) -> str:
    return RELATION_CLASSES.get(kind.upper(), _OTHER)


def _kind_in_words(kind: str) -> str:
    return visible(kind.replace("_", " ").lower())


def _at(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


METHOD_NAMES = {"vector_similarity": "By signals", "graph_hop": "Along relations"}

SIGNAL_NAMES = {field: names[0].removeprefix("multi_signal.").replace("_", " ") for field, names in SIGNAL_FIELDS.items()}
"""Fields of a passage, and the signals as every other place names them."""

_MOST_PASSAGES = 4000
_SHOWN = (3, 10)
"""Passages of the whole page, at most, and of an answer, at least and at most; the files have all."""

_MOST_CHANGES = 300


def study_view(report: StudyReport, study: PolicyStudy) -> StudyView:
    """Return the view model of the page.

    Raises:
        SourceError: a file of answers is gone.
    """
    files = list(report.everything())
    numbers = sorted({answer.question_number for file in files for answer in file.questions.values()})
    n_lists = sum(len(answer.lists(file.metadata.retrieval_method)) for file in files for answer in file.questions.values())
    shown = min(max(_MOST_PASSAGES // max(1, n_lists), _SHOWN[0]), _SHOWN[1])
    subjects = [
        _subject(file_number, file, report, study.changes(file.metadata.subject), shown)
        for file_number, file in enumerate(files, start=1)
    ]
    groups = {
        match.group
        for file in files
        for answer in file.questions.values()
        for chunks in answer.lists(file.metadata.retrieval_method).values()
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
    for method, chunks in question.lists(file.metadata.retrieval_method).items():
        passages = [_passage(rank, chunk) for rank, chunk in enumerate(chunks[:shown], start=1)]
        graph = relation_graph(chunks[:shown])
        lists.append(ListView(METHOD_NAMES.get(method, method), passages, len(chunks), graph))
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
    return {name for answer in file.questions.values() for name in answer.lists(file.metadata.retrieval_method)} & set(
        METHOD_NAMES
    )


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
    """Return the page.

    Raises:
        SourceError: a file of answers is missing.
    """
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
