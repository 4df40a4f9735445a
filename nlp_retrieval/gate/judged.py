"""Judging what changed alone: passages that only one of two rankings has are judged, and decide where gold says nothing.

A passage among the first k of both adds the same to the precision of both. So the difference of precision needs judgements of
the other passages only, and those are asked for in judging projects, the only store of judgements. One counts for the question
and the text that were judged; projects of earlier changes are read too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.gate.baseline import Baseline, digest
from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.judging.project_file import PROJECT_FILE
from nlp_retrieval.text import normalize_title

Side = Literal["baseline", "now"]
_Key = tuple[str, str, str]
"""The question, the id of an item, and the digest of its text."""


@dataclass(frozen=True)
class ChangedPassage:
    """A passage that one side alone has; ``relevant`` by gold or people, ``place`` the project that asks for it."""

    query_id: str
    key: _Key
    title: str
    side: Side
    relevant: bool | None
    has_text: bool
    place: Path | None


@dataclass(frozen=True)
class ChangeToJudge:
    """How many passages differ, and how far they are judged.

    ``gone`` are not judged and have left the corpus; ``alone`` says that there is no other gold; ``projects`` ask for passages
    of the rest, and ``unasked`` are in none.
    """

    passages: int
    unjudged: int
    gone: int
    alone: bool
    projects: tuple[Path, ...]
    unasked: int


def changed_passages(
    folder: Path,
    queries: Sequence[Query],
    before: Baseline,
    now: Baseline,
    cutoffs: Iterable[int],
    texts: Mapping[str, str],
    gold: Mapping[str, Gold],
) -> list[ChangedPassage]:
    """Return the passages that one side alone has within a cutoff, with what gold, or people in a folder's projects, say.

    ``texts`` has the digests of the texts that can be judged, by id.

    Raises:
        ConfigurationError: a project judges titles.
    """
    said, waiting = _judgements(folder)
    depths, passages = sorted(set(cutoffs)), []
    for query in queries:
        own_gold, names = gold.get(query.query_id), {}
        if own_gold is not None:
            named = own_gold.by == "title"
            names = {normalize_title(name) if named else name: grade for name, grade in own_gold.relevance.items()}
        old, new = before.queries[query.query_id].hits, now.queries[query.query_id].hits
        sides: tuple[tuple[Side, tuple[str, ...], tuple[str, ...]], ...] = (("baseline", old, new), ("now", new, old))
        for side, hits, others in sides:
            for item_id in dict.fromkeys(each for k in depths for each in hits[:k] if each not in others[:k]):
                item = now.items.get(item_id) or before.items[item_id]
                key = query.text, item_id, texts.get(item_id) or item.digest
                name = normalize_title(item.title) if own_gold is not None and own_gold.by == "title" else item_id
                relevant = names[name] > 0 if name in names else said.get(key)
                place = waiting.get(key)
                passages.append(ChangedPassage(query.query_id, key, item.title, side, relevant, item_id in texts, place))
    return passages


def _judgements(folder: Path) -> tuple[dict[_Key, bool], dict[_Key, Path]]:
    """Return what people said of each text in a folder's projects, and which project asks for the others."""
    grades: dict[_Key, list[bool]] = {}
    waiting: dict[_Key, Path] = {}
    for path in [folder, *sorted(folder.iterdir())] if folder.is_dir() else []:
        if not (path / PROJECT_FILE).exists():
            continue
        project = JudgingProject(path)
        if project.settings.unit != "item":
            raise ConfigurationError(f"{path} judges titles, and a gate needs judgements of passages; move it elsewhere")
        pool = project.pool()
        for number, question, item in project.texts():
            key = question, item.item_id, digest(item.text)
            if pool.judged[number]:
                grades.setdefault(key, []).append(bool(pool.relevant[number]))
            elif pool.chosen[number]:
                waiting[key] = path
        project.close()
    return {key: statistics.median_low(given) for key, given in grades.items()}, waiting


def with_judged(
    gold: Mapping[str, Gold], passages: Iterable[ChangedPassage], grade: int, also: Side | None = None
) -> dict[str, Gold]:
    """Return gold with the passages that were judged relevant, and those not judged that ``also``, a side, alone has."""
    whole = dict(gold)
    for each in passages:
        own = whole.get(each.query_id)
        if own is not None and (each.relevant or (each.relevant is None and each.side == also)):
            name = each.key[1] if own.by == "item_id" else each.title
            added = {name: grade} if name else {}
            whole[each.query_id] = Gold(query_id=own.query_id, relevance=added | own.relevance, by=own.by)
    return whole


def make_project(
    folder: Path, queries: Sequence[Query], passages: Sequence[ChangedPassage], items: Iterable[SearchableItem]
) -> Path:
    """Make a judging project of passages, and return its folder, whose name depends on the passages and their texts alone."""
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for each in passages:
        run = runs.setdefault(each.side, {}).setdefault(each.query_id, [])
        run.append((each.key[1], -float(len(run))))
    path = folder / digest(repr(sorted((each.query_id, *each.key[1:]) for each in passages)))
    depth = max(len(ranking) for run in runs.values() for ranking in run.values())
    JudgingProject.create(path, queries, runs, items, depth=depth).close()
    return path


def lines_to_judge(change: ChangeToJudge) -> Iterator[str]:
    """Yield what is left to judge, and how, as sentences."""
    if change.alone:
        yield "Figures are of what changed alone: relevant passages that the other side lacks among its first results."
    judged = f"{change.passages - change.unjudged:,} of them are judged"
    gone = f", and {change.gone:,} cannot be, because their texts are not in the corpus" if change.gone else ""
    counts = "" if change.alone or not change.unjudged else "; what is not judged counts as not relevant"
    yield f"{change.passages:,} passages are among the first results of one side alone; {judged}{gone}{counts}."
    for path in change.projects:
        yield f"To judge them: nlp-retrieval judge serve {path} --judge NAME"
    if change.unasked:
        yield f"{change.unasked:,} are in no judging project; make one: nlp-retrieval gate GATE.yaml --judge"
