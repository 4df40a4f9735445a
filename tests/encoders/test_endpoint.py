"""Encoders behind an endpoint: what is asked, kept, counted and retried, and whatever a server may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import with_limits
from embedding_server import EmbeddingServer, Raw, embedded, embedding_server
from hashed_words import HashedWords, items_of

from nlp_retrieval import FaissRetriever, HttpEncoder, OpenAIEncoder, Searcher
from nlp_retrieval.encoders import endpoint as servers
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.lm import endpoint as calls
from nlp_retrieval.lm.counting import CallCounts

TEXTS = [f"text number {number} of the red fox" for number in range(10)]
KEY = "quite-a-secret-0123456789"

Make = Callable[..., HttpEncoder]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited each time; nobody waits."""
    waited: list[float] = []
    monkeypatch.setattr(calls, "_sleep", waited.append)
    return waited


@pytest.fixture
def make(server: EmbeddingServer, tmp_path: Path, waits: list[float]) -> Make:
    def made(**given: Any) -> HttpEncoder:
        settings = {"base_url": server.url, "model": "small", "cache_dir": tmp_path / "kept", "timeout": 20.0} | given
        return HttpEncoder(**with_limits(settings))

    return made


def test_vectors_are_those_of_the_server_in_the_order_of_the_texts(make, server):
    expected = HashedWords().encode_passages(TEXTS)
    assert np.allclose(make(batch_size=3).encode_passages(TEXTS), expected, atol=1e-6)
    assert sorted(server.texts) == sorted(TEXTS)
    assert all(len(body["input"]) <= 3 and body["model"] == "small" for body in server.bodies)
    assert {headers["path"] for headers in server.headers} == {"/v1/embeddings"}


def test_prompts_are_put_before_what_is_sent(make, server):
    encoder = make(query_prompt="query: ", passage_prompt="passage: ")
    encoder.encode_queries(["red fox"])
    encoder.encode_passages(["blue whale", ""])
    assert sorted(server.texts) == ["passage: ", "passage: blue whale", "query: red fox"]


def test_a_text_is_sent_once(make, server, tmp_path):
    make().encode_passages([*TEXTS, *TEXTS])
    assert sorted(server.texts) == sorted(TEXTS)
    again = make(batch_size=1)
    assert np.array_equal(again.encode_queries(TEXTS), make().encode_passages(TEXTS))
    assert len(server.texts) == len(TEXTS)
    assert again.counts == CallCounts(cache_hits=10, kept_tokens_in=70)
    texts = ["ox", "red fox", "the blue whale eats"]
    assert make().encode_passages(texts).shape == make().encode_queries(texts).shape
    thrice = make()
    thrice.encode_queries(texts)
    assert thrice.counts == CallCounts(cache_hits=3, kept_tokens_in=7)
    make(cache_dir=tmp_path / "other").encode_passages(TEXTS[:1])
    make(model="large").encode_passages(TEXTS[:1])
    assert len(server.texts) == len(TEXTS) + len(texts) + 2


# keys


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SOME_SERVER", KEY)
    return KEY


def test_a_key_goes_to_the_server_and_into_nothing_else(make, server, key, tmp_path):
    encoder = make(api_key_env="SOME_SERVER")
    encoder.encode_passages(TEXTS[:1])
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    FaissRetriever(encoder).index(items_of(TEXTS), tmp_path / "index")
    server.answer = lambda body: 401
    with pytest.raises(ModelError) as error:
        encoder.encode_passages(["another text"])
    assert "HTTP 401" in str(error.value)
    assert "SOME_SERVER" in str(error.value)
    assert key not in f"{error.value} {encoder!r} {encoder.config} {encoder.identity} {vars(encoder)}"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert all(key.encode() not in content for content in written)


def test_a_redirect_is_not_followed(make, server, key):
    with embedding_server() as other:
        server.answer = lambda body: Raw(status=307, headers={"Location": f"{other.url}/embeddings"})
        with pytest.raises(ModelError, match=r"HTTP 307: .*it redirects elsewhere, which is not followed"):
            make(api_key_env="SOME_SERVER").encode_passages(TEXTS)
        assert other.bodies == []
    assert len(server.bodies) == 1


