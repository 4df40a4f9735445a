"""Rerankers behind an endpoint: what is asked and counted, and whatever a server may answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from chat_server import with_limits
from embedding_server import EmbeddingServer, Raw
from hashed_words import items_of
from hypothesis import given
from hypothesis import strategies as st
from rerank_server import relevance, rerank_server, reranked

from nlp_retrieval import HttpReranker, RetrievalResult
from nlp_retrieval.errors import ModelError
from nlp_retrieval.lm import endpoint as calls
from nlp_retrieval.rerankers.endpoint import read_scores

KEY = "quite-a-secret-0123456789"
TEXTS = ["red fox", "a blue whale", "the red fox and the blue whale", "green", "", "东京 red"]

Make = Callable[..., HttpReranker]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with rerank_server() as running:
        yield running


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited each time; nobody waits."""
    waited: list[float] = []
    monkeypatch.setattr(calls, "_sleep", waited.append)
    return waited


@pytest.fixture
def make(server: EmbeddingServer, waits: list[float]) -> Make:
    return lambda **given: HttpReranker(
        **with_limits({"base_url": server.url, "model": "rerank-small", "timeout": 20.0} | given)
    )


def results() -> list[RetrievalResult]:
    return [RetrievalResult(item=item, score=9.0 - row, signals={}) for row, item in enumerate(items_of(TEXTS))]


def scores_of(reranker: HttpReranker, query: str = "red whale") -> dict[int, float]:
    (found,) = reranker.rerank([query], [results()], 100)
    return {int(hit.item.item_id[1:]): hit.signals["http.score"] for hit in found}


@pytest.mark.parametrize("size", [2, 100])
def test_scores_are_those_of_the_server_in_any_number_of_requests(make, server, size):
    wanted = {row: relevance("red whale", text or " ") for row, text in enumerate(TEXTS)}
    assert scores_of(make(documents_per_call=size)) == pytest.approx(wanted)
    assert len(server.bodies) == -(-len(TEXTS) // size)
    assert {headers["path"] for headers in server.headers} == {"/v1/rerank"}
    for body in server.bodies:
        assert set(body) == {"model", "query", "documents", "top_n"}
        assert (body["model"], body["query"], body["top_n"]) == ("rerank-small", "red whale", len(body["documents"]))
    assert sorted(one for body in server.bodies for one in body["documents"]) == sorted(text or " " for text in TEXTS)


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"usage": {"total_tokens": 7}}, 7),
        ({"usage": None, "meta": {"tokens": {"input_tokens": 7.0}, "billed_units": {"search_units": 1}}}, 7),
        ({"usage": {"total_tokens": 2**70}}, 0),
    ],
)
def test_tokens_are_read_as_jina_and_as_cohere_tell_them(make, server, told, tokens):
    server.answer = lambda body: reranked(body) | told
    reranker = make()
    scores_of(reranker)
    assert reranker.counts.tokens_in == tokens


# keys and URLs


def test_a_key_goes_to_the_server_and_into_nothing_else(make, server, monkeypatch):
    monkeypatch.setenv("SOME_SERVER", KEY)
    reranker = make(api_key_env="SOME_SERVER")
    scores_of(reranker)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    server.answer = lambda body: 401
    with pytest.raises(ModelError, match=r"HTTP 401: .*check the key in SOME_SERVER") as error:
        scores_of(reranker)
    assert KEY not in f"{error.value} {reranker!r} {reranker.config} {reranker.identity} {vars(reranker)}"


# what a server may answer


def each(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A sound answer whose entries are changed."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {"results": [entry | change(entry) for entry in reranked(body)["results"]]}

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda body: Raw(b"<html>welcome</html>"), "not that of rerank: "),
        (lambda body: {"results": []}, 'its 0 "results" do not have each "index" from 0 to 5 once'),
        (each(lambda entry: {"index": 0}), 'its 6 "results" do not have each "index"'),
        (each(lambda entry: {"relevance_score": float("nan")}), "not that of rerank"),
        (lambda body: Raw(b"x" * 2**20), "longer than"),
    ],
)
def test_an_answer_that_is_none_is_an_error_that_says_why(make, server, answer, message):
    server.answer = answer
    with pytest.raises(ModelError, match=message):
        scores_of(make())
    assert len(server.bodies) == 1, "it would be no better the next time"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["results", "index", "relevance_score", "usage", "meta"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(content=JSON, n=st.integers(1, 3))
def test_whatever_a_server_sends_it_is_scores_or_a_value_error(content, n):
    try:
        answer = read_scores(json.dumps(content).encode(), ["x"] * n)
    except ValueError:
        return
    assert answer.scores.shape == (n,)
    assert np.isfinite(answer.scores).all()
