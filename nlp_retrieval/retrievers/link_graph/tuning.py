"""Fitting the weights of a link graph's evidence to judged queries, and measuring the gain.

The loss is listwise: minus the log-probability that a gold passage ranks before all candidates that are not gold (a softmax
over one gold and all others, as in ListNet, Cao et al., ICML 2007). It is convex, so there is one optimum, which is pulled
towards the retriever's present weights, the more the fewer queries there are. Reported measures are out of fold: each query is
ranked by weights fitted without its fold and its family.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import DependencyError, GoldError
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.gold import gold_of
from nlp_retrieval.evaluation.tuning import TuningReport, fitted_by_fold, folds_of, gold_among
from nlp_retrieval.retrievers.link_graph.retriever import GraphCandidates, LinkGraphRetriever
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

_KINDS = list(DEFAULT_WEIGHTS)
_PULL = 1.0  # strength of the present weights, in queries


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
    groups = [query.family for query in queries]
    fold_of = folds_of(groups, folds, seed)
    generation = index_path if isinstance(index_path, Generation) else open_generation(index_path)
    opened = retriever.open(generation)
    titles, item_ids = generation.items.titles(), generation.items.ids()
    judged = gold_of(queries, gold)
    evaluator = RetrievalEvaluator(judged, item_ids, titles if any(titles) else None, k_values, measures=measures)
    pools = _pools(opened, [query.text for query in queries], evaluator.k_values[-1])
    golden, unreachable = gold_among(judged, item_ids, titles, [pool.rows[: len(pool.evidence["pagerank"])] for pool in pools])

    def fit(chosen: Rows) -> dict[str, float]:
        return fit_weights([pools[number] for number in chosen], [golden[number] for number in chosen], retriever.weights)

    fold_weights = fitted_by_fold(fit, fold_of)
    return TuningReport(
        weights=fit(np.arange(len(pools))),
        fold_weights=fold_weights,
        before=_evaluated(evaluator, pools, [retriever.weights] * len(pools)),
        out_of_fold=_evaluated(evaluator, pools, [fold_weights[fold] for fold in fold_of]),
        groups=groups,
        folds=fold_of,
        unreachable=unreachable,
    )


def fit_weights(
    pools: Sequence[GraphCandidates], golden: Sequence[NDArray[np.bool_]], start: dict[str, float]
) -> dict[str, float]:
    """Fit weights to pools of candidates."""
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
    """Return the loss that is minimised, and its gradient."""
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


def _evaluated(evaluator: RetrievalEvaluator, pools: list[GraphCandidates], weights: list[dict[str, float]]) -> Evaluation:
    depth = evaluator.k_values[-1]
    return evaluator.evaluate_lists(
        [pool.ranked(chosen, depth)[0].tolist() if len(pool.rows) else [] for pool, chosen in zip(pools, weights, strict=True)]
    )
