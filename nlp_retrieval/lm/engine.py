"""Answers each request of DSPy: from disk, or from the server or client, with retries, limits and a count.

DSPy does the rest itself (signatures, demonstrations, parsing). Its own cache, which is pickle, and its retries are off. A
model's thoughts are removed: DSPy and the files get only the answer after them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from nlp_retrieval.core.components.component import digest_of_key
from nlp_retrieval.core.files.cache import ContentCache, cache_folder
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.lm.counting import CallCounts, count
from nlp_retrieval.lm.endpoint import FailedCallError, LimitedCalls
from nlp_retrieval.lm.reading import LONGEST_ANSWER, final_answer

try:
    import dspy
    from dspy import lm15
    from dspy._vendor.lm15.serde import request_to_dict
    from dspy._vendor.lm15.transports import StdlibTransport
    from dspy.clients.engines import LM15Engine
except ImportError as error:
    raise DependencyError(f"language models need DSPy: {install('llm')} ({error})") from None

__all__ = ["dspy"]

# Answers on disk: one JSON file each, named by a hash of the question, the model and its settings. A file holds the whole
# question with the answer. It is used only if it holds exactly the same question and no other user could have written it.

Values = dict[str, JsonValue]


class AnswerStore:
    """Answers by question, in a folder that is created with the first one; None for the default folder."""

    def __init__(self, folder: Path | None) -> None:
        self._files = ContentCache(folder or cache_folder() / "answers", ".json", "answers of the language model", durable=True)

    def find(self, question: Values) -> Values | None:
        """Return the stored answer to a question, or None."""
        try:
            entry = json.loads(self._files.find(digest_of_key(question)) or b"")
            if entry["question"] != question or not isinstance(entry["answer"]["text"], str):
                return None
        except (ValueError, RecursionError, KeyError, TypeError):
            return None
        return cast(Values, entry["answer"])

    def keep(self, question: Values, answer: Values) -> None:
        """Store an answer; if it cannot be written, warn once and continue."""
        content = json.dumps({"question": question, "answer": answer}, ensure_ascii=False, indent=1)
        self._files.keep(digest_of_key(question), content.encode("utf-8", "surrogatepass"))


_Scope = tuple[str, list[tuple[AnswerStore, Values, Values]]]
_scope: ContextVar[_Scope | None] = ContextVar("nlp_retrieval_answers", default=None)
"""What a question carries past DSPy: the fingerprint of the program that asks, and answers of the server."""


@contextmanager
def answers_kept_if_good(program: str) -> Iterator[Callable[[], None]]:
    """Answer from disk inside the block; answers of the server are stored when the given function is called."""
    fresh: list[tuple[AnswerStore, Values, Values]] = []

    def keep() -> None:
        while fresh:
            store, question, answer = fresh.pop()
            store.keep(question, answer)

    token = _scope.set((program, fresh))
    try:
        yield keep
    finally:
        _scope.reset(token)


# One attempt at a server, with a limit on the size of its answer; and one at a client.

LARGEST_ANSWER = 4 * 2**20
"""Bytes of one answer without its headers, after decompression; enough for a hundred thousand tokens."""

Complete = Callable[[Any], Any]
"""From a ``dspy.lm15.Request`` to a ``dspy.lm15.Response``."""


class _BoundedTransport(StdlibTransport):  # type: ignore[misc]  # DSPy has no types
    """A transport that reads at most :data:`LARGEST_ANSWER` bytes of the body of an answer."""

    def stream(self, request: Any) -> Any:
        response = super().stream(request)

        def chunks() -> Iterator[bytes]:
            remaining = LARGEST_ANSWER
            for chunk in response:
                remaining -= len(chunk)
                if remaining < 0:
                    raise lm15.LM15Error(f"the answer is longer than {LARGEST_ANSWER:,} bytes; the rest was not read")
                yield chunk

        return type(response)(
            status=response.status,
            reason=response.reason,
            headers=response.headers,
            http_version=response.http_version,
            chunks=chunks(),
            release=lambda body_consumed: response.close(),  # noqa: ARG005 -- the response knows itself whether it was read
        )


def server_of(model: str, base_url: str | None, key: str | None, seconds: float) -> Complete:
    """Return a function that asks a model's server, with this key and no other."""
    provider = LM15Engine(lm15.RouterConfig(env={})).resolve(model).provider
    transport = _BoundedTransport(read_timeout=seconds, write_timeout=seconds, pool_timeout=seconds)
    urls = {provider: base_url} if base_url is not None else None
    config = lm15.RouterConfig(env={}, api_keys={provider: key or "none"}, base_urls=urls, transport=transport)
    return cast(Complete, LM15Engine(config).complete)


