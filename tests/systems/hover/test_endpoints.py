"""Whatever an endpoint does, every claim is searched, by what came of it and else as it is, and what is missing is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chat_server import DRIPPING_BODY

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import ClaimPhrases, HyDE
from nlp_retrieval.rerankers.overlap import OverlapReranker
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher

from .conftest import plays

Asking = Searcher | MultiHopSearcher
HOVER: dict[str, Any] = {"reranker": OverlapReranker(), "scope": "per_subquery", "depth": 25, "quota": 7}


def phrases(lm: LanguageModel) -> Searcher:
    return Searcher([Bm25Retriever()], processor=ClaimPhrases(lm), **HOVER)


def passages(lm: LanguageModel) -> Searcher:
    return Searcher([Bm25Retriever()], processor=HyDE(lm))


def hops(lm: LanguageModel) -> MultiHopSearcher:
    return MultiHopSearcher([Bm25Retriever()], lm)


WITHOUT: dict[Callable[[LanguageModel], Asking], Searcher] = {
    phrases: Searcher([Bm25Retriever()], **HOVER),
    passages: Searcher([Bm25Retriever()]),
    hops: Searcher([Bm25Retriever()]),
}
"""What is found where no question is answered."""

MADE = pytest.mark.parametrize("made", WITHOUT, ids=lambda made: made.__name__)
NONSENSE = {"error": None, "choices": "none", "object": 7}


def ids(results):
    return [hit.item.item_id for hit in results]


@MADE
@pytest.mark.parametrize("reply", [500, None, NONSENSE, "", DRIPPING_BODY], ids=repr)
def test_an_endpoint_that_gives_no_answer_leaves_every_claim_as_it_is(played, model, index, claims, made, reply):
    played.answer = lambda body: reply
    lm = model(retries=1, timeout=0.5)
    texts = [claim.text for claim in claims[:4]]
    with pytest.warns(RetrievalWarning, match=r"no usable answer from openai/small for 4 of 4 queries"):
        found = made(lm).open(index).search(texts, 7)
    assert [ids(one) for one in found] == [ids(one) for one in WITHOUT[made].open(index).search(texts, 7)]
    assert lm.counts.degraded >= 4


@MADE
def test_an_endpoint_that_dies_half_way_costs_what_it_had_not_answered_and_nothing_is_asked_twice(
    played, model, index, claims, made
):
    texts = [claim.text for claim in claims[:6]]
    answered = 3
    played.answer = lambda body: plays(body) if played.calls <= answered else 401
    with pytest.warns(RetrievalWarning, match=r"no usable answer"):
        found = made(model(calls_at_once=1, retries=0)).open(index).search(texts, 21)
    assert all(found)
    played.answer = plays
    again = model()
    whole = made(again).open(index).search(texts, 21)
    assert again.counts.cache_hits == answered
    assert again.counts.degraded == 0
    if made is not hops:  # which asks for more after every hop
        assert [ids(one) for one in found[:answered]] == [ids(one) for one in whole[:answered]]
