"""What the page of a study shows, computed once: answers by subject and question, their signals, marks and chains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.answers import SIGNAL_FIELDS
from nlp_retrieval.systems.policy.changes import EditionChanges, PassageChange, word_runs
from nlp_retrieval.systems.policy.page.relations import relation_graph
from nlp_retrieval.systems.policy.page.shown import (
    AnswerView,
    ChangeView,
    EditionView,
    ListView,
    PassageView,
    StudyView,
    SubjectView,
)
from nlp_retrieval.systems.policy.report import StudyReport
from nlp_retrieval.systems.policy.schema import AnswerChunk, AnswerFile, ChunkMatch, QuestionAnswer
from nlp_retrieval.systems.policy.study import PolicyStudy

__all__ = ["METHOD_NAMES", "marked_runs", "study_view"]

METHOD_NAMES = {"vector_similarity": "By signals", "graph_hop": "Along relations"}

SIGNAL_NAMES = dict(zip(SIGNAL_FIELDS, ("sentence vectors", "word vectors", "patterns", "fuzzy words"), strict=True))

_MOST_PASSAGES = 4000
_SHOWN = (3, 10)
"""Passages of the whole page, at most, and of an answer, at least and at most; the files have all."""

_MOST_CHANGES = 300


def study_view(report: StudyReport, study: PolicyStudy) -> StudyView:
    """Return what the page shows.

    Args:
        report: of a run.
        study: that was run, with its index open.

    Raises:
        SourceError: a file of answers is gone.
    """
    files = list(report.everything())
    numbers = sorted({one.question_number for file in files for one in file.questions.values()})
    n_lists = sum(len(one.lists(file.metadata.retrieval_method)) for file in files for one in file.questions.values())
    shown = min(max(_MOST_PASSAGES // max(1, n_lists), _SHOWN[0]), _SHOWN[1])
    subjects = [
        _subject(place, file, report, study.changes(file.metadata.subject), shown) for place, file in enumerate(files, start=1)
    ]
    groups = {
        match.group
        for file in files
        for one in file.questions.values()
        for chunks in one.lists(file.metadata.retrieval_method).values()
        for chunk in chunks
        for match in chunk.matches
    }
    profile = study.profile
    known = {one.number: one.asked_of(f"the {profile.subject}") for one in profile.questions}
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
    """Return a text in pieces, each with the groups whose matches cover it, joined by commas; empty where none does.

    Args:
        content: the text.
        matches: offsets beyond it are ignored.
    """
    borders = {0, len(content)}
    for match in matches:
        borders |= {place for place in (match.begin, match.end) if 0 <= place <= len(content)}
    places = sorted(borders)
    runs: list[tuple[str, str]] = []
    for begin, end in pairwise(places):
        groups = ", ".join(dict.fromkeys(match.group for match in matches if match.begin <= begin and match.end >= end))
        if runs and runs[-1][1] == groups:
            runs[-1] = runs[-1][0] + content[begin:end], groups
        else:
            runs.append((content[begin:end], groups))
    return runs


def _subject(place: int, file: AnswerFile, report: StudyReport, editions: list[EditionChanges], shown: int) -> SubjectView:
    name = file.metadata.subject
    anchor = f"s{place}"
    answers = {one.question_number: _answer(anchor, one, file, shown) for one in file.questions.values()}
    path = report.present[name]
    return SubjectView(
        anchor, name, _relative(path, report.output), file.metadata.passages, answers, [_edition(one) for one in editions]
    )


def _answer(anchor: str, one: QuestionAnswer, file: AnswerFile, shown: int) -> AnswerView:
    lists = []
    for method, chunks in one.lists(file.metadata.retrieval_method).items():
        passages = [_passage(rank, chunk) for rank, chunk in enumerate(chunks[:shown], start=1)]
        graph = relation_graph(chunks[:shown])
        lists.append(ListView(METHOD_NAMES.get(method, method), passages, len(chunks), graph))
    return AnswerView(f"{anchor}-q{one.question_number}", one.question_number, one.question, lists)


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
    return {name for one in file.questions.values() for name in one.lists(file.metadata.retrieval_method)} & set(METHOD_NAMES)


def _about(files: list[AnswerFile]) -> list[str]:
    if not files:
        return []
    one = files[0].metadata
    held = f"An answer holds at most {one.top_k} passages"
    if one.min_similarity:
        held += f" with a combined score of at least {one.min_similarity:g}"
    if one.n_per_document is not None:
        held += f", and at most {one.n_per_document} of one document"
    about = [f"{held}."]
    if one.keywords:
        about.append("Questions are searched for together with their keywords.")
    if one.where is not None:
        about.append(f"Only passages that fulfil a filter are searched: {json.dumps(one.where, ensure_ascii=False)}.")
    return about


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
