"""Judging what changed alone: passages that only one of two rankings has are judged, and decide without any other gold.

A passage among the first k of both adds the same to the precision of both. So the difference of precision needs judgements of
the other passages only, and those are asked for in judging projects, the only store of judgements. One counts for the question
and the text that were judged; projects of earlier changes are read too.

Until all are judged, both extremes are taken: what is not judged is relevant where only the baseline has it, or where only the
searcher has it. Each p-value and each interval moves one way with the difference of any query, so a verdict on which both
extremes agree is that of every outcome. Looking while people judge therefore adds no false alarms.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.gate.baseline import Baseline, digest
from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.judging.project_file import PROJECT_FILE
from nlp_retrieval.text import normalize_title

Side = Literal["baseline", "now"]

_Key = tuple[str, str, str]
"""Question, id of the item, and digest of the text that is judged."""


@dataclass(frozen=True)
class ChangedPassage:
    """A passage that is among the first results of one side alone.

    Args:
        query_id: of the query.
        item_id: of the passage.
        side: the ranking that has it: "baseline" or "now".
        relevant: by gold or people's judgements; None if there are none.
        has_text: whether its text is at hand, so that it can be judged.
    """

    query_id: str
    item_id: str
    side: Side
    relevant: bool | None
    has_text: bool


@dataclass(frozen=True)
class ChangeToJudge:
    """How far what changed is judged.

    Args:
        passages: that differ.
        judged: of these, judged by people or by gold.
        gone: not judged, and without a text: they left the corpus.
        alone: whether there is no other gold, so that the figures are of these passages alone.
        project: the judging project that was made of the rest; None if none was.
        waiting: projects that ask for passages of the rest already.
        unasked: not judged, and in no project.
    """

    passages: int
    judged: int
    gone: int
    alone: bool = True
    project: Path | None = None
    waiting: tuple[Path, ...] = ()
    unasked: int = 0

    @property
    def unjudged(self) -> int:
        """Return the number of passages that are not judged."""
        return self.passages - self.judged


class JudgedTexts:
    """People's judgements in a folder of judging projects.

    Args:
        folder: with the projects, or a project; it need not exist.

    Raises:
        ConfigurationError: a project judges titles.
        IndexDamagedError: a project is damaged, or its design was changed by hand.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: dict[_Key, Path] = {}
        grades: dict[_Key, list[int]] = {}
        for path in [folder, *sorted(folder.iterdir())] if folder.is_dir() else []:
            if not (path / PROJECT_FILE).exists():
                continue
            project = JudgingProject(path)
            if project.settings.unit != "item":
                raise ConfigurationError(f"{path} judges titles, and a gate needs judgements of passages; move it elsewhere")
            pool = project.pool()
            for number, question, item in project.texts():
                key = (question, item.item_id, digest(item.text))
                if not np.isnan(pool.grades[number]):
                    grades.setdefault(key, []).append(int(pool.grades[number] >= project.settings.relevant_from))
                elif pool.chosen[number]:
                    self.waiting[key] = path
            project.close()
        self.relevant = {key: bool(statistics.median_low(given)) for key, given in grades.items()}


def changed_passages(
    queries: Sequence[Query],
    before: Baseline,
    now: Baseline,
    cutoffs: Iterable[int],
    judged: JudgedTexts,
    texts: Mapping[str, str],
    gold: Mapping[str, Gold],
) -> list[ChangedPassage]:
    """Return the passages that one side alone has within a cutoff.

    Args:
        queries: that both have.
        before: the baseline.
        now: the same of the searcher.
        cutoffs: numbers of results that count.
        judged: people's judgements.
        texts: digests of the texts that can be judged, by id.
        gold: by query id, which says of some passages whether they are relevant.
    """
    depths = sorted(set(cutoffs))
    passages = []
    for query in queries:
        old, new = before.queries[query.query_id].hits, now.queries[query.query_id].hits
        for side, own, other in (("baseline", old, new), ("now", new, old)):
            differing = dict.fromkeys(each for k in depths for each in own[:k] if each not in other[:k])
            for item_id in differing:
                text = texts.get(item_id) or before.items[item_id].digest
                relevant = _graded(item_id, before, now, gold.get(query.query_id))
                if relevant is None:
                    relevant = judged.relevant.get((query.text, item_id, text))
                passages.append(ChangedPassage(query.query_id, item_id, side, relevant, item_id in texts))  # type: ignore[arg-type]
    return passages


def _graded(item_id: str, before: Baseline, now: Baseline, gold: Gold | None) -> bool | None:
    """Return what gold says of a passage; None if it says nothing."""
    if gold is None:
        return None
    if gold.by == "item_id":
        return gold.relevance[item_id] > 0 if item_id in gold.relevance else None
    title = normalize_title(_title_of(item_id, before, now))
    grades = [grade for name, grade in gold.relevance.items() if normalize_title(name) == title]
    return max(grades) > 0 if grades and title else None


def _title_of(item_id: str, before: Baseline, now: Baseline) -> str:
    return (now.items.get(item_id) or before.items[item_id]).title


