"""Encoders behind an endpoint: requests that are limited, retried, counted and checked, and vectors kept on disk."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from nlp_retrieval.core.components.component import digest_of_key
from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.files.cache import ContentCache, cache_folder
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import LONGEST_VECTOR, BaseEncoder, Vectors
from nlp_retrieval.errors import ModelError
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.lm.endpoint import DEFAULT_ENDPOINT, ENDPOINT_RULES, EndpointCalls, ModelEndpoint, first_fault, side_by_side

_LARGEST_PER_TEXT, _LARGEST_BESIDE = 2**20, 2**16
"""Bytes of an answer; 20,000 dimensions in full length take half a MiB."""

_MOST_TOKENS = 2**40


class Embedded(NamedTuple):
    """Vectors float32, of texts in their order or of one, and the tokens they took; 0 if unknown."""

    vectors: Vectors
    tokens: int


class _Embedding(BaseModel):
    model_config = ConfigDict(strict=True)
    index: int
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)]


class _Embeddings(BaseModel):
    data: list[_Embedding]
    usage: Any = None


def _read_embeddings(body: bytes, n_texts: int) -> Embedded:
    """Read the answer to a request of ``n_texts`` texts; a ValueError says, as half a sentence, why it is none."""
    try:
        answer = _Embeddings.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
    entries = sorted(answer.data, key=lambda entry: entry.index)
    if [entry.index for entry in entries] != list(range(n_texts)):
        raise ValueError(f'its {len(entries):,} entries of "data" do not have each "index" from 0 to {n_texts - 1} once')
    if len({len(entry.embedding) for entry in entries}) > 1:
        raise ValueError("it holds vectors of several dimensions")
    vectors = np.array([entry.embedding for entry in entries], np.float64)
    if not (np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) <= LONGEST_VECTOR).all():
        raise ValueError("it holds numbers that are too large")
    tokens = answer.usage.get("prompt_tokens") if isinstance(answer.usage, dict) else None
    return Embedded(vectors.astype(np.float32), tokens if type(tokens) is int and 0 <= tokens < _MOST_TOKENS else 0)


_DIGEST, _TOKENS = 32, 8
"""Bytes of a kept vector's file: a checksum of its key and content, the tokens of the text, and then the vector."""

OPENAI = "https://api.openai.com/v1"


