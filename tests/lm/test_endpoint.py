"""The limits of an endpoint are one object, or its fields as a mapping; a manifest may set neither address nor key."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from nlp_retrieval import HttpEncoder, HttpReranker, LanguageModel, OpenAIEncoder
from nlp_retrieval.core.components.registry import asked_for, build, plan
from nlp_retrieval.lm import ModelEndpoint
from nlp_retrieval.lm.endpoint import side_by_side

URL = "http://localhost:8000/v1"
CLASSES = [
    ("encoders", HttpEncoder),
    ("encoders", OpenAIEncoder),
    ("rerankers", HttpReranker),
    ("language_models", LanguageModel),
]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SERVER_KEY", "a key")


def test_an_object_and_a_mapping_give_one_component(subtests: pytest.Subtests):
    for kind, cls in CLASSES:
        with subtests.test(kind=kind, cls=cls):
            address = {"api_key_env": "SERVER_KEY"} | ({} if cls is OpenAIEncoder else {"base_url": URL})
            limits = {"retries": 7, "backoff": 2, "timeout": 3.0, "max_calls": 9}
            whole = cls(model="some/model", endpoint=ModelEndpoint(**limits), **address)
            described = build(kind, {"name": cls.name, "model": "some/model", "endpoint": limits} | address)
            assert whole == described == cls(**{name: value for name, value in whole.config.items() if name != "name"})
            assert described.endpoint == whole.endpoint == ModelEndpoint(**limits)
            assert "endpoint=ModelEndpoint(calls_at_once=8, retries=7, backoff=2.0, timeout=3.0, max_calls=9)" in repr(
                described
            )
            assert "endpoint" not in repr(cls(model="some/model", **address))


def test_a_manifest_sets_limits_and_neither_address_nor_key(subtests: pytest.Subtests):
    for kind, cls in CLASSES:
        with subtests.test(kind=kind, cls=cls):
            address = {} if cls is OpenAIEncoder else {"base_url": URL}
            recorded = cls(model="some/model", api_key_env="SERVER_KEY", **address).recorded_config
            asked = " ".join(asked_for(plan(kind, recorded)))
            assert "send the key in the environment variable 'SERVER_KEY'" in asked
            assert "endpoint" not in asked
            assert cls is OpenAIEncoder or URL in asked


def test_ctrl_c_that_another_thread_gets_ends_what_is_asked_side_by_side():
    ended, both = threading.Event(), threading.Barrier(2)

    def ask(part, wanted):
        both.wait(60)
        if part == 0:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        for _ in range(200):
            if not wanted():
                ended.set()
                return
            time.sleep(0.05)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what was started in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(ask, [0, 1], 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(60)