def test_a_key_that_is_missing_or_no_key_is_an_error_at_once(make, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not set"):
        OpenAIEncoder("text-embedding-3-small")
    monkeypatch.setenv("SOME_SERVER", "half a\nkey")
    with pytest.raises(ConfigurationError, match="SOME_SERVER is not set to one") as error:
        make(api_key_env="SOME_SERVER")
    assert "half" not in str(error.value)
    with pytest.raises(ConfigurationError, match="not shown"):
        make(api_key_env="sk-0123456789012345678901")


NO_URLS = "localhost:8000 ftp://localhost http:// http://[::1 http://a?key=1 http://a/#x http://a:0 http://a:99999/".split()


def test_what_is_no_url_of_a_server_is_refused_and_no_password_is_shown(subtests: pytest.Subtests):
    for url in [*NO_URLS, "http://a b/", "http://me:password@a/v1", "http://token@a/v1"]:
        with subtests.test(url=url):
            with pytest.raises(ConfigurationError, match="base_url") as error:
                HttpEncoder(url, "small")
            assert "password@" not in str(error.value)
            assert "token@" not in str(error.value)


# what a server may answer


def changed(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A sound answer with other values at its top."""
    return lambda body: embedded(body) | changes


def each(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A sound answer whose entries are changed."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        whole = embedded(body)
        return whole | {"data": [entry | change(entry) for entry in whole["data"]]}

    return answer


ANSWERS = [
    (lambda body: Raw(b"<html>welcome</html>"), "not that of embeddings: Invalid JSON"),
    (lambda body: Raw(b"[1, 2]"), "not that of embeddings: "),
    (lambda body: Raw(b"[" * 10_000), "recursion limit"),
    (changed(data=None), "data: Input should be a valid"),
    (lambda body: embedded(body | {"input": body["input"] * 2}), "20 entries of"),
    (each(lambda entry: {"index": 0}), 'each "index" from 0 to 9 once'),
    (each(lambda entry: {"embedding": []}), r"data.0.embedding: List should have at least 1 item"),
    (each(lambda entry: {"embedding": [1.0] * (4 + entry["index"] % 2)}), "several dimensions"),
    (each(lambda entry: {"embedding": [float("nan")] * 16}), "finite number"),
    (each(lambda entry: {"embedding": [1.0] * 17}), "gave vectors of dimension 17, where .* say 16"),
    (each(lambda entry: {"embedding": [1e300] * 16}), "too large"),
    (each(lambda entry: {"embedding": [10**400] * 16}), "data.0.embedding.0: "),
    (lambda body: Raw(b"x" * (11 * 2**20)), "longer than"),
]


def test_an_answer_that_is_none_is_an_error_that_says_why_and_nothing_is_kept(make, server, tmp_path, subtests):
    for number, (answer, message) in enumerate(ANSWERS, 1):
        with subtests.test(message=message):
            server.answer = answer
            with pytest.raises(ModelError, match=message):
                make(dimension=16).encode_passages(TEXTS)
            assert len(server.bodies) == number, "it would be no better the next time"
            assert not (tmp_path / "kept").exists()


def test_another_dimension_is_an_error_that_keeps_nothing_until_it_is_named(make, server):
    first = make(batch_size=2, calls_at_once=1)
    server.answer = lambda body: embedded(body, 16 + (len(server.bodies) == 3))
    with pytest.raises(ModelError, match=r"gave vectors of dimension 17, where .*kept in .* say 16; .* pass dimension=17"):
        first.encode_passages(TEXTS)
    for asked in (first, make()):  # one odd answer
        assert asked.encode_passages(TEXTS).shape == (len(TEXTS), 16)
    server.answer = lambda body: embedded(body, 17)
    with pytest.raises(ModelError, match="pass dimension=17"):
        make().encode_passages([*TEXTS, "a new one"])
    for dimension in (17, None):  # another model
        assert make(dimension=dimension).encode_passages(TEXTS).shape == (len(TEXTS), 17)


# as a part


def test_an_interrupted_index_asks_only_for_what_is_missing(make, server, tmp_path, monkeypatch):
    monkeypatch.setattr("nlp_retrieval.retrievers.vectors._BATCH", 4)
    server.answer = lambda body: 400 if TEXTS[9] in body["input"] else embedded(body)
    with pytest.raises(ModelError):
        FaissRetriever(make()).index(items_of(TEXTS), tmp_path / "index")
    server.answer = embedded
    report = Searcher([FaissRetriever(make())]).index(items_of(TEXTS), tmp_path / "index")
    assert report.resumed == 8
    assert server.texts[-2:] == TEXTS[8:]


def test_openai_asks_for_the_dimension_with_its_own_key(server, tmp_path, monkeypatch, waits):
    monkeypatch.setattr(servers, "OPENAI", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    encoder = OpenAIEncoder("text-embedding-3-small", dimension=8, cache_dir=tmp_path)
    assert encoder.encode_passages(TEXTS).shape == (10, 8)
    assert server.bodies[0]["dimensions"] == 8
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert encoder.counts.calls == 1
