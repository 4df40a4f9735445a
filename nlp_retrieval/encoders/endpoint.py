"""Encoders behind an endpoint: requests that are limited, retried, counted and checked, and vectors kept on disk."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.files.cache import ContentCache, cache_folder, digest_of_key
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import LONGEST_VECTOR, BaseEncoder, Vectors
from nlp_retrieval.errors import ModelError
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.lm.endpoint import (
    DEFAULT_ENDPOINT,
    ENDPOINT_RULES,
    EndpointCalls,
    EndpointKey,
    LimitedCalls,
    ModelEndpoint,
    check_url,
    side_by_side,
)

# Reading the answer of an embeddings endpoint: untrusted bytes become vectors, or an error with the reason.

LARGEST_PER_TEXT = 2**20
"""Bytes of an answer allowed per text; 20,000 dimensions in full length take half of it."""
LARGEST_BESIDE = 2**16
"""Bytes allowed in addition."""

_MOST_TOKENS = 2**40


class EmbeddingAnswer(NamedTuple):
    """``[texts, dimension]`` float32 in the order of the texts, and the tokens used; 0 if the server does not say."""

    vectors: Vectors
    tokens: int


def read_embeddings(body: bytes, n_texts: int) -> EmbeddingAnswer:
    """Read the answer to a request of ``n_texts`` texts; a ValueError gives the reason why it is none, as half a sentence."""
    content = parse_json(body, max_bytes=n_texts * LARGEST_PER_TEXT + LARGEST_BESIDE)
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list):
        raise ValueError('it has no list "data"')  # noqa: TRY004 -- the fault is in the text
    entries = [entry if isinstance(entry, dict) else {} for entry in data]
    numbers = [entry.get("index") for entry in entries]
    if len(data) != n_texts or {number for number in numbers if type(number) is int} != set(range(n_texts)):
        raise ValueError(f'its {len(data):,} entries of "data" do not have each "index" from 0 to {n_texts - 1} once')
    rows = [entry.get("embedding") for entry in sorted(entries, key=lambda entry: int(entry["index"]))]
    usage = content.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return EmbeddingAnswer(_matrix(rows), tokens if type(tokens) is int and 0 <= tokens < _MOST_TOKENS else 0)


def _matrix(rows: list[Any]) -> Vectors:
    if not all(isinstance(row, list) and row and {type(number) for number in row} <= {int, float} for row in rows):
        raise ValueError('an entry of "data" has no list of numbers "embedding"')
    if len({len(row) for row in rows}) > 1:
        raise ValueError("it holds vectors of several dimensions")
    try:
        vectors = np.array(rows, np.float64)
    except OverflowError:
        raise ValueError("it holds numbers that are too large") from None
    if not (np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) <= LONGEST_VECTOR).all():
        raise ValueError("it holds numbers that are too large")
    return vectors.astype(np.float32)


# Vectors of an endpoint on disk: one file each, named by a hash of server, model and text.
#
# A file holds a checksum of its key and content, the tokens of the text, and the vector; one that does not fit is a miss.

_DIGEST, _TOKENS = 32, 8


class KeptVector(NamedTuple):
    """A vector as the server returned it, and the tokens its text took; 0 if unknown."""

    vector: Vectors
    tokens: int


class KeptVectors:
    """Vectors by text; ``identity`` is all else that decides them."""

    def __init__(self, folder: Path | None, identity: dict[str, object]) -> None:
        folder = cache_folder() / "vectors" if folder is None else folder
        self.files = ContentCache(folder, ".vector", "vectors of the endpoint", durable=False)
        self._identity = identity

    def path_of(self, text: str) -> Path:
        """Return the file of a text."""
        return self.files.path_of(self._key(text))

    def find(self, text: str) -> KeptVector | None:
        """Return the vector of a text, or None."""
        key = self._key(text)
        content = self.files.find(key) or b""
        checksum, tokens, vector = content[:_DIGEST], content[_DIGEST : _DIGEST + _TOKENS], content[_DIGEST + _TOKENS :]
        if not vector or checksum != hashlib.sha256(key + tokens + vector).digest():
            return None
        return KeptVector(np.frombuffer(vector, "<f4").astype(np.float32), int.from_bytes(tokens, "little"))

    def keep(self, text: str, vector: Vectors, tokens: int) -> None:
        """Store a vector; if it cannot be written, warn once and continue."""
        key = self._key(text)
        body = tokens.to_bytes(_TOKENS, "little") + np.ascontiguousarray(vector, "<f4").tobytes()
        self.files.keep(key, hashlib.sha256(key + body).digest() + body)

    def _key(self, text: str) -> bytes:
        return digest_of_key([self._identity, text])


# Encoders behind an OpenAI-compatible endpoint: stored vectors are not requested again, and all dimensions are equal.
#
# A key is named by its environment variable and never stored: it is in no configuration, ``repr``, file or message.

_RULES = ENDPOINT_RULES | may_set(
    *("dimension", "query_prompt", "passage_prompt", "normalize", "max_characters", "batch_size"),
    cache_dir=given("keep vectors in"),
)
OPENAI = "https://api.openai.com/v1"


class HttpEncoder(BaseEncoder):
    """An encoder behind any OpenAI-compatible endpoint (vLLM, Text Embeddings Inference, Ollama, llama.cpp, a gateway).

    Vectors are kept on disk by server, model and text, so that a text is sent only once, and a search for a known query sends
    nothing. Requests and tokens are counted like those of language models, in benchmarks too; the price is that of the model
    ``http/<model>``.

    Args:
        base_url: the URL that ``/embeddings`` is appended to (``http://localhost:8000/v1``). Redirects are not followed.
        model: name of the model, as the server knows it.
        api_key_env: the environment variable that holds the key; by default none is sent.
        dimension: required of the vectors; by default the dimension of the first one counts for all others.
        query_prompt: put before every query.
        passage_prompt: put before every passage.
        normalize: scale vectors to length 1, so that scores are cosines.
        max_characters: most characters of a text that are sent; the rest is left out. By default all of it.
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
    manifest_may_set = _RULES | may_set("model", base_url=given("send texts to the server"))
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
        normalize: bool = True,
        max_characters: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1, le=2048)] = 64,
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
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
        self.endpoint = ModelEndpoint.model_validate(endpoint)
        self.cache_dir = cache_dir
        check_url(type(self).__name__, base_url)
        self._counter = CallCounter(f"{self.name}/{model}")
        self._lock = Lock()
        self._learnt: tuple[int, str] | None = None if dimension is None else (dimension, "dimension= says")
        key = EndpointKey(type(self).__name__, model, self.key_variable)
        calls = LimitedCalls(self.endpoint, self._counter)
        self._calls = EndpointCalls(self.server, "embeddings", "an OpenAI-compatible API", key, calls)
        folder = None if cache_dir is None else Path(cache_dir).expanduser()
        self._vectors = KeptVectors(folder, {"url": self.server} | self.settings)

    @property
    def server(self) -> str:
        """The URL that ``/embeddings`` is added to."""
        return self.base_url.rstrip("/")

    @property
    def key_variable(self) -> str | None:
        """The environment variable of the key; None if no key is sent."""
        return self.api_key_env

    def check_ready(self) -> None:
        """Require httpx2, and the key."""
        self._calls.check_ready()

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of a request besides its texts."""
        return {"model": self.model, "encoding_format": "float"}

    @property
    def counts(self) -> CallCounts:
        """The requests so far: a call is a request, a cache hit a text whose vector was on disk."""
        return self._counter.counts

    def model_fingerprint(self) -> str:
        return f"{self.model} at {self.server}"

    def provenance(self) -> dict[str, str]:
        return {self.model: self.server}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._encode(check_queries(queries), self.query_prompt)

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"), self.passage_prompt)

    def cut_passages(self, passages: list[str]) -> int:
        """Return how many passages are longer than ``max_characters``; the server's own limit is unknown."""
        most = self.max_characters
        return 0 if most is None else sum(len(passage) > most for passage in passages)

    def _encode(self, texts: list[str], prompt: str) -> Vectors:
        most = self.max_characters
        inputs = [prompt + text[:most] or " " for text in texts]  # servers refuse an empty text
        vector_of: dict[str, Vectors] = {}
        missing = []
        stored = f"those kept in {self._vectors.files.folder} have"
        for text in dict.fromkeys(inputs):
            cached = self._vectors.find(text)
            if cached is None or len(cached.vector) != self._expected_dimension(len(cached.vector), stored):
                missing.append(text)
                continue
            vector_of[text] = cached.vector
            count(self._counter, CallCounts(cache_hits=1, kept_tokens_in=cached.tokens))
        for text, vector in zip(missing, self._request_all(missing), strict=True):
            vector_of[text] = vector
        if not inputs:
            return np.zeros((0, 0 if self._learnt is None else self._learnt[0]), np.float32)
        vectors = np.stack([vector_of[text] for text in inputs])
        if self.normalize:
            lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))  # the same in any batch
            vectors = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return vectors

    def _request_all(self, texts: list[str]) -> list[Vectors]:
        """Ask the server, ``batch_size`` texts per request; answers are stored even if a later request fails."""
        batches = [texts[first : first + self.batch_size] for first in range(0, len(texts), self.batch_size)]

        def ask(batch: list[str], go_on: Callable[[], bool]) -> list[Vectors]:
            read_answer = partial(read_embeddings, n_texts=len(batch))
            most = len(batch) * LARGEST_PER_TEXT + LARGEST_BESIDE
            answer = self._calls.ask(self.settings | {"input": batch}, read_answer, most, go_on)
            self._require(answer.vectors.shape[1])
            for text, vector, tokens in zip(batch, answer.vectors, _shares(answer.tokens, batch), strict=True):
                self._vectors.keep(text, vector, tokens)
            return list(answer.vectors)

        return [vector for vectors in side_by_side(ask, batches, self.endpoint.calls_at_once) for vector in vectors]

    def _expected_dimension(self, dimension: int, where: str) -> int:
        """The dimension that was declared or learnt; if neither, that of the first vector, which is learnt now."""
        with self._lock:
            if self._learnt is None:
                self._learnt = (dimension, where)
            return self._learnt[0]

    def _require(self, dimension: int) -> None:
        """Raise an error unless the server's vectors have the dimension that was declared or learnt."""
        if dimension == self._expected_dimension(dimension, "those before had"):
            return
        expected, where = self._learnt or (0, "")
        raise ModelError(
            f"{self.server}: {self.model} gave vectors of dimension {dimension}, and {where} {expected}; one index holds one "
            "dimension: name the model that was meant, or set dimension to what the server gives, and index again (if it has "
            "another model of this name now, use another cache_dir)"
        )