def precision_of_change(
    queries: Sequence[Query],
    before: Baseline,
    now: Baseline,
    measures: Iterable[str],
    passages: Sequence[ChangedPassage],
    unknown: Side | None,
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Return ``[queries]`` by measure, of both sides: what passages add to precision that the other side lacks.

    Args:
        queries: that both have.
        before: the baseline.
        now: the same of the searcher.
        measures: precision at a cutoff.
        passages: that differ.
        unknown: the side on which a passage that is not judged is relevant; None if on neither.
    """
    relevant: dict[str, set[str]] = {query.query_id: set() for query in queries}
    open_: dict[str, set[str]] = {query.query_id: set() for query in queries}
    for each in passages:
        if each.relevant is None:
            open_[each.query_id].add(each.item_id)
        elif each.relevant:
            relevant[each.query_id].add(each.item_id)
    sides: tuple[dict[str, Scores], dict[str, Scores]] = ({}, {})
    for measure in measures:
        k = Measure.parse(measure).cutoff or 1
        found = []
        for query in queries:
            old, new = (set(side.queries[query.query_id].hits[:k]) for side in (before, now))
            for own, other, side in ((old, new, "baseline"), (new, old, "now")):
                good = relevant[query.query_id] | (open_[query.query_id] if side == unknown else set())
                found.append(len((own - other) & good) / k)
        values = np.array(found).reshape(-1, 2)
        sides[0][measure], sides[1][measure] = values[:, 0], values[:, 1]
    return sides


def gold_of_change(queries: Sequence[Query], passages: Iterable[ChangedPassage]) -> dict[str, Gold]:
    """Return, by query id, the passages that differ and were judged relevant as gold.

    Args:
        queries: that both have.
        passages: that differ.
    """
    relevance: dict[str, dict[str, int]] = {query.query_id: {} for query in queries}
    for each in passages:
        if each.relevant:
            relevance[each.query_id][each.item_id] = 1
    return {query_id: Gold(query_id=query_id, relevance=own) for query_id, own in relevance.items()}


def with_judged(
    gold: Mapping[str, Gold], passages: Iterable[ChangedPassage], before: Baseline, now: Baseline, grade: int
) -> dict[str, Gold]:
    """Return gold with the passages that were judged relevant and that it lacks.

    Args:
        gold: by query id.
        passages: that differ.
        before: the baseline.
        now: the same of the searcher.
        grade: of a passage that was judged relevant.
    """
    added: dict[str, dict[str, int]] = {}
    for each in passages:
        if each.relevant and each.query_id in gold:
            name = each.item_id if gold[each.query_id].by == "item_id" else _title_of(each.item_id, before, now)
            if name:
                added.setdefault(each.query_id, {})[name] = grade
    return {
        query_id: Gold(query_id=query_id, relevance=added[query_id] | own.relevance, by=own.by) if query_id in added else own
        for query_id, own in gold.items()
    }


def split_waiting(
    judged: JudgedTexts, queries: Sequence[Query], passages: Iterable[ChangedPassage], texts: Mapping[str, str]
) -> tuple[list[ChangedPassage], tuple[Path, ...]]:
    """Return the passages that are to be judged and that no project asks for, and the projects that ask for the others.

    Args:
        judged: people's judgements.
        queries: of the passages.
        passages: that differ.
        texts: digests of the texts that can be judged, by id.
    """
    question_of = {query.query_id: query.text for query in queries}
    waiting: dict[Path, None] = {}
    unasked = []
    for each in passages:
        if each.relevant is None and each.has_text:
            place = judged.waiting.get((question_of[each.query_id], each.item_id, texts[each.item_id]))
            if place is None:
                unasked.append(each)
            else:
                waiting[place] = None
    return unasked, tuple(waiting)


def make_project(
    folder: Path,
    queries: Sequence[Query],
    passages: Sequence[ChangedPassage],
    items: Iterable[SearchableItem],
    texts: Mapping[str, str],
) -> Path:
    """Make a judging project of passages, and return its folder.

    Args:
        folder: of all projects; the name of this one depends on the passages and their texts alone.
        queries: of the passages.
        passages: to judge.
        items: the passages, with those beside them.
        texts: digests of the texts that can be judged, by id.

    Raises:
        OutputError: it cannot be written.
    """
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {"baseline": {}, "now": {}}
    for each in passages:
        run = runs[each.side].setdefault(each.query_id, [])
        run.append((each.item_id, -float(len(run))))
    path = folder / digest(repr(sorted((each.query_id, each.item_id, texts[each.item_id]) for each in passages)))
    depth = max(len(ranking) for run in runs.values() for ranking in run.values())
    JudgingProject.create(path, queries, {name: run for name, run in runs.items() if run}, items, depth=depth).close()
    return path


def lines_to_judge(change: ChangeToJudge) -> Iterator[str]:
    """Yield what is left to judge, and how, as sentences."""
    if change.alone:
        yield "Figures are of what changed alone: relevant passages that the other side lacks among its first results."
    yield (
        f"{change.passages:,} passages are among the first results of one side alone; {change.judged:,} of them are judged"
        + (f", and {change.gone:,} cannot be, because their texts are not in the corpus" if change.gone else "")
        + ("" if change.alone or not change.unjudged else "; what is not judged counts as not relevant")
        + "."
    )
    for path in [*([change.project] if change.project else []), *change.waiting]:
        yield f"To judge them: nlp-retrieval judge serve {path} --judge NAME"
    if change.unasked:
        yield f"{change.unasked:,} are in no judging project; make one: nlp-retrieval gate GATE.yaml --judge"
