"""Calls are counted, bounded, retried and answered from disk the second time, and keys stay where they are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from chat_server import fields

from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.lm.asking import AskingLine, ask_all
from nlp_retrieval.lm.counting import CallCounts, record_calls
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.signatures import Decomposer

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"


def ask(lm: LanguageModel, *claims: str) -> list[object]:
    questions = [{"claim": claim} for claim in claims]
    return ask_all(lm, Decomposer(), questions, "phrases", lambda question, answer: answer, "test")


# the key


def test_a_missing_key_is_an_error_that_names_the_variable_before_anything_is_done(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MINE", raising=False)
    with pytest.raises(ConfigurationError, match=r"openai/gpt-4o-mini needs a key.*OPENAI_API_KEY is not set"):
        LanguageModel("openai/gpt-4o-mini")
    with pytest.raises(ConfigurationError, match="MINE is not set"):
        LanguageModel("openai/gpt-4o-mini", api_key_env="MINE")


def test_the_named_key_is_sent_and_stands_nowhere_else(server, model, tmp_path, monkeypatch):
    monkeypatch.setenv("MINE", SECRET)
    lm = model(api_key_env="MINE", retries=0)
    assert ask(lm, "a claim") == [["a", "claim"]]
    assert server.keys == [f"Bearer {SECRET}"]
    server.answer = lambda body: 401  # and the server repeats the key in its message
    with pytest.warns(RetrievalWarning, match="status 401") as caught:
        ask(lm, "another claim")
    kept = [file.read_text() for file in tmp_path.rglob("*.json")]
    assert kept
    for text in [*kept, str(caught[0].message), repr(lm), json.dumps(lm.config), json.dumps(lm.provenance())]:
        assert SECRET not in text


def test_a_key_of_the_environment_is_not_sent_to_a_server_that_it_is_not_for(server, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ask(model(), "a claim")
    assert SECRET not in str(server.keys)


# answers on disk


def test_a_second_run_makes_no_call(server, model):
    first, second = model(), model()
    claims = [f"claim number {number}" for number in range(20)]
    found = ask(first, *claims)
    assert ask(second, *claims) == found
    assert server.calls == 20
    assert first.counts == CallCounts(calls=20, tokens_in=2000, tokens_out=200)
    assert second.counts == CallCounts(cache_hits=20, kept_tokens_in=2000, kept_tokens_out=200)


def test_a_damaged_file_is_a_miss_and_is_written_anew(server, model, tmp_path):
    ask(model(), "a claim")
    (file,) = (tmp_path / "answers").rglob("*.json")
    whole = file.read_bytes()
    for damage in (b"", whole[:-20], b"[]", whole.replace(b"a claim", b"b claim")):
        file.write_bytes(damage)
        assert ask(model(), "a claim") == [["a", "claim"]]
        assert file.read_bytes() == whole
    assert server.calls == 5


def test_samples_of_one_prompt_are_not_answered_with_one_another(server, model):
    import dspy

    lm = model(temperature=1.0)
    for rollout in (None, 1, 2, 1, None):
        with dspy.context(lm=lm.dspy_lm().copy(rollout_id=rollout)):
            AskingLine().ask(lm, Decomposer(), {"claim": "a claim"}, "phrases", lambda answer: answer)
    assert server.calls == 3


# limits and counts


def test_the_calls_of_a_run_are_counted_apart_from_those_of_the_model(model):
    lm, other = model(), model(temperature=1.0)
    ask(lm, "before")
    with record_calls() as run:
        ask(lm, "before", "a claim", "b claim")
        with record_calls() as inner:
            ask(other, "c claim")
    kept = CallCounts(cache_hits=1, kept_tokens_in=100, kept_tokens_out=10)
    assert run.counts == CallCounts(calls=3, tokens_in=300, tokens_out=30) + kept
    assert inner.counts == CallCounts(calls=1, tokens_in=100, tokens_out=10)
    assert lm.counts - CallCounts(calls=1, tokens_in=100, tokens_out=10) == run.counts - inner.counts


def test_failures_that_may_pass_are_tried_again(server, model):
    replies = iter([429, 500, None, fields(phrases=["x y"])])
    server.answer = lambda body: next(replies)
    lm = model(retries=3)
    assert ask(lm, "a claim") == [["x y"]]
    assert lm.counts == CallCounts(calls=4, tokens_in=100, tokens_out=10, failures=3)


@pytest.mark.parametrize("status", [400, 401])
def test_failures_that_will_not_pass_are_not_tried_again(server, model, status):
    server.answer = lambda body: status
    with pytest.warns(RetrievalWarning, match=f"the endpoint gave none: HTTP {status} status {status}"):
        assert ask(model(retries=3), "a claim") == [None]
    assert server.calls == 1


def test_after_the_last_call_that_is_allowed_the_rest_is_left(server, model):
    lm = model(max_calls=3, calls_at_once=1)
    with pytest.warns(RetrievalWarning, match=r"7 of 10 queries.*limit of max_calls=3"):
        found = ask(lm, *[f"claim {number}" for number in range(10)])
    assert [value is not None for value in found] == [True] * 3 + [False] * 7
    assert server.calls == 3
    assert lm.counts.degraded == 7


def test_an_endpoint_that_is_dead_is_given_up_on(server, model):
    server.answer = lambda body: 500
    lm = model(retries=1, calls_at_once=1)
    with pytest.warns(RetrievalWarning, match="100 of 100") as caught:
        assert ask(lm, *[f"claim {number}" for number in range(100)]) == [None] * 100
    assert len(caught) == 1
    assert server.calls == 20
    assert lm.counts == CallCounts(calls=20, failures=20, degraded=100)


def test_a_claim_that_no_server_can_be_sent_costs_that_claim_alone(model):
    with pytest.warns(RetrievalWarning, match=r"1 of 2 queries.*not valid Unicode"):
        assert ask(model(), "a lone \ud800 surrogate", "a claim") == [None, ["a", "claim"]]


# what DSPy would do by itself


def test_dspy_writes_nothing_of_its_own_and_asks_nobody_else(server, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    program = f"""
import socket, sys
import warnings; warnings.simplefilter("error")
real = socket.socket.connect
def connect(self, address):
    assert address[0] == "127.0.0.1", address
    return real(self, address)
socket.socket.connect = connect
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import ClaimPhrases
lm = LanguageModel("openai/small", base_url={server.url!r}, cache_dir={str(tmp_path / "answers")!r})
assert ClaimPhrases(lm, keep_query=False).process(["red fox"]) == [["red", "fox"]]
import dspy
assert not lm.dspy_lm().history
assert "litellm" not in sys.modules
"""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, env=environment)
    assert list(home.rglob("*")) == []