class OpenAIEncoder(HttpEncoder):
    """An embedding model of OpenAI (https://platform.openai.com/docs/guides/embeddings).

    :class:`HttpEncoder` describes storing, counting and retries; the price is that of the model ``openai/<model>``.

    Args:
        model: its name, such as ``text-embedding-3-small``.
        dimension: requested if the model can shorten its vectors (Matryoshka), and checked; by default the model's own.
        api_key_env: the environment variable that holds the key; by default ``OPENAI_API_KEY``.
        query_prompt: put before every query.
        passage_prompt: put before every passage.
        normalize: scale vectors to length 1, so that scores are cosines.
        max_characters: most characters of a text that are sent; the rest is left out. OpenAI refuses texts of more than 8,192
            tokens.
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
    manifest_may_set = _RULES | may_set(model=given("send texts to the embedding model"))

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
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
        cache_dir: str | Path | None = None,
    ) -> None:
        super().__init__(
            OPENAI,
            model,
            api_key_env,
            dimension,
            query_prompt,
            passage_prompt,
            normalize,
            max_characters,
            batch_size,
            endpoint,
            cache_dir,
        )

    @property
    def key_variable(self) -> str:
        return self.api_key_env or "OPENAI_API_KEY"

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | ({} if self.dimension is None else {"dimensions": self.dimension})


def _shares(tokens: int, texts: list[str]) -> list[int]:
    """The tokens of a request, divided among its texts by their length, with the same sum."""
    ends = np.cumsum([len(text) for text in texts])
    bounds = [0, *(tokens * int(end) // int(ends[-1]) for end in ends)]
    return [after - before for before, after in itertools.pairwise(bounds)]
