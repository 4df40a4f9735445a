"""What the base of rerankers does: batches by length, blends, keeps signals, cuts; compared with loops."""

from __future__ import annotations

import numpy as np
import pytest

from core.engines import Brief, documents, terms
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import EngineError, QueryError

ITEMS = documents(
    [
        "alpha beta gamma delta",
        "alpha",
        "beta",
        "alpha beta",
        "gamma gamma gamma",
        "alpha beta gamma",
        "nothing to see",
        "beta alpha",
    ]
)


def results(rows, scores=None):
    scores = scores or [float(len(rows) - place) for place in range(len(rows))]
    return [
        RetrievalResult(item=ITEMS[row], score=score, signals={"e.score": score, "e.rank": place})
        for place, (row, score) in enumerate(zip(rows, scores, strict=True), 1)
    ]


def own_score(query, item):
    return len(terms(query) & terms(item.text)) / (1 + len(terms(item.text)))


def plain_rerank(query, hits, blend):
    """(id, score) best first, ties by incoming place."""
    own = [own_score(query, hit.item) for hit in hits]
    if blend == "replace":
        final = own
    elif blend == "rank":
        ranks = [1 + sum(other > mine for other in own) + (own.count(mine) - 1) / 2 for mine in own]
        final = [1 / (61 + at) + 1 / (60 + ranks[at]) for at in range(len(hits))]
    else:

        def scaled(values):
            low, high = min(values), max(values)
            return [(value - low) / (high - low) if high > low else 1.0 for value in values]

        final = [a + b for a, b in zip(scaled([hit.score for hit in hits]), scaled(own), strict=True)]
    order = sorted(range(len(hits)), key=lambda at: (-final[at], at))
    return [(hits[at].item.item_id, final[at]) for at in order]


@pytest.mark.parametrize("blend", ["replace", "rank", "score"])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_reranking_is_what_a_loop_does(blend, batch_size, seed):
    random = np.random.default_rng(seed)
    queries = ["alpha beta", "gamma", "delta alpha", "unseen"]
    lists = [results(random.permutation(8)[: random.integers(0, 9)].tolist()) for _ in queries]
    found = Brief(blend=blend, batch_size=batch_size).rerank(queries, lists, 8)
    for query, hits, ranked in zip(queries, lists, found, strict=True):
        wanted = plain_rerank(query, hits, blend) if hits else []
        assert [hit.item.item_id for hit in ranked] == [item_id for item_id, _ in wanted]
        assert [hit.score for hit in ranked] == pytest.approx([score for _, score in wanted])


class Watched(Brief):
    """Remembers the pairs that it scored."""

    name = "watched"

    def score_pairs(self, queries, items):
        self.pairs = [*getattr(self, "pairs", []), *((query, item.item_id) for query, item in zip(queries, items, strict=True))]
        return super().score_pairs(queries, items)


def test_a_pair_that_stands_in_several_lists_is_scored_once():
    reranker = Watched(batch_size=2)
    queries, lists = ["alpha", "alpha", "beta"], [results([0, 1, 2, 3]), results([3, 1, 5]), results([1, 3])]
    found = reranker.rerank(queries, lists, 9)
    assert len(reranker.pairs) == len(set(reranker.pairs)) == 7
    alone = [Watched().rerank([query], [hits], 9)[0] for query, hits in zip(queries, lists, strict=True)]
    assert found == alone


@pytest.mark.parametrize("values", [[1.0], np.array([[1.0], [2.0]]), np.array([1.0, 1e300]), np.array([1.0, np.nan]), 1.0])
def test_scores_that_are_not_one_real_number_of_32_bits_per_pair_are_refused(values):
    class Gives(Brief):
        name = "gives"

        def score_pairs(self, queries, items):
            return {"score": values}

    with pytest.raises(EngineError, match=r"Gives.*2 pairs"):
        Gives().rerank(["a"], [results([0, 1])], 2)


@pytest.mark.parametrize(
    ("queries", "k", "message"), [(["a", "b"], 3, "1 result lists are given for 2 queries"), (["a"], 0, "k must be")]
)
def test_lists_that_do_not_line_up_and_no_k_are_refused(queries, k, message):
    with pytest.raises(QueryError, match=message):
        Brief().rerank(queries, [[]], k)
