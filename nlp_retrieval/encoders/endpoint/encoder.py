"""The base of encoders behind an OpenAI-compatible endpoint: what is kept is not asked for, and all dimensions are equal.

A key is named by its environment variable and never stored: it is in no configuration, ``repr``, file or message.
"""

from __future__ import annotations

import itertools
import os
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.core.secrets import HIDDEN, without_secrets
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.endpoint.calls import EmbeddingCalls, EmbeddingEndpoint
from nlp_retrieval.encoders.endpoint.kept_vectors import KeptVectors
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count


class EndpointEncoder(BaseEncoder):
    """What the encoders behind an endpoint share; :class:`HttpEncoder` describes the parameters."""

    search_only = frozenset(
        {"query_prompt", "batch_size", "calls_at_once", "calls_per_minute", "retries", "backoff", "timeout", "max_calls"}
        | {"api_key_env", "cache_dir"}
    )

    model: str
    api_key_env: str | None
    dimension: int | None
    query_prompt: str
    passage_prompt: str
    normalize: bool
    max_characters: int | None
    batch_size: int
    calls_at_once: int
    calls_per_minute: int | None
    retries: int
    backoff: float
    timeout: float
    max_calls: int | None
    cache_dir: str | Path | None

    @property
    @abstractmethod
    def server(self) -> str:
        """The URL that ``/embeddings`` is added to."""

    @property
    def key_variable(self) -> str | None:
        """The environment variable of the key; None where none is sent."""
        return self.api_key_env

    @property
    def settings(self) -> dict[str, Any]:
        """What a request says besides its texts."""
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
        """How many passages are longer than ``max_characters``; what the server leaves out is not known."""
        most = self.max_characters
        return 0 if most is None else sum(len(passage) > most for passage in passages)

    def hidden(self, message: str) -> str:
        """Return a message without the key, and without anything that looks like one."""
        key = os.environ.get(self.key_variable or "", "").strip()
        return str(without_secrets(message.replace(key, HIDDEN) if key else message))

    def _prepare(self) -> None:
        """Check what a type hint cannot, at the end of a constructor."""
        name, variable = type(self).__name__, self.api_key_env
        if variable is not None and (
            not variable.isascii() or not variable.isidentifier() or HIDDEN in without_secrets(variable)
        ):
            raise ConfigurationError(
                f"{name}: api_key_env must name an environment variable, such as OPENAI_API_KEY; what was given is not such a "
                "name (it is not shown, because it may be a key)"
            )
        self._counter = CallCounter(f"{self.name}/{self.model}")
        self._lock = Lock()
        self._learnt: tuple[int, str] | None = None if self.dimension is None else (self.dimension, "dimension= says")
        self._key()
        endpoint = EmbeddingEndpoint(
            self.server, self.settings, self._key, self.hidden, f"check the key in {self.key_variable or 'api_key_env'}"
        )
        self._calls = EmbeddingCalls(endpoint, self, self._counter)
        folder = None if self.cache_dir is None else Path(self.cache_dir).expanduser()
        self._vectors = KeptVectors(folder, {"url": self.server} | self.settings)

    def _key(self) -> str | None:
        variable = self.key_variable
        if variable is None:
            return None
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ConfigurationError(
                f"{type(self).__name__}: {self.model} needs a key, and the environment variable {variable} is not set; set it, "
                "or name another with api_key_env"
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"{type(self).__name__}: what {variable} holds is no key (it is not shown); set it again")
        return key

    def _encode(self, texts: list[str], prompt: str) -> Vectors:
        most = self.max_characters
        asked = [prompt + text[:most] or " " for text in texts]  # servers refuse a text without a character
        found: dict[str, Vectors] = {}
        missing = []
        for text in dict.fromkeys(asked):
            kept = self._vectors.find(text)
            if kept is None or len(kept.vector) != self._known(len(kept.vector), f"those kept in {self._vectors.folder} have"):
                missing.append(text)
                continue
            found[text] = kept.vector
            count(self._counter, CallCounts(cache_hits=1, kept_tokens_in=kept.tokens))
        for text, vector in zip(missing, self._asked(missing), strict=True):
            found[text] = vector
        if not asked:
            return np.zeros((0, 0 if self._learnt is None else self._learnt[0]), np.float32)
        vectors = np.stack([found[text] for text in asked])
        if self.normalize:
            lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))  # the same in any batch
            vectors = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return vectors

    def _asked(self, texts: list[str]) -> list[Vectors]:
        """Ask the server, ``batch_size`` texts in a request; what came is kept, also where a later request fails."""
        batches = [texts[first : first + self.batch_size] for first in range(0, len(texts), self.batch_size)]
        failed: list[BaseException] = []

        def ask(batch: list[str]) -> list[Vectors]:
            try:
                answer = self._calls.ask(batch, lambda: not failed)
                self._require(answer.vectors.shape[1])
            except BaseException as error:
                failed.append(error)
                raise
            for text, vector, tokens in zip(batch, answer.vectors, _shares(answer.tokens, batch), strict=True):
                self._vectors.keep(text, vector, tokens)
            return list(answer.vectors)

        if len(batches) < 2 or self.calls_at_once == 1:
            return [vector for batch in batches for vector in ask(batch)]
        with ThreadPoolExecutor(min(self.calls_at_once, len(batches)), thread_name_prefix="nlp_retrieval-encoder") as pool:
            futures = [pool.submit(copy_context().run, ask, batch) for batch in batches]
            try:
                return [vector for future in futures for vector in future.result()]
            except BaseException as error:
                failed.append(error)
                pool.shutdown(wait=False, cancel_futures=True)
                raise failed[0] from None

    def _known(self, found: int, where: str) -> int:
        """The dimension that was declared or learnt; if neither, that of the first vector, which is learnt now."""
        with self._lock:
            if self._learnt is None:
                self._learnt = (found, where)
            return self._learnt[0]

    def _require(self, found: int) -> None:
        """Raise an error unless the server's vectors have the dimension that was declared or learnt."""
        if found == self._known(found, "those before had"):
            return
        expected, where = self._learnt or (0, "")
        raise ModelError(
            f"{self.server}: {self.model} gave vectors of dimension {found}, and {where} {expected}; one index holds one "
            "dimension: name the model that was meant, or set dimension to what the server gives, and index again (if it has "
            "another model of this name now, use another cache_dir)"
        )


def _shares(tokens: int, texts: list[str]) -> list[int]:
    """The tokens of a request, divided among its texts by their length; the sum is the same."""
    ends = np.cumsum([len(text) for text in texts])
    bounds = [0, *(tokens * int(end) // int(ends[-1]) for end in ends)]
    return [after - before for before, after in itertools.pairwise(bounds)]
