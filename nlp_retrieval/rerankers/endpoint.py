"""Rerankers behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.lm.endpoint import DEFAULT_ENDPOINT, ENDPOINT_RULES, EndpointCalls, ModelEndpoint, first_fault, side_by_side

# Reading the answer of a rerank endpoint: untrusted bytes become scores, or an error with the reason.

_LARGEST = float(np.finfo(np.float32).max)
_MOST_TOKENS = 2**40


class _Relevance(BaseModel):
    model_config = ConfigDict(strict=True)
    index: int
    relevance_score: Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]


class _Relevances(BaseModel):
    results: list[_Relevance]
    usage: Any = None
    meta: Any = None


class RerankAnswer(NamedTuple):
    """Scores in the order of the documents sent, and the tokens used; 0 if the server does not say."""

    scores: Scores
    tokens: int


def largest_answer(documents: list[str]) -> int:
    """Return the byte limit of an answer; some servers send the documents back, and JSON may escape each letter."""
    sent = sum(len(document.encode("utf-8", "surrogatepass")) for document in documents)
    return 6 * sent + 2**10 * len(documents) + 2**16


def read_scores(body: bytes, documents: list[str]) -> RerankAnswer:
    """Read the answer to a request."""
    try:
        answer = _Relevances.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
    entries = sorted(answer.results, key=lambda entry: entry.index)
    if [entry.index for entry in entries] != list(range(len(documents))):
        raise ValueError(f'its {len(entries):,} "results" do not have each "index" from 0 to {len(documents) - 1} once')
    return RerankAnswer(np.array([entry.relevance_score for entry in entries], np.float64), _tokens(answer))


def _tokens(answer: _Relevances) -> int:
    """Token count of Jina (``usage.total_tokens``) or Cohere (``meta.tokens.input_tokens``)."""
    of_cohere = answer.meta.get("tokens") if isinstance(answer.meta, dict) else None
    for counts, key in ((answer.usage, "total_tokens"), (of_cohere, "input_tokens")):
        value = counts.get(key) if isinstance(counts, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS:
            return int(value)
    return 0


# Reranking by a server: Cohere's and Jina's, and any other that speaks the same protocol.


class _Request(NamedTuple):
    """A query, and the pairs to ask about."""

    query: str
    pairs: list[int]


class HttpReranker(BaseReranker):
    """A reranker behind a Cohere- or Jina-compatible endpoint (Cohere, Jina, vLLM, llama.cpp, LocalAI, a gateway).

    The server's ``/rerank`` gets a query and documents, and returns a ``relevance_score`` for each, which is the score.
    Requests and tokens are counted like those of language models, in benchmarks too; the price is that of the model
    ``http/<model>``.

    Args:
        base_url: the URL that ``/rerank`` is appended to (``https://api.cohere.com/v2``, ``https://api.jina.ai/v1``,
            ``http://localhost:8000/v1``). Redirects are not followed.
        model: name of the model, as the server knows it.
        api_key_env: the environment variable that holds the key; by default none is sent.
        documents_per_call: the most passages in a request.
        endpoint: the limits of requests; in a file a mapping, such as ``{retries: 2, timeout: 300}``.
        blend: use of the incoming ranking: ``replace`` it, fuse with it by ``rank`` or by ``score``.

    Raises:
        ConfigurationError: the key's variable is not set, a setting holds a key itself, or ``base_url`` is no URL of a server.

    Examples:
        >>> Searcher(["bm25"], reranker=HttpReranker("http://localhost:8000/v1", "BAAI/bge-reranker-v2-m3"))
        Searcher(retrievers=[Bm25Retriever()], reranker=HttpReranker(base_url='http://localhost:8000/v1',
        model='BAAI/bge-reranker-v2-m3'))
    """

    name = "http"
    manifest_may_set = ENDPOINT_RULES | may_set(
        *("model", "documents_per_call", "blend"), base_url=given("send texts to the server")
    )
    search_only = frozenset({"documents_per_call", "api_key_env", "endpoint"})
    batch_size = 2**62  # all pairs of a call at once, so that those of a query are sent together

    def __init__(
        self,
        base_url: str,
        model: Annotated[str, Field(min_length=1)],
        api_key_env: str | None = None,
        documents_per_call: Annotated[int, Field(ge=1, le=1000)] = 100,
        endpoint: ModelEndpoint = DEFAULT_ENDPOINT,
        blend: Blend = "replace",
    ) -> None:
        self.base_url = base_url
        self.model = model
        self.api_key_env = api_key_env
        self.documents_per_call = documents_per_call
        self.endpoint = ModelEndpoint.model_validate(endpoint)
        self.blend: Blend = blend
        self._counter = CallCounter(f"{self.name}/{model}")
        self._calls = EndpointCalls(type(self).__name__, base_url, "rerank", api_key_env, self.endpoint, self._counter)

    def check_ready(self) -> None:
        """Require httpx2."""
        self._calls.check_ready()

    @property
    def counts(self) -> CallCounts:
        """The requests so far."""
        return self._counter.counts

    def calls_per_query(self) -> None:
        """Unknown: it depends on the number of candidates."""

    def provenance(self) -> dict[str, str]:
        return {self.model: self.base_url}

    def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Mapping[str, NDArray[np.floating]]:
        pairs_of: dict[str, list[int]] = {}
        for pair, query in enumerate(queries):
            pairs_of.setdefault(query, []).append(pair)
        size = self.documents_per_call
        requests = [
            _Request(query, pairs[first : first + size])
            for query, pairs in pairs_of.items()
            for first in range(0, len(pairs), size)
        ]
        texts = [item.text or " " for item in items]  # servers refuse an empty text
        scores = np.zeros(len(items))
        for request, answer in zip(
            requests, side_by_side(partial(self._ask, texts), requests, self.endpoint.calls_at_once), strict=True
        ):
            scores[request.pairs] = answer.scores
        return {"score": scores}

    def _ask(self, texts: list[str], request: _Request, go_on: Callable[[], bool]) -> RerankAnswer:
        documents = [texts[pair] for pair in request.pairs]
        body = {"model": self.model, "query": request.query or " ", "documents": documents, "top_n": len(documents)}
        answer = self._calls.ask(body, partial(read_scores, documents=documents), largest_answer(documents), go_on)
        count(self._counter, CallCounts(tokens_in=answer.tokens))
        return answer