class HttpEncoder(BaseEncoder):
    """An encoder behind any OpenAI-compatible endpoint (vLLM, Text Embeddings Inference, Ollama, llama.cpp, a gateway).

    Vectors are scaled to length 1, so that scores are cosines, and kept on disk by server, model and text, so that a text is
    sent only once. Requests and tokens are counted like those of language models; the price is that of the model
    ``http/<model>``.

    Args:
        base_url: the URL that ``/embeddings`` is appended to (``http://localhost:8000/v1``). Redirects are not followed.
        model: name of the model, as the server knows it.
        api_key_env: the environment variable that holds the key; by default none is sent.
        dimension: required of the vectors; by default the dimension of the first one counts for all others.
        query_prompt: put before every query.
        passage_prompt: put before every passage.
        batch_size: the most texts in a request.
        endpoint: the limits of requests; in a file a mapping, such as ``{retries: 2, timeout: 300}``.
        cache_dir: where vectors are stored; by default ``nlp-retrieval/vectors`` in the user's cache folder.

    Raises:
        ConfigurationError: the key's variable is not set, a setting holds a key itself, or ``base_url`` is no URL of a server.

    Examples:
        >>> FaissRetriever(HttpEncoder("http://localhost:8080/v1", "BAAI/bge-m3"))
        FaissRetriever(encoder=HttpEncoder(base_url='http://localhost:8080/v1', model='BAAI/bge-m3'))
    """

    name = "http"
    manifest_may_set = ENDPOINT_RULES | may_set(
        *("model", "dimension", "query_prompt", "passage_prompt", "batch_size"),
        cache_dir=given("keep vectors in"),
        base_url=given("send texts to the server"),
    )
    search_only = frozenset({"query_prompt", "batch_size", "api_key_env", "cache_dir", "endpoint"})
    in_workers = False

    def __init__(
        self,
        base_url: str,
        model: Annotated[str, Field(min_length=1)],
        api_key_env: str | None = None,
        dimension: Annotated[int, Field(ge=1)] | None = None,
        query_prompt: str = "",
        passage_prompt: str = "",
        batch_size: Annotated[int, Field(ge=1, le=2048)] = 64,
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
        cache_dir: str | Path | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.api_key_env = api_key_env
        self.dimension = dimension
        self.query_prompt = query_prompt
        self.passage_prompt = passage_prompt
        self.batch_size = batch_size
        self.endpoint = ModelEndpoint.model_validate(endpoint)
        self.cache_dir = cache_dir
        self._counter = CallCounter(f"{self.name}/{model}")
        self._calls = EndpointCalls(type(self).__name__, self.base_url, "embeddings", api_key_env, self.endpoint, self._counter)
        folder = cache_folder() / "vectors" if cache_dir is None else expanded(cache_dir)
        self._stored = ContentCache(folder, ".vector", "vectors of the endpoint", durable=False)
        self._lock = Lock()
        self._learnt = dimension

    def check_ready(self) -> None:
        self._calls.check_ready()

    @property
    def settings(self) -> dict[str, Any]:
        return {"model": self.model, "encoding_format": "float"}

    @property
    def counts(self) -> CallCounts:
        """The requests so far: a call is a request, a cache hit a text whose vector was on disk."""
        return self._counter.counts

    def model_fingerprint(self) -> str:
        return f"{self.model} at {self.base_url}"

    def provenance(self) -> dict[str, str]:
        return {self.model: self.base_url}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._encode(check_queries(queries), self.query_prompt)

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"), self.passage_prompt)

    def _encode(self, texts: list[str], prompt: str) -> Vectors:
        inputs = [prompt + text or " " for text in texts]  # servers refuse an empty text
        vector_of: dict[str, Vectors] = {}
        for text in dict.fromkeys(inputs):
            kept = self._find(text)
            if kept is not None and len(kept.vectors) == self._dimension(len(kept.vectors)):
                vector_of[text] = kept.vectors
                count(self._counter, CallCounts(cache_hits=1, kept_tokens_in=kept.tokens))
        missing = [text for text in dict.fromkeys(inputs) if text not in vector_of]
        batches = [missing[first : first + self.batch_size] for first in range(0, len(missing), self.batch_size)]
        for batch, answer in zip(batches, side_by_side(self._ask, batches, self.endpoint.calls_at_once), strict=True):
            vector_of |= dict(zip(batch, answer, strict=True))
        vectors = np.array([vector_of[text] for text in inputs], np.float32).reshape(len(inputs), self._learnt or 0)
        lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))  # the same in any batch
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), np.float32)

    def _ask(self, texts: list[str], go_on: Callable[[], bool]) -> Vectors:
        """Ask the server; its answer is stored even if a later request fails."""
        most = len(texts) * _LARGEST_PER_TEXT + _LARGEST_BESIDE
        answer = self._calls.ask(self.settings | {"input": texts}, partial(_read_embeddings, n_texts=len(texts)), most, go_on)
        count(self._counter, CallCounts(tokens_in=answer.tokens))
        dimension = answer.vectors.shape[1]
        if (before := self._dimension(dimension)) != dimension:
            raise ModelError(
                f"{self.base_url}: {self.model} gave vectors of dimension {dimension}, where dimension= or the vectors before "
                f"(kept in {self._stored.folder}) say {before}; if {dimension} is right, pass "
                f"dimension={dimension} or another cache_dir, and index again"
            )
        for text, vector, tokens in zip(texts, answer.vectors, _shares(answer.tokens, texts), strict=True):
            key = self._key_of(text)
            content = tokens.to_bytes(_TOKENS, "little") + np.ascontiguousarray(vector, "<f4").tobytes()
            self._stored.keep(key, hashlib.sha256(key + content).digest() + content)
        return answer.vectors

    def _find(self, text: str) -> Embedded | None:
        """The kept vector of a text; None if there is none, or its file is damaged."""
        key = self._key_of(text)
        file = self._stored.find(key) or b""
        checksum, content = file[:_DIGEST], file[_DIGEST:]
        if len(content) <= _TOKENS or checksum != hashlib.sha256(key + content).digest():
            return None
        vector = np.frombuffer(content, "<f4", offset=_TOKENS).astype(np.float32)
        return Embedded(vector, int.from_bytes(content[:_TOKENS], "little"))

    def _key_of(self, text: str) -> bytes:
        return digest_of_key([{"url": self.base_url} | self.settings, text])

    def _dimension(self, dimension: int) -> int:
        """The dimension that was declared or learnt; if neither, that of the first vector, which is learnt now."""
        with self._lock:
            self._learnt = self._learnt or dimension
            return self._learnt


class OpenAIEncoder(HttpEncoder):
    """An embedding model of OpenAI (https://platform.openai.com/docs/guides/embeddings).

    :class:`HttpEncoder` describes storing, counting and retries; the price is that of the model ``openai/<model>``.

    Args:
        model: its name, such as ``text-embedding-3-small``.
        dimension: requested if the model can shorten its vectors (Matryoshka), and checked; by default the model's own.
        api_key_env: the environment variable that holds the key.
        batch_size: the most texts in a request.
        endpoint: the limits of requests; in a file a mapping, such as ``{retries: 2, timeout: 300}``.
        cache_dir: where vectors are stored; by default ``nlp-retrieval/vectors`` in the user's cache folder.

    Raises:
        ConfigurationError: the key's variable is not set, or a setting holds a key itself.

    Examples:
        >>> FaissRetriever(OpenAIEncoder("text-embedding-3-small", dimension=512))
        FaissRetriever(encoder=OpenAIEncoder(model='text-embedding-3-small', dimension=512))
    """

    name = "openai"
    manifest_may_set = ENDPOINT_RULES | may_set(
        *("dimension", "batch_size"),
        cache_dir=given("keep vectors in"),
        model=given("send texts to the embedding model"),
    )
    search_only = frozenset({"batch_size", "api_key_env", "cache_dir", "endpoint"})

    def __init__(
        self,
        model: Annotated[str, Field(min_length=1)],
        dimension: Annotated[int, Field(ge=1)] | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        batch_size: Annotated[int, Field(ge=1, le=2048)] = 128,
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
        cache_dir: str | Path | None = None,
    ) -> None:
        super().__init__(OPENAI, model, api_key_env, dimension, batch_size=batch_size, endpoint=endpoint, cache_dir=cache_dir)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | ({} if self.dimension is None else {"dimensions": self.dimension})


def _shares(tokens: int, texts: list[str]) -> list[int]:
    """The tokens of a request, divided among its texts by their length, with the same sum."""
    ends = np.cumsum([len(text) for text in texts])
    bounds = [0, *(tokens * int(end) // int(ends[-1]) for end in ends)]
    return [after - before for before, after in itertools.pairwise(bounds)]
