"""Health of a collection: what makes a comparison on it unsafe.

Unjudged passages count as not relevant in most measures, which harms systems that did not take part in the pool, and those
that find what others do not. Condensed lists leave them out (Sakai, SIGIR 2007); bpref (Buckley and Voorhees, SIGIR 2004) and
infAP (Yilmaz and Aslam, CIKM 2006) are computed by ir-measures; rank-biased precision says how much they could add, its
residual (Moffat and Zobel, TOIS 2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.evaluation.rankings import same_text
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.text.surfaces import words_of

PERSISTENCE = 0.8
"""Of the reader in rank-biased precision: the probability of going on to the next passage."""

_FEWEST = 0.95
"""Least share of judged passages among the first k with which a figure is called safe."""

_NEAR = 0.9
_SHINGLE = 3


@dataclass(frozen=True)
class SystemHealth:
    """How far a system's list is judged.

    Args:
        system: its name.
        judged: share of judged passages among its first k.
        unjudged: number of unjudged passages among them.
        precision: at k, where unjudged passages are not relevant.
        condensed: precision of the first k judged passages.
        rbp: rank-biased precision.
        residual: what unjudged passages, and those beyond the list, could add to it.
        alone: pairs among its first k that no other system has there.
        relevant_alone: of these, relevant ones: what it would lose if it had not taken part in the pool.
        bpref: None without ir-measures, or without relevant passages.
        inf_ap: the same.
    """

    system: str
    judged: float
    unjudged: int
    precision: float
    condensed: float
    rbp: float
    residual: float
    alone: int
    relevant_alone: int
    bpref: float | None = None
    inf_ap: float | None = None


@dataclass(frozen=True)
class CollectionHealth:
    """What is known of a collection.

    Args:
        k: depth of the figures.
        systems: by system.
        without_relevant: ids of completely judged questions for which nothing is relevant.
        duplicates: pairs of item ids with the same text, for one question.
        near_duplicates: pairs of item ids with nearly the same words (Jaccard of three words in a row of at least 0.9).
        verbatim: query id and item id, where the question stands in the passage.
        warnings: sentences on what makes a comparison unsafe.
    """

    k: int
    systems: list[SystemHealth]
    without_relevant: list[str]
    duplicates: list[tuple[str, str]]
    near_duplicates: list[tuple[str, str]]
    verbatim: list[tuple[str, str]]
    warnings: list[str] = field(default_factory=list)


def health_of(project: JudgingProject, k: int | None = None) -> CollectionHealth:
    """Return the health of a project.

    Args:
        project: judged in part.
        k: depth of the figures; by default that of the project.

    Examples:
        >>> project = JudgingProject.create("judging", queries[:1], {"a": {"q1": [("whale", 2.0), ("fox", 1.0)]}}, items)
        >>> _ = project.judge(0, 1, by="Ann")
        >>> health = health_of(project)
        >>> health.systems[0].judged, health.systems[0].unjudged
        (0.5, 1)
    """
    pool, depth = project.pool(), k or project.depth
    judged = ~np.isnan(pool.grades)
    relevant = judged & (np.nan_to_num(pool.grades) >= pool.relevant_from)
    first = {name: [pairs[:depth] for pairs in rankings] for name, rankings in pool.systems.items()}
    finders = np.zeros(len(judged), np.int64)
    for rankings in first.values():
        finders[np.concatenate(rankings)] += 1
    others = _by_ir_measures(pool, relevant)
    systems = []
    for name, rankings in first.items():
        listed = np.concatenate(rankings)
        own = listed[finders[listed] == 1]
        rbp, residual = _rank_biased(pool.systems[name], judged, relevant)
        bpref, inf_ap = others.get(name, (None, None))
        systems.append(
            SystemHealth(
                system=name,
                judged=float(judged[listed].mean()) if len(listed) else 1.0,
                unjudged=int((~judged[listed]).sum()),
                precision=float(np.mean([relevant[pairs].sum() / depth for pairs in rankings])),
                condensed=_condensed(pool.systems[name], judged, relevant, depth),
                rbp=rbp,
                residual=residual,
                alone=len(own),
                relevant_alone=int(relevant[own].sum()),
                bpref=bpref,
                inf_ap=inf_ap,
            )
        )
    waiting = np.bincount(pool.pair_query[~judged], minlength=len(pool.query_ids)) > 0
    found = np.bincount(pool.pair_query[relevant], minlength=len(pool.query_ids)) > 0
    without = [pool.query_ids[query] for query in np.flatnonzero(~waiting & ~found).tolist()]
    texts = project.texts()
    exact, near = _alike(pool, {pair: item.text for pair, _, item in texts})
    verbatim = [
        (pool.query_ids[pool.pair_query[pair]], item.item_id)
        for pair, question, item in texts
        if len(words_of(question)) > _SHINGLE and len(item.content) >= len(question) and same_text(question, item.content)
    ]
    warnings = [note.rstrip(".")] if (note := pool.synthetic_note) else []
    warnings += _warnings(systems, depth, without, verbatim, exact)
    return CollectionHealth(depth, systems, without, exact, near, verbatim, warnings)


def _rank_biased(rankings: list[Rows], judged: Mask, relevant: Mask) -> tuple[float, float]:
    sums = []
    for pairs in rankings:
        weights = (1 - PERSISTENCE) * PERSISTENCE ** np.arange(len(pairs))
        sums.append((weights[relevant[pairs]].sum(), weights[~judged[pairs]].sum() + PERSISTENCE ** len(pairs)))
    value, residual = np.mean(sums, axis=0).tolist()
    return value, residual


def _condensed(rankings: list[Rows], judged: Mask, relevant: Mask, k: int) -> float:
    """Precision of the first k judged passages, over questions with judged ones."""
    condensed = [pairs[judged[pairs]][:k] for pairs in rankings]
    values = [relevant[pairs].sum() / k for pairs in condensed if len(pairs)]
    return float(np.mean(values)) if values else 0.0


def _by_ir_measures(pool: JudgingPool, relevant: Mask) -> Mapping[str, tuple[float, float]]:
    """Return bpref and infAP by system; empty without ir-measures, or if nothing is relevant."""
    try:
        import ir_measures
    except ImportError:
        return {}
    if not relevant.any():
        return {}
    names = [str(pair) for pair in range(len(pool.item_ids))]
    qrels = [
        ir_measures.Qrel(pool.query_ids[pool.pair_query[pair]], names[pair], int(relevant[pair]))
        for pair in np.flatnonzero(~np.isnan(pool.grades)).tolist()
    ]
    found = {}
    for system, rankings in pool.systems.items():
        run = [
            ir_measures.ScoredDoc(query_id, names[pair], float(len(pairs) - rank))
            for query_id, pairs in zip(pool.query_ids, rankings, strict=True)
            for rank, pair in enumerate(pairs.tolist())
        ]
        values = ir_measures.calc_aggregate([ir_measures.Bpref, ir_measures.infAP], qrels, run)
        found[system] = (float(values[ir_measures.Bpref]), float(values[ir_measures.infAP]))
    return found


def _alike(pool: JudgingPool, texts: Mapping[int, str]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return pairs of items for one question with the same words, and with nearly the same."""
    exact: dict[tuple[str, str], None] = {}
    near: dict[tuple[str, str], None] = {}
    words = {pair: words_of(text) for pair, text in texts.items()}
    runs = {
        pair: {tuple(own[at : at + _SHINGLE]) for at in range(max(1, len(own) - _SHINGLE + 1))} for pair, own in words.items()
    }
    by_query: dict[int, list[int]] = {}
    for pair in texts:
        by_query.setdefault(int(pool.pair_query[pair]), []).append(pair)
    for pairs in by_query.values():
        for number, one in enumerate(pairs):
            for other in pairs[:number]:
                low, high = sorted((pool.item_ids[one], pool.item_ids[other]))
                if words[one] == words[other]:
                    exact[low, high] = None
                elif len(runs[one] & runs[other]) >= _NEAR * len(runs[one] | runs[other]):
                    near[low, high] = None
    return list(exact), list(near)


