"""Health of a collection: what makes a comparison on it unsafe.

Unjudged passages count as not relevant in most measures, which harms systems that did not take part in the pool, and those
that find what others do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.text.printing import counted
from nlp_retrieval.text.surfaces import words_of

_FEWEST = 0.95  # least share of judged passages among the first k with which a figure is called safe


@dataclass(frozen=True)
class SystemHealth:
    """How far a system's first k are judged: the share, how many are not, and precision if those are not relevant.

    ``alone`` are pairs that no other system has there; ``relevant_alone`` is what it would lose if the pool had been made
    without it.
    """

    system: str
    judged: float
    unjudged: int
    precision: float
    alone: int
    relevant_alone: int


@dataclass(frozen=True)
class CollectionHealth:
    """Health at a depth: by system, ids of questions that are judged completely and have nothing relevant, and duplicates.

    ``duplicates`` are pairs of item ids with the same words, for one question; ``warnings`` say what makes a comparison unsafe.
    """

    k: int
    systems: list[SystemHealth]
    without_relevant: list[str]
    duplicates: list[tuple[str, str]]
    warnings: list[str]


def health_of(project: JudgingProject, k: int | None = None) -> CollectionHealth:
    """Return the health of a project, to a depth; by default that of the project."""
    pool, depth = project.pool(), k or project.settings.depth
    judged, relevant = pool.judged, pool.relevant
    first = {name: [pairs[:depth] for pairs in rankings] for name, rankings in pool.systems.items()}
    finders = np.bincount(np.concatenate([pairs for each in first.values() for pairs in each]), minlength=len(judged))
    systems = []
    for name, rankings in first.items():
        listed = np.concatenate(rankings)
        own = listed[finders[listed] == 1]
        precision = float(relevant[listed].sum() / depth / len(rankings))
        share = float(judged[listed].mean()) if len(listed) else 1.0
        systems.append(SystemHealth(name, share, int((~judged[listed]).sum()), precision, len(own), int(relevant[own].sum())))
    waiting, has_relevant = (
        np.bincount(pool.pair_query[pairs], minlength=len(pool.query_ids)) > 0 for pairs in (~judged, judged & relevant)
    )
    without = [pool.query_ids[query] for query in np.flatnonzero(~waiting & ~has_relevant).tolist()]
    same: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for pair, _, item in project.texts():
        same.setdefault((int(pool.pair_query[pair]), tuple(words_of(item.text))), []).append(item.item_id)
    duplicates = list(dict.fromkeys((min(ids[:2]), max(ids[:2])) for ids in same.values() if len(ids) > 1))
    warnings = [note.rstrip(".")] if (note := pool.synthetic_note) else []
    warnings += _warnings(systems, depth, without, duplicates)
    return CollectionHealth(depth, systems, without, duplicates, warnings)


def _warnings(systems: list[SystemHealth], k: int, without: list[str], duplicates: list[tuple[str, str]]) -> Iterator[str]:
    least, most = (pick(systems, key=lambda each: each.judged) for pick in (min, max))
    if least.judged < _FEWEST:
        yield (
            f"{counted(least.unjudged, 'passage')} among the first {k} of {least.system} unjudged ({1 - least.judged:.0%}), "
            "counted as not relevant in the table below"
        )
    if most.judged - least.judged > 1 - _FEWEST:
        yield f"{most.system} is judged further ({most.judged:.0%}) than {least.system} ({least.judged:.0%})"
    relies = max(systems, key=lambda each: each.relevant_alone)
    if relies.relevant_alone and len(systems) > 1:
        alone = counted(relies.relevant_alone, "relevant passage")
        yield f"{alone} found by {relies.system} alone: a system outside the pool may lose as much"
    if without:
        questions = counted(len(without), "question")
        yield f"{questions} without a relevant passage (first: {without[0]!r}), which cannot tell systems apart"
    if duplicates:
        one, other = duplicates[0]
        pairs = counted(len(duplicates), "pair of passages", "pairs of passages")
        yield f"{pairs} with the same words (first: {one!r} and {other!r})"
