"""The base of encoders behind an OpenAI-compatible endpoint: what is kept is not asked for, and all dimensions are equal.

A key is named by its environment variable and never stored: it is in no configuration, ``repr``, file or message.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.endpoint.answer import LARGEST_BESIDE, LARGEST_PER_TEXT, read_embeddings
from nlp_retrieval.encoders.endpoint.kept_vectors import KeptVectors
from nlp_retrieval.errors import ModelError
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.lm.endpoint.calls import EndpointCalls, ModelEndpoint
from nlp_retrieval.lm.endpoint.keys import EndpointKey
from nlp_retrieval.lm.endpoint.parallel import side_by_side


class EndpointEncoder(BaseEncoder):
    """What the encoders behind an endpoint share; :class:`HttpEncoder` describes the parameters."""

    search_only = frozenset(
        {"query_prompt", "batch_size", "calls_at_once", "calls_per_minute", "retries", "backoff", "timeout", "max_calls"}
        | {"api_key_env", "cache_dir"}
    )

    in_workers = False

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

    def check_ready(self) -> None:
        """Require httpx, and the key."""
        self._calls.check_ready()

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

    def _prepare(self) -> None:
        """Check what a type hint cannot, at the end of a constructor."""
        self._counter = CallCounter(f"{self.name}/{self.model}")
        self._lock = Lock()
        self._learnt: tuple[int, str] | None = None if self.dimension is None else (self.dimension, "dimension= says")
        key = EndpointKey(type(self).__name__, self.model, self.key_variable)
        self._calls = EndpointCalls(
            ModelEndpoint(self.server, "embeddings", "an OpenAI-compatible API", key), self, self._counter
        )
        folder = None if self.cache_dir is None else Path(self.cache_dir).expanduser()
        self._vectors = KeptVectors(folder, {"url": self.server} | self.settings)

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

        def ask(batch: list[str], go_on: Callable[[], bool]) -> list[Vectors]:
            read = partial(read_embeddings, n_texts=len(batch))
            most = len(batch) * LARGEST_PER_TEXT + LARGEST_BESIDE
            answer = self._calls.ask(self.settings | {"input": batch}, read, most, go_on)
            self._require(answer.vectors.shape[1])
            for text, vector, tokens in zip(batch, answer.vectors, _shares(answer.tokens, batch), strict=True):
                self._vectors.keep(text, vector, tokens)
            return list(answer.vectors)

        return [vector for vectors in side_by_side(ask, batches, self.calls_at_once) for vector in vectors]

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
