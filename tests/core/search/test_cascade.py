"""Several rerankers one after another, the depth of every stage, and a searcher as a retriever of another one."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.engines import Brief, SplitAt, TermCount, TermShare, documents
from core.ranked import batch_of, ranked_lists
from nlp_retrieval import Bm25Retriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.joining import WeightedSum
from nlp_retrieval.errors import ConfigurationError, QueryError

random = np.random.default_rng(3)
WORDS = "alpha beta gamma delta epsilon zeta eta theta".split()
ITEMS = documents([" ".join(random.choice(WORDS, random.integers(1, 7))) for _ in range(50)])
QUERIES = [" ".join(random.choice(WORDS, 3)) for _ in range(6)]


class Lengthy(Brief):
    """Prefers items that say much."""

    name = "lengthy"

    def score_pairs(self, queries, items):
        return {"score": np.array([len(item.text) for item in items], np.float64)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cascade") / "index"
    Searcher([TermCount(), TermShare()]).index(ITEMS, folder)
    return folder


def ids(results):
    return [[hit.item.item_id for hit in hits] for hits in results]


# the first candidates of a list, and the rest below them


@given(lists=st.lists(ranked_lists(), min_size=1, max_size=4), depth=st.integers(1, 9) | st.just(2**70))
def test_what_is_cut_off_follows_in_its_order_below_every_score(lists, depth):
    batch = batch_of(lists, "own")
    joined = batch.head(depth).followed_by(batch.below(depth))
    assert joined.rows.tolist() == batch.rows.tolist()
    assert joined.signals.keys() == batch.signals.keys()
    assert all(np.array_equal(joined.signals[key], batch.signals[key]) for key in batch.signals)
    for begin, end in zip(joined.offsets[:-1], joined.offsets[1:], strict=True):
        assert np.array_equal(joined.scores[begin:end][:depth], batch.scores[begin:end][:depth])
        assert (np.diff(joined.scores[begin:end][max(depth - 1, 0) :]) < 0).all()


# cascades


def by_hand(path, retrievers, stages):
    """(id, score) and signals of each reranker over the first results of what came before, with the rest behind them."""
    lists = []
    for query, hits in zip(QUERIES, Searcher(retrievers, depth=100).open(path).search(QUERIES, 100), strict=True):
        ranked = [(hit.item, dict(hit.signals)) for hit in hits]
        for reranker, depth in stages:
            columns = reranker.score_pairs([query] * len(ranked[:depth]), [item for item, _ in ranked[:depth]])
            scored = [
                (item, signals | {f"{reranker.name}.{key}": column[number] for key, column in columns.items()})
                for number, (item, signals) in enumerate(ranked[:depth])
            ]
            scored.sort(key=lambda pair: (-pair[1][f"{reranker.name}.score"], int(pair[0].item_id[1:])))
            ranked = scored + ranked[depth:]
        lists.append([(item.item_id, signals) for item, signals in ranked])
    return lists


@pytest.mark.parametrize("depths", [(None, None), (30, 5)])
@pytest.mark.parametrize("retrievers", [[TermCount()], [TermCount(), TermShare()]])
def test_each_reranker_reorders_the_first_of_the_list_before(path, retrievers, depths):
    stages = [Brief(), Lengthy()]
    depth = {reranker.name: n for reranker, n in zip(stages, depths, strict=True) if n is not None}
    searcher = Searcher(retrievers, reranker=stages, depth=dict.fromkeys(["terms", "share"][: len(retrievers)], 100) | depth)
    searcher.open(path)
    wanted = by_hand(path, retrievers, [(one, n or 100) for one, n in zip(stages, depths, strict=True)])
    for k in (1, 10, 100):
        found = searcher.search(QUERIES, k)
        assert [[(hit.item.item_id, hit.signals) for hit in hits] for hits in found] == [ranked[:k] for ranked in wanted]
        for hits in found:
            scores = [hit.score for hit in hits]
            assert scores == sorted(scores, reverse=True)


# depths


def test_each_retriever_gives_as_many_as_its_depth(path):
    found = Searcher([TermCount(), TermShare()], depth={"terms": 3, "share": "all"}).open(path).search(QUERIES, 50)
    for hits in found:
        assert sum("terms.rank" in hit.signals for hit in hits) == 3
        assert sum("share.rank" in hit.signals for hit in hits) > 3
    others = Searcher([TermCount(), TermShare()], depth={"terms": 3})
    assert (others.depth_for(10, "terms"), others.depth_for(10, "share"), others.depth_for(500, "share")) == (3, 100, 500)


class Special(Searcher):
    name = "special"


class Other(Bm25Retriever):
    name = "bm25"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": {"term": 3}}, r"no retriever or reranker 'term'; did you mean 'terms'"),
        ({"reranker": Brief() % 5, "depth": {"brief": 3}}, r"'brief' has two depths, 3 and % 5"),
        ({"retrievers": [Special(["bm25"])]}, r"retrievers: 'special' cannot be one; of searchers, only a Searcher can"),
        ({"retrievers": [Other()]}, r"test_cascade:Other is called 'bm25', as .*Bm25Retriever is, .* a name of its own"),
        ({"reranker": [{"name": "overlap", "depth": 5}]}, r"reranker\[0\]: overlap has no parameter 'depth'"),
    ],
)
def test_what_cannot_be_a_cascade_is_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        Searcher(**{"retrievers": [TermCount()]} | settings)


# searchers among retrievers


def inner(**changed):
    return Searcher([TermCount(), TermShare()], reranker=Brief(), **changed)


def test_a_searcher_gives_what_it_finds_alone(path):
    outer = Searcher([inner()], depth=20).open(path)
    wanted, found = inner().open(path).search(QUERIES, 20), outer.search(QUERIES, 20)
    assert ids(found) == ids(wanted)
    assert [[hit.score for hit in hits] for hits in found] == [[hit.score for hit in hits] for hits in wanted]
    assert found[0][0].signals == {
        "searcher.score": wanted[0][0].score,
        "searcher.rank": 1.0,
        **{f"searcher.{key}": value for key, value in wanted[0][0].signals.items()},
    }
    assert outer.stages == ["searcher", "items"]


def test_it_is_written_and_read_as_a_retriever():
    outer = Searcher([Searcher(["bm25"], reranker="overlap", depth=7), "bm25"], fusion="weighted_sum")
    assert outer.config["retrievers"][0] == Searcher(["bm25"], reranker="overlap", depth=7).config
    config = yaml.safe_load(yaml.safe_dump(outer.to_config()))
    assert Searcher.from_config(config) == outer
    by_hand = Searcher(
        [{"name": "searcher", "retrievers": ["bm25"], "reranker": ["overlap"], "depth": {"bm25": 7}}, "bm25"],
        fusion=WeightedSum(),
    )
    assert by_hand == outer
    assert by_hand.fingerprint == outer.fingerprint
    assert repr(outer) == (
        "Searcher(retrievers=[Searcher(retrievers=[Bm25Retriever()], reranker=OverlapReranker(), depth=7), Bm25Retriever()], "
        "fusion=WeightedSum())"
    )


def test_it_explains_by_its_strongest_reason(tmp_path):
    pages = [
        SearchableItem(item_id="fox", content="The Red Fox hunts the Blue Vole.", metadata={"title": "Red Fox"}),
        SearchableItem(item_id="vole", content="A vole.", metadata={"title": "Blue Vole"}),
    ]
    graph = LinkGraphRetriever([Bm25Retriever()])
    plain, outer = Searcher([graph]), Searcher([Searcher([graph]), Bm25Retriever()])
    outer.index(pages, tmp_path / "index")
    plain.open(tmp_path / "index")
    found, alone = outer.search("red fox", 2)[0], plain.search("red fox", 2)[0]
    reasons = {reason["link_graph"].item.item_id: reason["link_graph"] for reason in plain.explain("red fox", alone)}
    assert len(reasons) == 2
    for hit, by_label in zip(found, outer.explain("red fox", found), strict=True):
        assert by_label["searcher"] == reasons[hit.item.item_id]
    with pytest.raises(QueryError, match="function: the sub-queries of query 1 must be"):
        ((lambda _: 5) >> graph).open(tmp_path / "index").explain("red fox", alone)


def test_without_a_retriever_that_explains_no_query_is_processed_again(path, monkeypatch):
    searcher = Searcher([Searcher([TermCount()])], processor=SplitAt())
    searcher.open(path)
    (hits,) = searcher.search("alpha", 2)
    monkeypatch.setattr(SplitAt, "process", None)
    assert searcher.explain("alpha", hits) == [{}, {}]
