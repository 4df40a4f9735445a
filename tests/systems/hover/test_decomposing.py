"""The program finds what the same configuration of Searcher finds, and is a DSPy program all the same."""

from __future__ import annotations

import dspy
import pytest

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.processors.with_model import ClaimPhrases
from nlp_retrieval.rerankers.overlap import OverlapReranker
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.systems.hover.programs import HoverMultiHopPipeline


def ranked(results):
    return [(hit.item.item_id, hit.score, hit.signals) for hit in results]


@pytest.mark.parametrize("keep_query", [False, True])
def test_the_program_finds_what_the_searcher_finds_in_the_same_order(played, model, index, claims, keep_query):
    texts = [claim.text for claim in claims[:20]]
    program = HoverMultiHopPipeline([Bm25Retriever()], model(), keep_query=keep_query).open(index)
    searcher = Searcher(
        [Bm25Retriever()],
        processor=ClaimPhrases(model(), keep_query=keep_query),
        reranker=OverlapReranker(blend="replace"),
        scope="per_subquery",
        depth=25,
        quota=7,
    ).open(index)
    wanted = searcher.search(texts, 21)
    for text, expected in zip(texts, wanted, strict=True):
        prediction = program(claim=text)
        assert ranked(prediction.results) == ranked(expected)
        assert prediction.retrieved_docs == [f"{hit.item.title} | {hit.item.content}" for hit in expected]
        assert 1 <= len(prediction.retrieved_docs) <= 21
        assert len(prediction.phrases) == 3 + keep_query
    assert played.calls == 20


def test_what_optimisers_need_is_there_the_trace_and_other_samples(played, model, index, claims):
    lm = model(temperature=1.0)
    program = HoverMultiHopPipeline([Bm25Retriever()], lm).open(index)
    with dspy.context(lm=lm.dspy_lm().copy(rollout_id=3), trace=[]):
        program(claim=claims[0].text)
        ((predictor, inputs, output),) = dspy.settings.trace
    assert predictor is program.decompose
    assert inputs == {"claim": claims[0].text}
    assert len(output.phrases) == 3
    program(claim=claims[0].text)
    assert played.calls == 2, "the sample is not the answer"
