"""Answers each request of DSPy: from disk, or from the server, with retries, limits and a count.

DSPy passes every request to an engine and does the rest itself (signatures, demonstrations, parsing). Its own cache and retries
are off. A model's thoughts are removed: DSPy and the files get only the answer after them. An answer is stored only inside
:func:`answers_kept_if_good`, and only if it was usable: other questions are asked again the next time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from pydantic import JsonValue

from nlp_retrieval.lm.answers import Answer, AnswerScope, AnswerStore, Question
from nlp_retrieval.lm.counting import CallCounts, changed_model_context, count, model_context
from nlp_retrieval.lm.dspy_package import LMError, lm15
from nlp_retrieval.lm.endpoint import CallLimitReachedError, FailedCallError, LimitedCalls, within
from nlp_retrieval.lm.reading import final_answer

# One attempt: a limit on the size of an answer, so that a server that does not stop sending cannot fill the memory.
#
# A good answer has a few hundred words. Bytes are counted as they arrive, including the bodies of errors, and the connection is
# closed at the limit.

LARGEST_ANSWER = 4 * 2**20
"""Bytes of one answer without its headers; enough for a hundred thousand tokens."""


class AnswerTooLargeError(lm15.LM15Error):  # type: ignore[misc]  # DSPy has no types
    """A server sent more than :data:`LARGEST_ANSWER`; the request is not retried."""


class BoundedTransport:
    """A transport that reads at most :data:`LARGEST_ANSWER` bytes of the body of an answer, after decompression.

    Args:
        transport: sends the requests: ``stream`` returns a response whose body has not been read yet.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def stream(self, request: Any) -> Any:
        """Send a request.

        Raises:
            AnswerTooLargeError: the answer is compressed more than once, so a few bytes could expand without limit.
        """
        response = self._transport.stream(request)
        headers = response.headers_all("Content-Encoding")
        codings = [coding for header in headers for coding in header.split(",") if coding.strip()]
        if len(codings) > 1:
            response.close()
            raise AnswerTooLargeError(f"the answer is compressed {len(codings)} times over ({', '.join(codings)[:80]})")
        return type(response)(
            status=response.status,
            reason=response.reason,
            headers=response.headers,
            http_version=response.http_version,
            chunks=self._chunks(response),
            release=lambda body_consumed: response.close(),  # noqa: ARG005 -- the response knows itself whether it was read
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _chunks(self, response: Any) -> Iterator[bytes]:
        remaining = LARGEST_ANSWER
        for chunk in response:
            remaining -= len(chunk)
            if remaining < 0:
                raise AnswerTooLargeError(f"the answer is longer than {LARGEST_ANSWER:,} bytes; the rest was not read")
            yield chunk


# Each request of DSPy: answered from disk, or by the server, with retries, limits and a count.

_RETRIED = (lm15.RateLimitError, lm15.TimeoutError, lm15.ServerError, lm15.TransportError)


class CallLimitError(LMError):  # type: ignore[misc]  # DSPy has no types
    """All calls that ``max_calls`` allows have been made."""


class NotAskedError(LMError):  # type: ignore[misc]  # DSPy has no types
    """The answer is not on disk, and only answers on disk were wanted."""


class OnlyThoughtsError(LMError):  # type: ignore[misc]  # DSPy has no types
    """The answer holds only the model's thoughts."""


@contextmanager
def answers_kept_if_good(program: str, *, only_kept: bool = False) -> Iterator[AnswerScope]:
    """Answer from disk inside the block; answers of the server are stored when ``keep`` of the scope is called."""
    scope = AnswerScope(program, only_kept)
    with changed_model_context(scope=scope):
        yield scope


class Engine:
    """DSPy's access to the model: one request at a time, from any thread.

    Args:
        wire: sends a request once, such as an ``LM15Engine``; its own time-outs end attempts at a server that sends nothing.
        identity: everything that determines an answer besides the prompt: base URL and model.
        calls: limits and counts the requests.
        store: stored answers.
    """

    def __init__(
        self,
        wire: Any,
        identity: Question,
        calls: LimitedCalls,
        store: AnswerStore,
    ) -> None:
        self._wire = wire
        self._identity = identity
        self._calls = calls
        self.counter = calls.counter
        self._store = store
        self._rollout: int | None = None

    def sampled(self, rollout: int) -> Engine:
        """Return this engine for another sample, as DSPy's optimisers number them: stored answers alone are not shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__ | {"_rollout": rollout})
        return other

    def complete(self, request: Any) -> Any:
        """Answer a ``dspy.lm15.Request`` with a ``dspy.lm15.Response``."""
        scope = model_context().scope
        if scope is None:
            return _strip_thoughts(self._send(request), request)
        question = self._question(request, scope.program)
        cached = self._store.find(question)
        final = None if cached is None else final_answer(str(cached["text"]))
        if cached is not None and final is not None:
            took = {f"kept_{side}": _tokens(cached, side) for side in ("tokens_in", "tokens_out")}
            count(self.counter, CallCounts(cache_hits=1, **took))
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant(final),
                finish_reason="stop",
                usage=lm15.Usage(),
            )
        if scope.only_kept:
            raise NotAskedError("not asked")
        response = _strip_thoughts(self._send(request), request)
        usage = response.usage
        answer: Answer = {"text": response.message.text, "tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens}
        if isinstance(answer["text"], str):
            scope.came(self._store, question, answer)
        return response

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _question(self, request: Any, program: str) -> Question:
        sampling: Question = {}
        for setting in fields(request.config):
            value = getattr(request.config, setting.name)
            if value not in (None, ()):
                sampling[setting.name] = value if isinstance(value, int | float | str) else repr(value)
        if self._rollout is not None:
            sampling["rollout"] = self._rollout
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
        return response


def _strip_thoughts(response: Any, request: Any) -> Any:
    """Return a response without the thoughts in it.

    Raises:
        OnlyThoughtsError: it holds nothing else.
    """
    parts = response.message.parts
    text = "\n".join(part.text for part in parts if isinstance(part, lm15.TextPart))
    has_thoughts = any(isinstance(part, lm15.ThinkingPart) for part in parts)
    final = final_answer(text)
    if final == text and not has_thoughts and (text.strip() or not response.usage.reasoning_tokens):
        return response
    if final is None or not final.strip():
        most = request.config.max_tokens if response.finish_reason == "length" else None
        limit = "" if most is None else f"; it may write {most:,} tokens: give it more by max_tokens"
        raise OnlyThoughtsError(f"it holds only the model's reasoning{limit}")
    return replace(response, message=lm15.Message.assistant(final))


def _tokens(answer: Answer, side: str) -> int:
    """The token count of a stored answer; 0 if neither its file nor the server reports one."""
    tokens = answer.get(side)
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


def _text(system: Any) -> str:
    return system if isinstance(system, str) else "".join(part.text for part in system)
