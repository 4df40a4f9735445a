"""The settings of a language model, and the DSPy model built from them.

A key is named by its environment variable and never stored: it is in no configuration, ``repr``, file or message.
"""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar
from uuid import uuid4

from pydantic import Field

from nlp_retrieval.core.components.component import Component, component_of_object
from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm.counting import CallCounter, CallCounts
from nlp_retrieval.lm.endpoint import DEFAULT_ENDPOINT, ENDPOINT_RULES, LimitedCalls, ModelEndpoint, check_url, read_key

_CLIENT = "client"
_NEED_NO_KEY = frozenset({"ollama", "ollama_chat", "hosted_vllm", _CLIENT})
_REASONING_MODEL = re.compile(r"(?:o[1-9]|gpt-5(?:\.\d+)*(?!-chat))(?:-.*)?", re.IGNORECASE)


class LanguageModel(Component):
    """A chat model behind an endpoint, reached through DSPy; or a client of your own, by :meth:`of_client`.

    Args:
        model: ``provider/model`` as DSPy names it: ``openai/gpt-4o-mini``, ``anthropic/...``, ``ollama_chat/...``,
            ``hosted_vllm/...``; any other OpenAI-compatible server is ``openai/<model>`` with its ``base_url``.
        base_url: URL of the server (``http://localhost:8000/v1``); by default the provider's own.
        api_key_env: the environment variable that holds the key. By default ``<PROVIDER>_API_KEY`` if no ``base_url``
            is given; with a ``base_url``, no key is sent by default.
        temperature: sampling temperature; None for the server's default. OpenAI's reasoning models (``o3-mini``, ``gpt-5``)
            take none: it is not sent.
        max_tokens: length of the longest answer, thoughts included; None for the server's default. OpenAI's reasoning models
            get at least 16,000.
        endpoint: the limits of requests; in a file a mapping, such as ``{retries: 2, timeout: 300}``.
        cache_dir: where answers are stored as JSON; by default ``nlp-retrieval/answers`` in the user's cache folder.

    Raises:
        ConfigurationError: the key's variable is not set, or a setting holds a key itself.

    Examples:
        >>> LanguageModel("openai/gpt-4o-mini", max_tokens=256)
        LanguageModel(model='openai/gpt-4o-mini', max_tokens=256)
        >>> LanguageModel("openai/qwen3", base_url="http://localhost:8000/v1")
        LanguageModel(model='openai/qwen3', base_url='http://localhost:8000/v1')
    """

    kind: ClassVar[str] = "language_models"
    name = "dspy"
    manifest_may_set = ENDPOINT_RULES | may_set(
        *("temperature", "max_tokens"),
        model=given("send questions to the language model"),
        base_url=given("send them to the server"),
        cache_dir=given("keep answers in"),
    )

    def __init__(
        self,
        model: Annotated[str, Field(pattern=r"^[^/\s]+/\S+$")],
        base_url: str | None = None,
        api_key_env: str | None = None,
        temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0,
        max_tokens: Annotated[int, Field(ge=1)] | None = 512,
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
        cache_dir: str | Path | None = None,
    ) -> None:
        if model.startswith(f"{_CLIENT}/") and not self.only_in_memory:
            raise ConfigurationError(
                f"LanguageModel: {model} was an object of the program that wrote it; give it to the component in Python, or "
                "name a model here, such as openai/gpt-4o-mini"
            )
        self.model = model
        self.base_url = base_url
        self.api_key_env = api_key_env
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.endpoint = ModelEndpoint.model_validate(endpoint)
        self.cache_dir = cache_dir
        if base_url is not None:
            check_url("LanguageModel", base_url)
        provider = model.partition("/")[0]
        if api_key_env is None and base_url is None and provider not in _NEED_NO_KEY:
            api_key_env = f"{provider.upper()}_API_KEY"
        self._key = partial(read_key, "LanguageModel", model, api_key_env)
        self._key()
        self._counter = CallCounter(model)
        self._lock = Lock()
        self._made: dict[int, Any] = {}  # by process: a forked child must not use its parent's connections

    @classmethod
    def of_client(cls, client: Any) -> LanguageModel:
        """Return a language model that asks a client: an object with ``complete(prompt)``, or a ``dspy.LM``.

        Components take such a client itself as their ``lm``, too. ``complete`` returns the answer, or an object with it as
        ``text``; one of its errors means no answer. Its answers are not kept on disk. None is the model of DSPy's settings.
        """
        if client is None and "dspy" in sys.modules:
            client = sys.modules["dspy"].settings.lm
        if client is None:
            raise ConfigurationError("there is no language model: pass lm=LanguageModel(...), or call dspy.configure(lm=...)")
        made = client if isinstance(client, LanguageModel) else cls.of_value(client)
        if made is None:
            raise ConfigurationError(
                f"{client!r:.100} ({type(client).__name__}) is no language model: pass LanguageModel(...), a dspy.LM, or "
                "an object with a method complete(prompt)"
            )
        return made

    @classmethod
    def of_value(cls, value: object) -> LanguageModel | None:
        """Return a client, or a ``dspy.LM``, as a language model, one for each; None for anything else."""
        if isinstance(owner := getattr(value, "language_model", None), LanguageModel):
            return owner  # the dspy.LM that it made
        is_dspy = "dspy" in sys.modules and isinstance(value, sys.modules["dspy"].BaseLM)
        if isinstance(value, type | Component) or not (is_dspy or callable(getattr(value, "complete", None))):
            return None
        name = f"{_CLIENT}/{type(value).__name__}-{uuid4().hex[:12]}"
        calls_at_once = 8 if is_dspy else 1  # a dspy.LM is safe to call from several threads
        return component_of_object(cls.kind, value, lambda: _client_model(value, name, calls_at_once))

    @property
    def counts(self) -> CallCounts:
        """The calls of this model so far; see :func:`nlp_retrieval.lm.counting.record_calls` for the count of one run."""
        return self._counter.counts

    @property
    def sampling(self) -> tuple[float | None, int | None]:
        """The temperature and ``max_tokens`` that are sent: a reasoning model of OpenAI refuses most."""
        if not _REASONING_MODEL.fullmatch(self.model.rpartition("/")[2]):
            return self.temperature, self.max_tokens
        return None, None if self.max_tokens is None else max(self.max_tokens, 16_000)  # the least that DSPy accepts

    def provenance(self) -> dict[str, str]:
        return {self.model: self.base_url or f"{self.model.partition('/')[0]}'s own endpoint"}

    def dspy_lm(self) -> Any:
        """The ``dspy.LM``, created at the first call; its requests are counted, limited, retried and answered from disk."""
        with self._lock:
            if os.getpid() not in self._made:
                self._made[os.getpid()] = self._make()
            return self._made[os.getpid()]

    def check_ready(self) -> None:
        """Require DSPy and the key."""
        from nlp_retrieval.lm.engine import dspy  # noqa: F401

        self._key()

    def _make(self) -> Any:
        from nlp_retrieval.lm.engine import Engine, dspy

        class CountedLM(dspy.LM):  # type: ignore[misc]  # DSPy has no types
            """A ``dspy.LM`` whose copies for other samples (``rollout_id``) do not reuse its stored answers."""

            language_model = self

            def copy(self, **kwargs: Any) -> Any:
                rollout = kwargs.get("rollout_id")
                return super().copy(**({} if rollout is None else {"engine": self.engine.sampled(rollout)}), **kwargs)

        temperature, max_tokens = self.sampling
        settings = {"temperature": temperature, "max_tokens": max_tokens, "cache": False, "num_retries": 0}
        try:
            send, store = self._access()
            calls = LimitedCalls(self.endpoint, self._counter)
            engine = Engine(send, {"base_url": self.base_url, "model": self.model}, calls, store)
            return CountedLM(self.model, engine=engine, **settings)
        except (dspy.utils.exceptions.LMError, dspy.lm15.LM15Error) as error:
            raise ConfigurationError(f"LanguageModel: model={self.model!r}: {without_secrets(str(error))}") from None

    def _access(self) -> tuple[Any, Any]:
        """What asks the model, and where its answers are kept."""
        from nlp_retrieval.lm.engine import AnswerStore, server_of

        store = AnswerStore(None if self.cache_dir is None else expanded(self.cache_dir))
        return server_of(self.model, self.base_url, self._key(), self.endpoint.timeout), store

    def __deepcopy__(self, memo: dict[int, Any]) -> LanguageModel:
        return self  # DSPy's optimisers copy whole programs; limits and counts stay those of one model


class ClientModel(LanguageModel):
    """A client as a language model: an object with ``complete(prompt)``, or a ``dspy.LM``."""

    name = _CLIENT
    only_in_memory = True
    client: Any

    def provenance(self) -> dict[str, str]:
        return {self.model: f"{type(self.client).__module__}.{type(self.client).__qualname__}"}

    def __reduce__(self) -> tuple[Any, ...]:
        return _client_model, (self.client, self.model, self.endpoint.calls_at_once)

    def _access(self) -> tuple[Any, Any]:
        from nlp_retrieval.lm.engine import client_of

        return client_of(self.client), None  # nothing tells apart two clients, which may answer differently: nothing is kept


def _client_model(client: Any, model: str, calls_at_once: int) -> ClientModel:
    made = ClientModel(model, endpoint=ModelEndpoint(calls_at_once=calls_at_once, timeout=600.0))  # the client has its own
    made.client = client
    return made
