"""A result of the multi-hop searcher is explained by the hop that found it first, and by what the retriever says of it."""

from __future__ import annotations

import pytest
from linked_pages import two_hops

from nlp_retrieval.benchmarks.entrants import Explains
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import IndexMissingError, QueryError, RetrievalWarning
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever
from nlp_retrieval.systems.hover.programs import HoverMultiHop
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher

from .conftest import plays


def test_each_result_is_explained_by_the_first_hop_that_found_it_and_its_query(played, model, index, claims):
    text = claims[3].text
    asked = HoverMultiHop([Bm25Retriever()], model()).open(index)(claim=text).queries
    single = Searcher([Bm25Retriever()]).open(index)
    places = [[hit.item.item_id for hit in single.search(query, 7)[0]] for query in asked]
    searcher = MultiHopSearcher([Bm25Retriever()], model()).open(index)
    assert isinstance(searcher, Explains)
    assert searcher.explains
    (results,) = searcher.search(text)
    calls = played.calls
    told = searcher.explain(text, results)
    assert played.calls == calls, "what was answered is not asked again"
    assert {next(iter(one)) for one in told} >= {"hop1", "hop2"}
    for hit, one in zip(results, told, strict=True):
        hop = next(number for number, found in enumerate(places, start=1) if hit.item.item_id in found)
        rank = places[hop - 1].index(hit.item.item_id) + 1
        ((label, explanation),) = one.items()
        assert label == f"hop{hop}"
        assert str(explanation) == f'{hit.item.title}: hop {hop} asked "{asked[hop - 1]}": rank {rank}'
        assert explanation.item == hit.item
        assert explanation.strength == 1 / rank


def test_a_retriever_that_can_tell_says_why_it_found_it_for_that_query(played, model, tmp_path):
    corpus = two_hops()["title_mentions"]
    searcher = MultiHopSearcher([LinkGraphRetriever([Bm25Retriever()], links=[corpus.links])], model(), hops=1)
    searcher.index(corpus.items, tmp_path)
    (results,) = searcher.search(corpus.query)
    told = {hit.item.item_id: one for hit, one in zip(results, searcher.explain(corpus.query, results), strict=True)}
    assert list(told["d1"]) == ["hop1", "link_graph"]
    (step,) = told["d1"]["link_graph"].steps
    assert (step.source.item_id, step.target.item_id) == ("d0", "d1")


def test_results_in_any_number_and_order_are_explained(played, model, index, claims):
    searcher = MultiHopSearcher([Bm25Retriever()], model()).open(index)
    (results,) = searcher.search(claims[0].text)
    told = searcher.explain(claims[0].text, results)
    assert searcher.explain(claims[0].text, results[::-3]) == told[::-3]
    assert searcher.explain(claims[0].text, []) == []


def test_a_result_that_would_not_be_found_so_again_is_not_explained(played, model, index, claims):
    def without_summaries(body):
        return 500 if "`summary` (" in body["messages"][0]["content"] else plays(body)

    played.answer = without_summaries
    searcher = MultiHopSearcher([Bm25Retriever()], model(retries=0)).open(index)
    with pytest.warns(RetrievalWarning, match="no usable answer"):
        (degraded,) = searcher.search(claims[0].text)
    played.answer = plays
    (whole,) = searcher.search(claims[0].text)
    assert all(searcher.explain(claims[0].text, degraded))
    played.answer = without_summaries
    other = MultiHopSearcher([Bm25Retriever()], model(retries=0, temperature=0.5)).open(index)
    with pytest.warns(RetrievalWarning, match="no usable answer"):
        told = other.explain(claims[0].text, whole)
    assert [bool(one) for one in told] == ["hop1.rank" in hit.signals for hit in whole]
    assert not all(told)


def test_what_is_not_of_this_index_is_an_error(played, model, index, claims, tmp_path):
    searcher = MultiHopSearcher([Bm25Retriever()], model())
    with pytest.raises(IndexMissingError):
        searcher.explain("red fox", [])
    searcher.index(two_hops()["hyperlinks"].items, tmp_path)
    (results,) = Searcher([Bm25Retriever()]).open(index).search(claims[0].text, 3)
    with pytest.raises(QueryError, match="no item of this index"):
        searcher.explain(claims[0].text, results)
