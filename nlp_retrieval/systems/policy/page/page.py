"""A study as one HTML page that needs no network: an overview, every answer with its reasons, and the changes between plans.

Text of documents is escaped, and the content security policy of the page allows only its own style sheet and script. The HTML
holds everything; the script opens link targets and hides what a filter excludes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from nlp_retrieval.core import write_output
from nlp_retrieval.reports import asset, rendered
from nlp_retrieval.systems.policy.answers import SIGNAL_FIELDS, AnswerFile, ChunkMatch, QuestionAnswer, StudyReport
from nlp_retrieval.systems.policy.editions import EditionChanges, PassageChange, word_runs
from nlp_retrieval.systems.policy.page.export import row_of
from nlp_retrieval.systems.policy.study import PolicyStudy
from nlp_retrieval.text import counted

METHOD_NAMES = {"vector_similarity": "By signals", "graph_hop": "Along relations"}

SIGNAL_NAMES = {field: names[0].removeprefix("multi_signal.").replace("_", " ") for field, names in SIGNAL_FIELDS.items()}
"""Fields of a passage, and the signals as every other place names them."""

_MOST_PASSAGES, _MOST_CHANGES = 4000, 300
"""Passages of the whole page, and changes between two editions, at most."""

_FEWEST, _MOST = 3, 10
"""Passages of an answer; the files have all."""

_FILES = Path(__file__).parent / "files"


class Subject(NamedTuple):
    """All about one subject."""

    anchor: str
    file: AnswerFile
    path: str
    editions: list[EditionChanges]


def render_study(report: StudyReport, study: PolicyStudy) -> str:
    """Return the page."""
    files = list(report.everything())
    answers = [answer for file in files for answer in file.questions.values()]
    lists = [(method, chunks) for answer in answers for method, chunks in answer.lists().items()]
    known = {question.number: question.asked_of(f"the {study.profile.subject}") for question in study.profile.questions}
    subjects = []
    for number, file in enumerate(files, start=1):
        name, path = file.metadata.subject, report.present[file.metadata.subject]
        shown = path.relative_to(report.output).as_posix() if path.is_relative_to(report.output) else path.name
        subjects.append(Subject(f"s{number}", file, shown, study.changes(name)))
    return rendered(
        "policy.html",
        _FILES,
        profile=study.profile,
        subjects=subjects,
        questions=[(number, known.get(number, "")) for number in sorted({answer.question_number for answer in answers})],
        about=_about(files),
        groups=sorted({match.group for _, chunks in lists for chunk in chunks for match in chunk.matches}),
        along="graph_hop" in {method for method, _ in lists},
        shown=min(max(_MOST_PASSAGES // max(1, len(lists)), _FEWEST), _MOST),
        most_changes=_MOST_CHANGES,
        methods=METHOD_NAMES,
        signals=SIGNAL_NAMES,
        row_of=row_of,
        counts_of=_counts,
        marked=marked_runs,
        compared=_compared,
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


def marked_runs(content: str, matches: Sequence[ChunkMatch]) -> list[tuple[str, str]]:
    """Return a text in pieces, each with the groups whose matches cover it, joined by commas; empty for none."""
    borders = {0, len(content)}
    for match in matches:
        borders |= {position for position in (match.begin, match.end) if 0 <= position <= len(content)}
    runs: list[tuple[str, str]] = []
    for begin, end in pairwise(sorted(borders)):
        groups = ", ".join(dict.fromkeys(match.group for match in matches if match.begin <= begin and match.end >= end))
        if runs and runs[-1][1] == groups:
            runs[-1] = runs[-1][0] + content[begin:end], groups
        else:
            runs.append((content[begin:end], groups))
    return runs


def _counts(answer: QuestionAnswer) -> str:
    """Return the number of passages; by method if there are two, because they find many of the same."""
    totals = {METHOD_NAMES.get(method, method).lower(): len(chunks) for method, chunks in answer.lists().items()}
    if len(totals) == 1:
        (total,) = totals.values()
        return counted(total, "passage")
    return ", ".join(f"{total} {name}" for name, total in totals.items())


def _compared(change: PassageChange) -> list[tuple[str, str]]:
    return word_runs(*("" if item is None else item.content for item in (change.earlier, change.later)))


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