def client_of(client: Any) -> Complete:
    """Return a function that asks an object with ``complete(prompt)``, or a ``dspy.LM`` with its own cache and retries."""

    def complete(request: Any) -> Any:
        prompt = _prompt_of(request)
        try:
            answer = client.complete(prompt) if hasattr(client, "complete") else client(prompt)[0]
        except Exception as error:
            raise lm15.LM15Error(f"complete() raised {type(error).__name__}: {error}") from error
        text = answer["text"] if isinstance(answer, dict) else getattr(answer, "text", answer)
        if not isinstance(text, str):
            raise lm15.LM15Error(
                f"complete() returned {type(answer).__name__}; it must return the answer as text, or an object with it as .text"
            )
        return _response(request, text)

    return complete


def _prompt_of(request: Any) -> str:
    """A request as one text; demonstrations, if there are any, as turns of a conversation."""
    system = request.system or ()
    parts = [system if isinstance(system, str) else "".join(part.text for part in system)] if system else []
    if len(request.messages) == 1:
        return "\n\n".join([*parts, request.messages[0].text])
    turns = [f"{message.role}:\n{message.text}" for message in request.messages]
    return "\n\n".join([*parts, *turns, "assistant:"])


def _response(request: Any, text: str) -> Any:
    message = lm15.Message.assistant(text)
    return lm15.Response(id=None, model=request.model, message=message, finish_reason="stop", usage=lm15.Usage())


_RETRIED = (lm15.RateLimitError, lm15.TimeoutError, lm15.ServerError, lm15.TransportError)


class Engine:
    """DSPy's access to the model: one request at a time, from any thread."""

    def __init__(self, send: Complete, identity: Values, calls: LimitedCalls, store: AnswerStore | None) -> None:
        self._send, self._identity, self._calls, self._store = send, identity, calls, store
        self.counter = calls.counter

    def sampled(self, rollout: int) -> Engine:
        """Return this engine for another sample, as DSPy's optimisers number them: stored answers alone are not shared."""
        return Engine(self._send, self._identity | {"rollout": rollout}, self._calls, self._store)

    def complete(self, request: Any) -> Any:
        """Answer a ``dspy.lm15.Request`` with a ``dspy.lm15.Response``."""
        scope = _scope.get()
        if scope is None or self._store is None:
            return self._asked(request)
        program, fresh = scope
        question = self._identity | {"program": program, "request": request_to_dict(request)}
        kept = self._store.find(question)
        if kept is not None:
            took = [tokens if isinstance(tokens := kept.get(side), int) else 0 for side in ("tokens_in", "tokens_out")]
            count(self.counter, CallCounts(cache_hits=1, kept_tokens_in=took[0], kept_tokens_out=took[1]))
            return _response(request, str(kept["text"]))
        response = self._asked(request)
        usage = response.usage
        answer: Values = {"text": response.message.text, "tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens}
        fresh.append((self._store, question, answer))
        return response

    def _asked(self, request: Any) -> Any:
        """The answer of the server or client, without the model's thoughts."""

        def attempt() -> Any:
            try:
                return self._send(request)
            except lm15.LM15Error as error:
                retry_after = getattr(error, "retry_after", None)
                seconds = float(retry_after) if isinstance(retry_after, int | float) and retry_after >= 0 else None
                raise FailedCallError(str(error), temporary=isinstance(error, _RETRIED), wait=seconds) from error

        try:
            response = self._calls.run(attempt)
        except FailedCallError as error:
            kind = lm15.TransportError if error.temporary else lm15.BillingError  # too late, or no further call is allowed
            raise error.__cause__ or kind(str(error)) from None
        usage = response.usage
        count(self.counter, CallCounts(tokens_in=usage.input_tokens or 0, tokens_out=usage.output_tokens or 0))
        text = final_answer("\n".join(part.text for part in response.message.parts if isinstance(part, lm15.TextPart)))
        if text is None or not text.strip():
            raise lm15.InvalidRequestError(
                "the answer cannot be used: it holds no text, or only the model's reasoning, which takes more of max_tokens"
            )
        return replace(response, message=lm15.Message.assistant(text[:LONGEST_ANSWER]))
