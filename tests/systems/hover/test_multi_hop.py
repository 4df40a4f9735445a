"""Three hops: alone as a program, in a batch as a searcher, with the same documents, whatever the endpoint does."""

from __future__ import annotations

import json

import pytest

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import CompiledProgram
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.systems.hover.programs import HoverMultiHop
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher

from .conftest import plays


def ids(results):
    return [hit.item.item_id for hit in results]


def test_the_searcher_finds_for_a_batch_what_the_program_finds_for_each(played, model, index, claims):
    texts = [claim.text for claim in claims[:10]]
    program = HoverMultiHop([Bm25Retriever()], model()).open(index)
    predictions = [program(claim=text) for text in texts]
    found = MultiHopSearcher([Bm25Retriever()], model()).open(index).search(texts, 21)
    assert [ids(results) for results in found] == [ids(prediction.results) for prediction in predictions]
    assert played.calls == 4 * len(texts), "the searcher asks what the program asked"
    for prediction in predictions:
        assert prediction.retrieved_docs == [f"{hit.item.title} | {hit.item.content}" for hit in prediction.results]


def test_hops_are_what_single_searches_by_the_same_queries_find(played, model, index, claims):
    prediction = HoverMultiHop([Bm25Retriever()], model()).open(index)(claim=claims[3].text)
    assert len(prediction.queries) == 3
    assert prediction.queries[0] == claims[3].text
    single = Searcher([Bm25Retriever()]).open(index)
    by_hand = [single.search(query, 7)[0] for query in prediction.queries]
    assert ids(prediction.results) == list(dict.fromkeys(item_id for hop in by_hand for item_id in ids(hop)))
    for hit in prediction.results:
        for number, hop in enumerate(by_hand, start=1):
            places = {one.item.item_id: (rank, one) for rank, one in enumerate(hop, start=1)}
            assert (f"hop{number}.rank" in hit.signals) == (hit.item.item_id in places)
            if hit.item.item_id in places:
                rank, one = places[hit.item.item_id]
                assert hit.signals[f"hop{number}.rank"] == rank
                assert hit.signals[f"hop{number}.score"] == one.score
                assert hit.signals[f"hop{number}.bm25.score"] == one.signals["bm25.score"]


def test_a_query_that_does_not_come_is_the_claim_and_the_next_hop_goes_on(played, model, index, claims):
    def first_queries_fail(body):
        context = body["messages"][-1]["content"]
        return "" if "`query` (" in body["messages"][0]["content"] and context.count(" and ") < 5 else plays(body)

    played.answer = first_queries_fail
    with pytest.warns(RetrievalWarning, match="multi_hop, query"):
        prediction = HoverMultiHop([Bm25Retriever()], model()).open(index)(claim=claims[0].text)
    assert prediction.queries[:2] == [claims[0].text] * 2
    assert len(prediction.queries) == 3


def test_it_is_made_again_from_its_config_and_other_settings_have_other_fingerprints(model, tmp_path):
    searcher = MultiHopSearcher([Bm25Retriever()], model(), hops=2)
    config = json.loads(json.dumps(searcher.config))
    assert config["name"] == "multi_hop"
    lm = LanguageModel(**{key: value for key, value in config["lm"].items() if key != "name"})
    assert MultiHopSearcher([Bm25Retriever()], lm, hops=2) == searcher
    CompiledProgram.of(HoverMultiHop([Bm25Retriever()], model())).write(tmp_path / "program.json")
    with_program = MultiHopSearcher([Bm25Retriever()], model(), program=tmp_path / "program.json")
    before = with_program.fingerprint
    others = [
        searcher,
        MultiHopSearcher([Bm25Retriever()], model()),
        MultiHopSearcher([Bm25Retriever(k1=0.5)], model()),
        MultiHopSearcher([Bm25Retriever()], model(temperature=0.7)),
        MultiHopSearcher([Bm25Retriever()], model(), per_hop=5),
    ]
    assert len({one.fingerprint for one in [*others, with_program]}) == 6
    program = HoverMultiHop([Bm25Retriever()], model())
    program.ask[0].signature = program.ask[0].signature.with_instructions("Ask.")
    CompiledProgram.of(program).write(tmp_path / "program.json")
    assert with_program.fingerprint == before, "what was read stays what it was"
    assert MultiHopSearcher([Bm25Retriever()], model(), program=tmp_path / "program.json").fingerprint != before


def test_an_endpoint_that_dies_half_way_costs_what_it_had_not_answered_and_nothing_is_asked_twice(played, model, index, claims):
    texts = [claim.text for claim in claims[:6]]
    played.answer = lambda body: plays(body) if played.calls <= 3 else 401
    with pytest.warns(RetrievalWarning, match="no usable answer"):
        found = MultiHopSearcher([Bm25Retriever()], model(calls_at_once=1, retries=0)).open(index).search(texts, 21)
    assert all(found)
    played.answer = plays
    again = model()
    MultiHopSearcher([Bm25Retriever()], again).open(index).search(texts, 21)
    assert (again.counts.cache_hits, again.counts.degraded) == (3, 0)
