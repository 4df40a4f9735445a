"""What the base of rerankers does: batches by length, blends, keeps signals, cuts; compared with loops."""

from __future__ import annotations

import numpy as np
import pytest

from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.reranker import BaseReranker
from nlp_retrieval.errors import ConfigurationError, EngineError, QueryError

from .engines import Brief, documents, terms

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
        places = sorted(range(len(hits)), key=lambda at: (-own[at], at))
        final = [1 / (61 + at) + 1 / (61 + places.index(at)) for at in range(len(hits))]
    else:

        def scaled(values):
            low, high = min(values), max(values)
            return [(value - low) / (high - low) if high > low else 1.0 for value in values]

        final = [a + b for a, b in zip(scaled([hit.score for hit in hits]), scaled(own), strict=True)]
    order = sorted(range(len(hits)), key=lambda at: (-final[at], at))
    return [(hits[at].item.item_id, final[at]) for at in order]


@pytest.mark.parametrize("blend", ["replace", "rank", "score"])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_reranking_is_what_a_loop_does(blend, batch_size, seed):
    random = np.random.default_rng(seed)
    queries = ["alpha beta", "gamma", "delta alpha", "unseen"]
    lists = [results(random.permutation(8)[: random.integers(0, 9)].tolist()) for _ in queries]
    found = Brief(blend=blend, batch_size=batch_size).rerank(queries, lists, 8)
    for query, hits, ranked in zip(queries, lists, found, strict=True):
        wanted = plain_rerank(query, hits, blend) if hits else []
        assert [hit.item.item_id for hit in ranked] == [item_id for item_id, _ in wanted]
        assert [hit.score for hit in ranked] == pytest.approx([score for _, score in wanted])


def test_the_size_of_a_batch_changes_nothing():
    lists = [results(list(range(8))), results([5, 2])]
    found = [Brief(batch_size=size).rerank(["alpha beta", "beta"], lists, 8) for size in (1, 2, 5, 100)]
    assert found[0] == found[1] == found[2] == found[3]


def test_signals_are_kept_and_those_of_the_reranker_join_them():
    hits = results([0, 3, 1])
    for hit in Brief().rerank(["alpha beta"], [hits], 3)[0]:
        before = next(other for other in hits if other.item == hit.item)
        shared = len(terms("alpha beta") & terms(hit.item.text))
        assert hit.signals == before.signals | {"brief.score": own_score("alpha beta", hit.item), "brief.shared": shared}
        assert hit.score == hit.signals["brief.score"]


def test_a_signal_that_a_hit_lacks_is_not_made_up():
    hits = [*results([0]), RetrievalResult(item=ITEMS[1], score=0.5, signals={"other.score": 0.5})]
    found = {hit.item.item_id: hit.signals for hit in Brief().rerank(["alpha"], [hits], 2)[0]}
    assert set(found["d0"]) == {"e.score", "e.rank", "brief.score", "brief.shared"}
    assert set(found["d1"]) == {"other.score", "brief.score", "brief.shared"}


def test_what_was_passed_is_not_changed():
    hits = results([0, 3, 1])
    before = [hit.model_dump() for hit in hits]
    Brief().rerank(["alpha beta"], [hits], 1)
    assert [hit.model_dump() for hit in hits] == before


def test_results_are_cut_to_k():
    assert [len(one) for one in Brief().rerank(["alpha", "beta"], [results([0, 1, 2]), results([3])], 2)] == [2, 1]


def test_nothing_to_rerank():
    assert Brief().rerank([], [], 3) == []
    assert Brief().rerank(["a", "b"], [[], []], 3) == [[], []]


def test_long_items_are_scored_together():
    seen = []

    class Watch(Brief):
        name = "watch"

        def score_pairs(self, queries, items):
            seen.append([len(item.content) for item in items])
            return super().score_pairs(queries, items)

    Watch(batch_size=3).rerank(["alpha", "beta"], [results([0, 1, 2]), results([3, 4, 5, 6])], 9)
    flat = [length for batch in seen for length in batch]
    assert flat == sorted(flat, reverse=True)
    assert [len(batch) for batch in seen] == [3, 3, 1]


class Returns(BaseReranker):
    name = "returns"

    def __init__(self, values: list) -> None:
        self.values = values

    def score_pairs(self, queries, items):
        return {"score": np.array(self.values, np.float64)}


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], [], [1.0, float("nan")], [float("inf"), 1.0]])
def test_a_reranker_that_breaks_its_contract_is_named(values):
    with pytest.raises(EngineError, match=r"Returns.*2 pairs"):
        Returns(values).rerank(["a"], [results([0, 1])], 2)


def test_a_reranker_without_a_score_column_breaks_its_contract():
    class Without(Brief):
        name = "without"

        def score_pairs(self, queries, items):
            return {"part": np.zeros(len(items))}

    with pytest.raises(EngineError, match="score"):
        Without().rerank(["a"], [results([0, 1])], 2)


@pytest.mark.parametrize("lists", [[], [[]], [[], [], []]])
def test_lists_that_do_not_line_up_are_an_error(lists):
    with pytest.raises(QueryError, match=f"{len(lists)} result lists are given for 2 queries"):
        Brief().rerank(["a", "b"], lists, 3)


@pytest.mark.parametrize("k", [0, -1, "5", True, 2.5, None])
def test_k_is_a_positive_integer(k):
    with pytest.raises(QueryError, match="k must be"):
        Brief().rerank(["a"], [[]], k)


def test_an_unknown_blend_is_refused():
    with pytest.raises(ConfigurationError, match="blend='mean'"):
        Brief(blend="mean")


def test_titles_count_as_text():
    item = SearchableItem(item_id="t", content="x", metadata={"title": "alpha"})
    (hit,) = Brief().rerank(["alpha"], [[RetrievalResult(item=item, score=1.0)]], 1)[0]
    assert hit.signals["brief.shared"] == 1
