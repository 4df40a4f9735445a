"""Encoders behind an endpoint: OpenAI's own, and any other that speaks the same protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.components.trust_rules import ENDPOINT_RULES, given, may_set
from nlp_retrieval.encoders.endpoint.encoder import EndpointEncoder
from nlp_retrieval.lm.endpoint.keys import check_url

OPENAI = "https://api.openai.com/v1"


class HttpEncoder(EndpointEncoder):
    """An encoder behind any OpenAI-compatible endpoint (vLLM, Text Embeddings Inference, Ollama, llama.cpp, a gateway).

    Vectors are kept on disk by server, model and text, so that a text is sent once; a search for a known query asks nobody.
    Requests and tokens count as those of language models do, in benchmarks too; a price is that of the model ``http/<model>``.

    Args:
        base_url: what ``/embeddings`` is added to (``http://localhost:8000/v1``). Redirects are not followed.
        model: name of the model, as the server knows it.
        api_key_env: the environment variable that holds the key; by default none is sent.
        dimension: what the vectors must have; by default the dimension of the first one counts for all others.
        query_prompt: put before every query.
        passage_prompt: put before every passage.
        normalize: scale vectors to length 1, so that scores are cosines.
        max_characters: how much of a text is sent; the rest is left out. By default all of it.
        batch_size: the most texts in a request.
        calls_at_once: the most requests under way at the same time.
        calls_per_minute: the most requests that begin within a minute, evenly spaced; None for no limit.
        retries: the most retries after a failure that may be temporary: refused, timed out, too many requests, server error.
        backoff: seconds before the first retry, doubled with each further one (at most 60 s, with jitter); if the server
            says how long to wait, no request begins before (at most 60 s).
        timeout: seconds for an attempt, from the connection to the last byte of the answer.
        max_calls: the most requests in total, including retries; the next one is an error. None for no limit.
        cache_dir: where vectors are stored; by default ``nlp-retrieval/vectors`` in the user's cache folder.

    Raises:
        ConfigurationError: the key's variable is not set, a setting holds a key itself, or ``base_url`` is no URL of a server.
    """

    name = "http"
    manifest_may_set = ENDPOINT_RULES | may_set("model", base_url=given("send texts to the server"))

    def __init__(
        self,
        base_url: str,
        model: Annotated[str, Field(min_length=1)],
        api_key_env: str | None = None,
        dimension: Annotated[int, Field(ge=1)] | None = None,
        query_prompt: str = "",
        passage_prompt: str = "",
        normalize: bool = True,
        max_characters: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1, le=2048)] = 64,
        calls_at_once: Annotated[int, Field(ge=1)] = 4,
        calls_per_minute: Annotated[int, Field(ge=1)] | None = None,
        retries: Annotated[int, Field(ge=0)] = 4,
        backoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0,
        timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0,
        max_calls: Annotated[int, Field(ge=0)] | None = None,
        cache_dir: str | Path | None = None,
    ) -> None:
        self.base_url = base_url
        self.model = model
        self.api_key_env = api_key_env
        self.dimension = dimension
        self.query_prompt = query_prompt
        self.passage_prompt = passage_prompt
        self.normalize = normalize
        self.max_characters = max_characters
        self.batch_size = batch_size
        self.calls_at_once = calls_at_once
        self.calls_per_minute = calls_per_minute
        self.retries = retries
        self.backoff = backoff
        self.timeout = timeout
        self.max_calls = max_calls
        self.cache_dir = cache_dir
        check_url(type(self).__name__, base_url)
        self._prepare()

    @property
    def server(self) -> str:
        return self.base_url.rstrip("/")


class OpenAIEncoder(EndpointEncoder):
    """An embedding model of OpenAI (https://platform.openai.com/docs/guides/embeddings).

    :class:`HttpEncoder` says what is kept, counted and retried; a price is that of the model ``openai/<model>``.

    Args:
        model: its name, such as ``text-embedding-3-small``.
        dimension: asked for where the model can shorten its vectors (Matryoshka), and checked; by default the model's own.
        api_key_env: the environment variable that holds the key; by default ``OPENAI_API_KEY``.
        query_prompt: put before every query.
        passage_prompt: put before every passage.
        normalize: scale vectors to length 1, so that scores are cosines.
        max_characters: how much of a text is sent; the rest is left out. OpenAI refuses texts of more than 8,192 tokens.
        batch_size: the most texts in a request.
        calls_at_once: the most requests under way at the same time.
        calls_per_minute: the most requests that begin within a minute, evenly spaced; None for no limit.
        retries: the most retries after a failure that may be temporary.
        backoff: seconds before the first retry, doubled with each further one (at most 60 s, with jitter).
        timeout: seconds for an attempt, from the connection to the last byte of the answer.
        max_calls: the most requests in total, including retries; the next one is an error. None for no limit.
        cache_dir: where vectors are stored; by default ``nlp-retrieval/vectors`` in the user's cache folder.

    Raises:
        ConfigurationError: the key's variable is not set, or a setting holds a key itself.
    """

    name = "openai"
    manifest_may_set = ENDPOINT_RULES | may_set(model=given("send texts to the embedding model"))

    def __init__(
        self,
        model: Annotated[str, Field(min_length=1)],
        dimension: Annotated[int, Field(ge=1)] | None = None,
        api_key_env: str | None = None,
        query_prompt: str = "",
        passage_prompt: str = "",
        normalize: bool = True,
        max_characters: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1, le=2048)] = 128,
        calls_at_once: Annotated[int, Field(ge=1)] = 4,
        calls_per_minute: Annotated[int, Field(ge=1)] | None = None,
        retries: Annotated[int, Field(ge=0)] = 4,
        backoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0,
        timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0,
        max_calls: Annotated[int, Field(ge=0)] | None = None,
        cache_dir: str | Path | None = None,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self.api_key_env = api_key_env
        self.query_prompt = query_prompt
        self.passage_prompt = passage_prompt
        self.normalize = normalize
        self.max_characters = max_characters
        self.batch_size = batch_size
        self.calls_at_once = calls_at_once
        self.calls_per_minute = calls_per_minute
        self.retries = retries
        self.backoff = backoff
        self.timeout = timeout
        self.max_calls = max_calls
        self.cache_dir = cache_dir
        self._prepare()

    @property
    def server(self) -> str:
        return OPENAI

    @property
    def key_variable(self) -> str:
        return self.api_key_env or "OPENAI_API_KEY"

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | ({} if self.dimension is None else {"dimensions": self.dimension})
