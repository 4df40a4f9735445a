"""Answers each request of DSPy: from disk, or from the server or client, with retries, limits and a count.

DSPy passes every request to an engine and does the rest itself (signatures, demonstrations, parsing). Its own cache, which is
pickle, and its retries are off. A model's thoughts are removed: DSPy and the files get only the answer after them. An answer is
stored only inside :func:`answers_kept_if_good`, and only if it was usable: other questions are asked again the next time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from nlp_retrieval.core.files.cache import ContentCache, cache_folder, digest_of_key
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.lm.counting import CallCounts, count
from nlp_retrieval.lm.endpoint import CallLimitReachedError, FailedCallError, LimitedCalls, within
from nlp_retrieval.lm.reading import final_answer

try:
    import dspy
    from dspy import lm15
    from dspy._vendor.lm15.transports import StdlibTransport
    from dspy.clients.engines import LM15Engine
    from dspy.utils.exceptions import LMError
except ImportError as error:
    raise DependencyError(f"language models need DSPy: {install('llm')} ({error})") from None

__all__ = ["LM15Engine", "LMError", "StdlibTransport", "dspy", "lm15"]

# Answers on disk: one JSON file each, named by a hash of the question, the model and its settings.
#
# A file holds the whole question with the answer. It is used only if it holds exactly the same question and no other user could
# have written it; anything else is a miss.

Question = dict[str, JsonValue]
Answer = dict[str, JsonValue]

_FORMAT = 1


class AnswerStore:
    """Answers by question, in a folder that is created with the first one; None for the default folder."""

    def __init__(self, folder: Path | None) -> None:
        folder = folder or cache_folder() / "answers"
        self._files = ContentCache(folder, ".json", "answers of the language model", durable=True)

    def find(self, question: Question) -> Answer | None:
        """Return the stored answer to a question, or None."""
        try:
            entry = json.loads(self._files.find(digest_of_key(question)) or b"")
            if entry["format"] != _FORMAT or entry["question"] != question or not isinstance(entry["answer"]["text"], str):
                return None
        except (ValueError, RecursionError, KeyError, TypeError):
            return None
        answer: Answer = entry["answer"]
        return answer

    def keep(self, question: Question, answer: Answer) -> None:
        """Store an answer; if it cannot be written, warn once and continue."""
        content = json.dumps({"format": _FORMAT, "question": question, "answer": answer}, ensure_ascii=False, indent=1)
        self._files.keep(digest_of_key(question), content.encode("utf-8", "surrogatepass"))


@dataclass
class AnswerScope:
    """One question, from asking to judging its answer; ``program`` is the fingerprint of the program that asks."""

    program: str
    fresh: list[tuple[AnswerStore, Question, Answer]] = field(default_factory=list)

    def keep(self) -> None:
        """Store the server's answers, which were usable."""
        while self.fresh:
            store, question, answer = self.fresh.pop()
            store.keep(question, answer)


_scope: ContextVar[AnswerScope | None] = ContextVar("nlp_retrieval_answers", default=None)
"""What a question carries past DSPy."""


@contextmanager
def answers_kept_if_good(program: str) -> Iterator[AnswerScope]:
    """Answer from disk inside the block; answers of the server are stored when ``keep`` of the scope is called."""
    scope = AnswerScope(program)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


# One attempt at a server, with a limit on the size of its answer; and one at a client.

LARGEST_ANSWER = 4 * 2**20
"""Bytes of one answer without its headers; enough for a hundred thousand tokens."""


class BoundedTransport:
    """A transport that reads at most :data:`LARGEST_ANSWER` bytes of the body of an answer, after decompression."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.close = transport.close

    def stream(self, request: Any) -> Any:
        """Send a request."""
        response = self._transport.stream(request)
        return type(response)(
            status=response.status,
            reason=response.reason,
            headers=response.headers,
            http_version=response.http_version,
            chunks=self._chunks(response),
            release=lambda body_consumed: response.close(),  # noqa: ARG005 -- the response knows itself whether it was read
        )

    def _chunks(self, response: Any) -> Iterator[bytes]:
        remaining = LARGEST_ANSWER
        for chunk in response:
            remaining -= len(chunk)
            if remaining < 0:
                raise lm15.LM15Error(f"the answer is longer than {LARGEST_ANSWER:,} bytes; the rest was not read")
            yield chunk


class ClientWire:
    """Asks an object with a method ``complete(prompt)``, or a ``dspy.LM`` with its own cache, retries and settings."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def complete(self, request: Any) -> Any:
        """Answer a ``dspy.lm15.Request``."""
        prompt = _prompt_of(request)
        try:
            answer = self._client.complete(prompt) if hasattr(self._client, "complete") else self._client(prompt)[0]
        except Exception as error:
            raise lm15.LM15Error(f"complete() raised {type(error).__name__}: {error}") from error
        text = answer["text"] if isinstance(answer, dict) else getattr(answer, "text", answer)
        if not isinstance(text, str):
            raise lm15.LM15Error(
                f"complete() returned {type(answer).__name__}; it must return the answer as text, or an object with it as .text"
            )
        return _response(request, text)

    def close(self) -> None:
        """Do nothing: the client is its owner's."""


