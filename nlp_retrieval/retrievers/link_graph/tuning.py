"""Fitting the weights of a link graph's evidence to judged queries, and measuring the gain.

The loss is listwise: minus the log-probability that a gold passage ranks before all candidates that are not gold (a softmax
over one gold and all others, as in ListNet, Cao et al., ICML 2007). It is convex, so there is one optimum, which is pulled
towards the retriever's present weights, the more the fewer queries there are. Reported measures are out of fold: each query is
ranked by weights fitted without its fold and its family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import DependencyError, GoldError
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.gold import gold_of, relevant_documents, rows_of
from nlp_retrieval.evaluation.resampling import bootstrap_interval, family_numbers
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates, LinkGraphRetriever
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

__all__ = ["TuningReport", "fit_weights", "tune"]

_KINDS = list(DEFAULT_WEIGHTS)
_PULL = 1.0  # strength of the present weights, in queries


@dataclass(frozen=True)
class TuningReport:
    """Result of tuning.

    Args:
        weights: fitted to all queries, for use on others.
        fold_weights: those of each fold, fitted without it.
        before: measures with the retriever's present weights.
        out_of_fold: measures with each query ranked by the weights of its fold.
        families: family of each query.
        folds: per query, its fold.
        unreachable: gold passages outside the walk's pool, which no weights can rank.

    Examples:
        >>> retriever = LinkGraphRetriever(["bm25"])
        >>> report = Searcher([retriever]).index(items, "index")
        >>> tuned = tune(retriever, "index", queries, gold, folds=2)
        >>> tuned.gain("recall@2")[0]
        0.0
    """

    weights: dict[str, float]
    fold_weights: list[dict[str, float]]
    before: Evaluation
    out_of_fold: Evaluation
    families: list[str | None]
    folds: NDArray[np.int64]
    unreachable: int

    def gain(self, measure: str) -> tuple[float, float, float]:
        """Return the gain of a measure out of fold, and its interval over families."""
        difference = self.out_of_fold.per_query[measure] - self.before.per_query[measure]
        return float(difference.mean()), *bootstrap_interval(difference, self.families, bounds=(-1, 1))


def tune(
    retriever: LinkGraphRetriever,
    index_path: str | Path | Generation,
    queries: Sequence[Query],
    gold: Sequence[Gold],
    k_values: Sequence[int] = (2, 5, 10, 21),
    folds: int = 5,
    seed: int = 0,
    *,
    measures: Sequence[str] | None = None,
) -> TuningReport:
    """Fit the weights of a link graph retriever by cross-validation over families.

    Args:
        retriever: fitting starts at its weights, and is pulled towards them.
        index_path: an index directory that holds it, or a generation of one that is already open.
        queries: judged queries; those of one ``family`` stay in one fold.
        gold: one per query.
        k_values: cutoffs of the report, if ``measures`` are not given.
        folds: at least 2; at most as many as there are families.
        seed: of the assignment of families to folds.
        measures: names of the measures of the report.

    Raises:
        GoldError: gold that is missing, repeated or not in the corpus, or fewer families than folds.
        DependencyError: SciPy is not installed.
        IndexStateError: the index is missing, or does not fit the retriever.

    Examples:
        >>> retriever = LinkGraphRetriever(["bm25"])
        >>> report = Searcher([retriever]).index(items, "index")
        >>> report = tune(retriever, "index", queries, gold, folds=2)
        >>> report.before.means()["recall@2"], sorted(report.weights)[:2]
        (1.0, ['chain', 'chain_against'])
    """
    if folds < 2:
        raise GoldError(f"folds={folds}; at least 2 are needed, so that some queries are held out")
    numbers = family_numbers([query.family for query in queries])
    if numbers.max(initial=-1) + 1 < folds:
        raise GoldError(
            f"{numbers.max(initial=-1) + 1} families of queries for {folds} folds; give more queries or fewer folds"
        )
    generation = index_path if isinstance(index_path, Generation) else open_generation(index_path)
    opened = retriever.open(generation)
    titles = generation.items.titles()
    item_ids = generation.items.ids()
    judged = gold_of(queries, gold)
    evaluator = RetrievalEvaluator(judged, item_ids, titles if any(titles) else None, k_values, measures=measures)
    pools = _pools(opened, [query.text for query in queries], evaluator.k_values[-1])
    golden, unreachable = _gold_masks(judged, item_ids, titles, pools)
    fold_of = np.random.default_rng(seed).permutation(np.arange(numbers.max() + 1) % folds)[numbers]
    weights = [fit_weights(*_chosen(pools, golden, fold_of != fold), retriever.weights) for fold in range(folds)]
    return TuningReport(
        weights=fit_weights(pools, golden, retriever.weights),
        fold_weights=weights,
        before=_evaluated(evaluator, pools, [retriever.weights] * len(pools)),
        out_of_fold=_evaluated(evaluator, pools, [weights[fold] for fold in fold_of]),
        families=[query.family for query in queries],
        folds=fold_of,
        unreachable=unreachable,
    )


def fit_weights(
    pools: Sequence[GraphCandidates], golden: Sequence[NDArray[np.bool_]], start: dict[str, float]
) -> dict[str, float]:
    """Fit weights to pools of candidates.

    Args:
        pools: one per query.
        golden: per query, True for the gold ones among the candidates with evidence.
        start: weights that the fit is pulled towards.

    Raises:
        DependencyError: SciPy is not installed.
        GoldError: no candidate is gold.
    """
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise DependencyError("fitting weights needs SciPy: pip install scipy") from None
    useful = [query for query, mask in enumerate(golden) if mask.any() and not mask.all()]
    if not useful:
        raise GoldError("no gold passage is among the candidates, so there is nothing to fit; raise pool or depth")
    size = max(len(golden[query]) for query in useful)
    evidence = np.zeros((len(useful), size, len(_KINDS)))
    gold, other = np.zeros((len(useful), size), bool), np.zeros((len(useful), size), bool)
    for number, query in enumerate(useful):
        n_candidates = len(golden[query])
        evidence[number, :n_candidates] = np.stack([pools[query].evidence[kind] for kind in _KINDS], axis=1)
        gold[number, :n_candidates], other[number, :n_candidates] = golden[query], ~golden[query]
    scale = evidence[gold | other].std(axis=0)
    used = scale > 1e-9  # constant evidence has no weight to fit
    evidence[..., used] /= scale[used]
    begin = np.array([start[kind] for kind in _KINDS]) * scale
    pull = _PULL / len(useful)
    fitted = minimize(listwise_loss, begin, (evidence, gold, other, begin, pull), jac=True, method="L-BFGS-B").x
    return {
        kind: float(weight / size) if usable else start[kind]
        for kind, weight, size, usable in zip(_KINDS, fitted, scale, used, strict=True)
    }


def listwise_loss(
    weights: Scores, evidence: Scores, gold: NDArray[np.bool_], other: NDArray[np.bool_], begin: Scores, pull: float
) -> tuple[float, Scores]:
    """Return the loss that is minimised, and its gradient.

    Args:
        weights: ``[kinds]``.
        evidence: ``[queries, candidates, kinds]``; the padding of short lists does not count.
        gold: ``[queries, candidates]``, which are gold.
        other: ``[queries, candidates]``, which are not; every query has one.
        begin: ``[kinds]``, weights that the fit is pulled towards.
        pull: strength of that pull.
    """
    scores = evidence @ weights
    best = np.where(other, scores, -np.inf).max(axis=1, keepdims=True)
    shares = np.where(other, np.exp(np.where(other, scores - best, 0.0)), 0.0)
    total = shares.sum(axis=1, keepdims=True)
    behind = best + np.log(total) - scores  # for each gold candidate, its distance behind all others together
    missed = np.where(gold, 1.0 / (1.0 + np.exp(-np.clip(behind, -500, 500))), 0.0)
    flow = missed.sum(axis=1, keepdims=True) * shares / total - missed
    value = np.where(gold, np.logaddexp(0.0, behind), 0.0).sum() / gold.sum() + pull * ((weights - begin) ** 2).sum()
    slope: Scores = np.einsum("qc,qcw->w", flow, evidence) / gold.sum() + 2 * pull * (weights - begin)
    return float(value), slope


def _pools(opened: LinkGraphRetriever, texts: Sequence[str], at_least: int) -> list[GraphCandidates]:
    distinct = [text for text in dict.fromkeys(texts) if not has_no_words(text)]
    pool_of = dict(zip(distinct, opened.pools(distinct, at_least=at_least), strict=True))
    nothing = np.zeros(0)
    empty = GraphCandidates(np.zeros(0, np.int64), nothing, nothing, dict.fromkeys(_KINDS, nothing), {})
    return [pool_of.get(text, empty) for text in texts]


def _gold_masks(
    judged: Sequence[Gold], item_ids: Sequence[str], titles: Sequence[str], pools: Sequence[GraphCandidates]
) -> tuple[list[NDArray[np.bool_]], int]:
    """Per query, a mask of the gold ones among the candidates with evidence; and the number of other gold documents."""
    documents = relevant_documents(judged)
    places = rows_of({key for keys in documents for key in keys}, item_ids, titles)
    golden, unreachable = [], 0
    for keys, pool in zip(documents, pools, strict=True):
        rows = pool.rows[: len(pool.evidence["pagerank"])]
        golden.append(np.isin(rows, [row for key in keys for row in places.get(key, [])]))
        unreachable += sum(not np.isin(places.get(key, []), rows).any() for key in keys)
    return golden, unreachable


def _chosen(
    pools: list[GraphCandidates], golden: list[NDArray[np.bool_]], chosen: NDArray[np.bool_]
) -> tuple[list[GraphCandidates], list[NDArray[np.bool_]]]:
    return [pools[number] for number in np.flatnonzero(chosen)], [golden[number] for number in np.flatnonzero(chosen)]


def _evaluated(evaluator: RetrievalEvaluator, pools: list[GraphCandidates], weights: list[dict[str, float]]) -> Evaluation:
    depth = evaluator.k_values[-1]
    rows = np.full((len(pools), depth), -1, np.int64)
    for number, (pool, chosen) in enumerate(zip(pools, weights, strict=True)):
        if len(pool.rows):
            ranked, _, _ = pool.ranked(chosen, depth)
            rows[number, : len(ranked)] = ranked
    return evaluator.evaluate(rows)
