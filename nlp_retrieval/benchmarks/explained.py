"""Queries of a benchmark with the chains of links behind their hits, for searchers that can explain them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from nlp_retrieval.benchmarks.benchmarkable import Entry
from nlp_retrieval.benchmarks.cost import Searching
from nlp_retrieval.benchmarks.filters import filters_for, search_each
from nlp_retrieval.benchmarks.results import ExplainedHit, ExplainedQuery
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.benchmarks.trec_run import TrecRun
from nlp_retrieval.core.explanation import Explanation
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.evaluation.evaluator import Evaluation

_QUERIES = 5


@runtime_checkable
class Explains(Protocol):
    """A searcher that may be able to explain its results."""

    @property
    def explains(self) -> bool: ...

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]: ...

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> list[dict[str, Explanation]]: ...


def explained_queries(
    searchers: Mapping[str, Entry],
    evaluations: Mapping[str, Evaluation],
    settings: BenchmarkSettings,
    qrels: Mapping[str, Mapping[str, int]],
    baseline: str,
    check: Callable[[Searching], None],
    own: Sequence[str | None],
) -> list[ExplainedQuery]:
    """Explain, for each searcher that can, the queries where it gains most recall over the baseline.

    Args:
        searchers: by name; opened.
        evaluations: by the same names.
        settings: settings of the benchmark; its first cutoff is used for the recall and for the number of hits explained.
        qrels: grades by query and item id.
        baseline: name of the searcher to compare with.
        check: raises an error if a searcher does not search the corpus it was measured on.
        own: per query, the item that is the query itself and does not count; None if there is none.

    Returns:
        At most five queries per searcher; only those with a link to one of the hits.
    """
    explained: list[ExplainedQuery] = []
    for name, searcher in searchers.items():
        if isinstance(searcher, TrecRun) or not isinstance(searcher, Explains) or not searcher.explains:
            continue
        try:
            check(searcher)
            queries_of_searcher = _explained(name, searcher, evaluations, settings, qrels, baseline, own)
            check(searcher)
            explained += queries_of_searcher
        except Exception as error:
            warnings.warn(f"{name}: cannot say why it found what it found ({error})", RetrievalWarning, stacklevel=2)
    return explained


def _explained(
    name: str,
    searcher: Explains,
    evaluations: Mapping[str, Evaluation],
    settings: BenchmarkSettings,
    qrels: Mapping[str, Mapping[str, int]],
    baseline: str,
    own: Sequence[str | None],
) -> list[ExplainedQuery]:
    queries, k = settings.queries, settings.k_values[0]
    measure = f"recall@{k}"
    explained: list[ExplainedQuery] = []
    recall = evaluations[name].per_query[measure]
    gain = recall - evaluations[baseline].per_query[measure]
    chosen = np.lexsort((np.arange(len(queries)), -recall, -gain))[:_QUERIES].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # the search over all queries has already warned
        filters = filters_for(searcher, settings.filters)
        texts = [queries[position].text for position in chosen]
        results = search_each(searcher, texts, k + any(own), [filters[position] for position in chosen])
    for position, found in zip(chosen, results, strict=True):
        query = queries[position]
        hits = [hit for hit in found if hit.item.item_id != own[position]][:k]
        explanations = searcher.explain(query.text, hits)
        if any(explanation.steps for by_retriever in explanations for explanation in by_retriever.values()):
            relevant = qrels.get(query.query_id, {})
            explained.append(
                ExplainedQuery(
                    configuration=name,
                    query=query.text,
                    recall=float(recall[position]),
                    baseline_recall=float(evaluations[baseline].per_query[measure][position]),
                    hits=[
                        ExplainedHit(hit.item, relevant.get(hit.item.item_id, 0) > 0, list(by_retriever.values()))
                        for hit, by_retriever in zip(hits, explanations, strict=True)
                    ],
                )
            )
    return explained