def _prompt_of(request: Any) -> str:
    """A request as one text; demonstrations, if there are any, as turns of a conversation."""
    parts = [] if request.system is None else [_text(request.system)]
    if len(request.messages) == 1:
        return "\n\n".join([*parts, request.messages[0].text])
    turns = [f"{message.role}:\n{message.text}" for message in request.messages]
    return "\n\n".join([*parts, *turns, "assistant:"])


def _response(request: Any, text: str) -> Any:
    message = lm15.Message.assistant(text)
    return lm15.Response(id=None, model=request.model, message=message, finish_reason="stop", usage=lm15.Usage())


def _text(system: Any) -> str:
    return system if isinstance(system, str) else "".join(part.text for part in system)


# Each request of DSPy.

_RETRIED = (lm15.RateLimitError, lm15.TimeoutError, lm15.ServerError, lm15.TransportError)


class CallLimitError(LMError):  # type: ignore[misc]  # DSPy has no types
    """All calls that ``max_calls`` allows have been made."""


class NoTextError(LMError):  # type: ignore[misc]  # DSPy has no types
    """The answer holds no text, or only the model's thoughts."""


class Engine:
    """DSPy's access to the model: one request at a time, from any thread."""

    def __init__(self, wire: Any, identity: Question, calls: LimitedCalls, store: AnswerStore | None) -> None:
        self._wire, self._identity, self._calls, self._store = wire, identity, calls, store
        self.counter = calls.counter
        self.close = wire.close

    def sampled(self, rollout: int) -> Engine:
        """Return this engine for another sample, as DSPy's optimisers number them: stored answers alone are not shared."""
        return Engine(self._wire, self._identity | {"rollout": rollout}, self._calls, self._store)

    def complete(self, request: Any) -> Any:
        """Answer a ``dspy.lm15.Request`` with a ``dspy.lm15.Response``."""
        scope = _scope.get()
        if scope is None or self._store is None:
            return self._send(request)
        question = self._question(request, scope.program)
        kept = self._store.find(question)
        if kept is not None:
            took = {f"kept_{side}": _tokens(kept, side) for side in ("tokens_in", "tokens_out")}
            count(self.counter, CallCounts(cache_hits=1, **took))
            return _response(request, str(kept["text"]))
        response = self._send(request)
        usage = response.usage
        answer: Answer = {"text": response.message.text, "tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens}
        scope.fresh.append((self._store, question, answer))
        return response

    def _question(self, request: Any, program: str) -> Question:
        sampling: Question = {}
        for setting in fields(request.config):
            value = getattr(request.config, setting.name)
            if value not in (None, ()):
                sampling[setting.name] = value if isinstance(value, int | float | str) else repr(value)
        messages: list[JsonValue] = [] if request.system is None else [["system", _text(request.system)]]
        messages += [[message.role, message.text] for message in request.messages]
        return self._identity | {"sampling": sampling, "program": program, "messages": messages}

    def _send(self, request: Any) -> Any:
        def attempt() -> Any:
            try:
                return within(self._calls.endpoint.timeout, lambda: self._wire.complete(request))
            except TimeoutError as error:
                late = lm15.TransportError(f"timed out: {error}")
                raise FailedCallError(str(late), temporary=True) from late
            except lm15.LM15Error as error:
                retry_after = getattr(error, "retry_after", None)
                seconds = float(retry_after) if isinstance(retry_after, int | float) and retry_after >= 0 else None
                raise FailedCallError(str(error), temporary=isinstance(error, _RETRIED), wait=seconds) from error

        try:
            response = self._calls.run(attempt)
        except CallLimitReachedError as error:
            raise CallLimitError(str(error)) from None
        except FailedCallError as error:
            raise error.__cause__ or error from None
        usage = response.usage
        count(self.counter, CallCounts(tokens_in=usage.input_tokens or 0, tokens_out=usage.output_tokens or 0))
        text = final_answer("\n".join(part.text for part in response.message.parts if isinstance(part, lm15.TextPart)))
        if text is None or not text.strip():
            raise NoTextError("it holds no text, or only the model's reasoning, which takes more of max_tokens")
        return replace(response, message=lm15.Message.assistant(text))


def _tokens(answer: Answer, side: str) -> int:
    """The token count of a stored answer; 0 if neither its file nor the server reports one."""
    tokens = answer.get(side)
    return tokens if isinstance(tokens, int) and tokens > 0 else 0