def _warnings(
    systems: list[SystemHealth],
    k: int,
    without: list[str],
    verbatim: list[tuple[str, str]],
    exact: list[tuple[str, str]],
) -> list[str]:
    said = []
    least, most = (pick(systems, key=lambda each: each.judged) for pick in (min, max))
    if least.judged < _FEWEST:
        said.append(
            f"{least.unjudged:,} passages among the first {k} of {least.system} are unjudged ({1 - least.judged:.0%}), and "
            "count as not relevant in the table below; the report's estimates allow for that"
        )
    if most.judged - least.judged > 1 - _FEWEST:
        said.append(f"{most.system} is judged further ({most.judged:.0%}) than {least.system} ({least.judged:.0%})")
    relies = [each for each in systems if each.relevant_alone and len(systems) > 1]
    if relies:
        one = max(relies, key=lambda each: each.relevant_alone)
        said.append(
            f"{one.relevant_alone:,} relevant passages were found by {one.system} alone: a system that did not take part in "
            "the pool may lose as much"
        )
    if without:
        said.append(f"{len(without):,} questions have no relevant passage (first: {without[0]!r}); they tell no systems apart")
    if verbatim:
        query_id, item_id = verbatim[0]
        said.append(f"{len(verbatim):,} questions stand verbatim in passages (first: {query_id!r} in {item_id!r})")
    if exact:
        said.append(f"{len(exact):,} pairs of passages have the same words (first: {exact[0][0]!r} and {exact[0][1]!r})")
    return said
