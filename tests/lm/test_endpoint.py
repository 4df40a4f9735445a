"""An endpoint is one object, or the same settings as single parameters; a manifest may set neither address nor key."""

from __future__ import annotations

import inspect

import pytest

from nlp_retrieval import HttpEncoder, HttpReranker, LanguageModel, OpenAIEncoder
from nlp_retrieval.core.components.registry import asked_for, describe_parameters, plan
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm import ModelEndpoint

URL = "http://localhost:8000/v1"
CLASSES = [HttpEncoder, OpenAIEncoder, HttpReranker, LanguageModel]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SERVER_KEY", "a key")


@pytest.mark.parametrize("cls", CLASSES)
def test_one_object_gives_what_single_parameters_give(cls):
    address = {"api_key_env": "SERVER_KEY"} | ({} if cls is OpenAIEncoder else {"base_url": URL})
    limits = {"retries": 7, "backoff": 2, "timeout": 3.0, "max_calls": 9}
    parts, whole = (
        cls(model="some/model", **address, **limits),
        cls(model="some/model", endpoint=ModelEndpoint(**address, **limits)),
    )
    assert list(whole.config.items()) == list(parts.config.items())
    assert (whole, whole.identity, whole.endpoint) == (parts, parts.identity, parts.endpoint)
    assert (whole.retries, whole.timeout, whole.max_calls) == (7, 3.0, 9)
    assert whole.calls_at_once == (8 if cls is LanguageModel else 4)


@pytest.mark.parametrize("cls", CLASSES)
def test_help_and_signature_list_the_fields_and_not_the_object(cls):
    described = {name: text for name, _, text, _ in describe_parameters(cls)}
    assert "refused, timed out, too many requests" in described["retries"]
    assert all(described.values())
    assert "endpoint" not in inspect.signature(cls).parameters


def test_a_field_that_is_given_twice_or_unknown_is_an_error():
    with pytest.raises(ConfigurationError, match="retries is given both directly and in endpoint"):
        HttpEncoder(URL, "m", retries=1, endpoint=ModelEndpoint(retries=2))
    with pytest.raises(TypeError, match="unexpected keyword argument 'calls_per_minute'"):
        LanguageModel("some/model", URL, endpoint=ModelEndpoint(calls_per_minute=60))
    with pytest.raises(TypeError, match="missing a required argument: 'base_url'"):
        HttpEncoder(model="m")
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        ModelEndpoint(retries=-1)


@pytest.mark.parametrize(
    ("kind", "cls"),
    [("encoders", HttpEncoder), ("encoders", OpenAIEncoder), ("rerankers", HttpReranker), ("language_models", LanguageModel)],
)
def test_a_manifest_sets_neither_address_nor_key_in_any_form(kind, cls):
    fields = {"name": cls.name, "model": "some/model"}
    with pytest.raises(ConfigurationError, match="has no parameter 'endpoint'"):
        plan(kind, fields | {"endpoint": {"base_url": URL, "api_key_env": "SERVER_KEY"}}, only_own=True)
    address = {} if cls is OpenAIEncoder else {"base_url": URL}
    recorded = cls(model="some/model", endpoint=ModelEndpoint(api_key_env="SERVER_KEY", **address)).recorded_config
    asked = " ".join(asked_for(plan(kind, recorded, only_own=True)))
    assert "send the key in the environment variable 'SERVER_KEY'" in asked
    assert cls is OpenAIEncoder or URL in asked
