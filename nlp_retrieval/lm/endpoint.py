"""Requests to the server of a model: limited, retried and counted by one mechanism for all components with an endpoint.

A key is named by its environment variable, read for each request, and in no attribute, file or message. It is sent only to its
own server: redirects are not followed.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.context import search_context
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.secrets import read_variable, without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, install
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    import httpx2


class ModelEndpoint(BaseModel):
    """The limits of requests to the server of a model.

    Args:
        calls_at_once: the most requests under way at the same time.
        retries: the most retries after a failure that may be temporary: refused, timed out, too many requests, server error.
        backoff: seconds before the first retry, doubled with each further one (at most 60 s, with jitter); if the server
            says how long to wait, no request begins before (at most 60 s).
        timeout: seconds for an attempt, from the connection to the last byte of the answer, however often bytes arrive.
        max_calls: the most requests in total, including retries; after them encoders and rerankers raise an error, and
            questions to a language model get no answer. None for no limit.

    Raises:
        ValueError: a value is of the wrong type or out of range.

    Examples:
        >>> LanguageModel("openai/qwen3", "http://localhost:8000/v1", endpoint=ModelEndpoint(retries=2, timeout=300))
        LanguageModel(model='openai/qwen3', base_url='http://localhost:8000/v1', endpoint=ModelEndpoint(calls_at_once=8,
        retries=2, backoff=1.0, timeout=300.0, max_calls=None))
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    calls_at_once: Annotated[int, Field(ge=1)] = 8
    retries: Annotated[int, Field(ge=0)] = 4
    backoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    max_calls: Annotated[int, Field(ge=0)] | None = None


DEFAULT_ENDPOINT = ModelEndpoint()

ENDPOINT_RULES = may_set("endpoint", api_key_env=given("send the key in the environment variable"))

PartT = TypeVar("PartT")
MadeT = TypeVar("MadeT")


def side_by_side(ask: Callable[[PartT, Callable[[], bool]], MadeT], parts: Sequence[PartT], at_once: int) -> list[MadeT]:
    """Ask about each part, several at a time; the first failure ends the others, and is raised.

    Args:
        ask: gets a part, and a function that returns whether an answer is still wanted.
        parts: to ask about.
        at_once: the most that are asked about at a time.

    Examples:
        >>> side_by_side(lambda part, wanted: part.upper(), ["krill", "whale"], 2)
        ['KRILL', 'WHALE']
    """
    if len(parts) < 2 or at_once == 1:
        return [ask(part, lambda: True) for part in parts]
    ended = threading.Event()
    answers: list[Future[MadeT]] = [Future() for _ in parts]
    waiting = iter(list(zip(answers, parts, strict=True)))

    def work() -> None:
        for answer, part in waiting:
            if ended.is_set():
                return
            _fulfil(answer, partial(ask, part, lambda: not ended.is_set()))
            if answer.exception() is not None:
                ended.set()

    pending = set(answers)
    try:
        for _ in range(min(at_once, len(parts))):
            _begin(copy_context().run, work)
        while pending:  # Ctrl-C just before a wait without an end would be noticed only after it
            done, pending = wait(pending, 1, FIRST_EXCEPTION)
            for answer in done:
                answer.result()
    finally:
        ended.set()
    return [answer.result() for answer in answers]


def _begin(work: Callable[..., object], *given: object) -> None:
    """Begin work in a thread that ends with the process, unlike those of a pool."""
    threading.Thread(target=work, args=given, name="nlp_retrieval-endpoint", daemon=True).start()


def _fulfil(answer: Future[MadeT], work: Callable[[], MadeT]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:
        answer.set_exception(error)


def read_key(owner: str, model: str, variable: str | None) -> str | None:
    """Return the key in an environment variable, which is read for each request; None if ``variable`` is."""
    if variable is None:
        return None
    if not variable.isascii() or not variable.isidentifier() or without_secrets(variable) != variable:
        raise ConfigurationError(
            f"{owner}: api_key_env must name an environment variable, such as OPENAI_API_KEY; the given value is not "
            "one (not shown, because it may be a key)"
        )
    key = read_variable(variable).strip()
    if not (key and key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"{owner}: {model} needs a key, and the environment variable {variable} is not set to one; "
            "set it, or name another with api_key_env; a server of your own, named by base_url, needs none"
        )
    return key


_URL = re.compile(r"https?://(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::(\d{1,5}))?(?:/[!$-;=@-~]*)?", re.ASCII)  # no blank, no query


def check_url(owner: str, url: str) -> None:
    """Raise a :class:`ConfigurationError` unless ``base_url`` is the URL of a server, without a secret."""
    if without_secrets(url) != url:
        raise ConfigurationError(
            f"{owner}: base_url={without_secrets(url)!r} holds a password or a key; put it into an environment "
            "variable and name the variable with api_key_env"
        )
    address = _URL.fullmatch(url)
    if address is None or not 0 < int(address[1] or 443) < 2**16:
        raise ConfigurationError(
            f"{owner}: base_url={url!r} is not the URL of a server; write it as http://localhost:8000/v1, without a query"
        )


_LONGEST_WAIT = 60.0
_sleep = time.sleep


class FailedCallError(Exception):
    """An attempt without an answer; ``wait`` is how many seconds the server asks to wait."""

    def __init__(self, reason: str, *, temporary: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.temporary, self.wait = temporary, wait


class LimitedCalls:
    """The limits of one endpoint over requests from any thread, and their count."""

    def __init__(self, endpoint: ModelEndpoint, counter: CallCounter) -> None:
        self.endpoint, self.counter = endpoint, counter
        self._lock = Lock()
        self._next = 0.0  # when the server lets the next request begin, on the monotonic clock
        self._slots: dict[int, threading.BoundedSemaphore] = {}  # by process: a forked child never gets its parent's back

    def run(self, attempt: Callable[[], MadeT], wanted: Callable[[], bool] = lambda: True) -> MadeT:
        """Return what ``attempt`` returns; one that raises a temporary :class:`FailedCallError` is repeated."""
        failures, most, seconds = 0, self.endpoint.max_calls, self.endpoint.timeout
        while wanted():
            with self._slots.setdefault(os.getpid(), threading.BoundedSemaphore(self.endpoint.calls_at_once)):
                with self._lock:
                    if most is not None and self.counter.counts.calls >= most:
                        raise FailedCallError(f"the limit of max_calls={most} requests is reached")
                    count(self.counter, CallCounts(calls=1))
                if (wait := self._next - time.monotonic()) > 0:
                    _sleep(wait)
                answer: Future[MadeT] = Future()
                try:
                    with search_context().span("model call", **{"gen_ai.request.model": self.counter.model}):
                        _begin(_fulfil, answer, attempt)
                        return answer.result(seconds)
                except TimeoutError:  # the attempt is left to its thread
                    failure = FailedCallError(f"timed out: no complete answer within {seconds:g} s", temporary=True)
                except FailedCallError as error:
                    failure = error
            failures += 1
            count(self.counter, CallCounts(failures=1))
            if failures > self.endpoint.retries or not failure.temporary:
                raise failure
            if failure.wait is not None:  # the server says when: all requests wait
                with self._lock:
                    self._next = max(self._next, time.monotonic() + min(failure.wait, _LONGEST_WAIT))
            else:
                longest = min(self.endpoint.backoff * 2.0 ** (failures - 1), _LONGEST_WAIT)
                _sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter, so that requests do not come back together
        raise FailedCallError("it is no longer wanted")


_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})


class EndpointCalls:
    """Asks one endpoint over HTTP, from any thread; ``what`` is the path that is appended to the URL."""

    def __init__(
        self, owner: str, url: str, what: str, key_variable: str | None, endpoint: ModelEndpoint, counter: CallCounter
    ) -> None:
        check_url(owner, url)
        self._url, self._what, self._variable = url.rstrip("/"), what, key_variable
        self._key = partial(read_key, owner, counter.model.partition("/")[2], key_variable)
        self._key()
        self._calls = LimitedCalls(endpoint, counter)
        self._lock = Lock()
        self._clients: dict[int, httpx2.Client] = {}  # by process: a forked child must not use its parent's connections

    def ask(self, request: Mapping[str, object], read: Callable[[bytes], MadeT], most: int, go_on: Callable[[], bool]) -> MadeT:
        """Return what ``read`` makes of the answer to a request; its ValueError says in half a sentence why it is none."""
        body = json.dumps(request).encode()

        def attempt() -> MadeT:
            content = self._receive(body, most)
            try:
                return read(content)
            except ValueError as error:
                raise FailedCallError(f"its answer is not that of {self._what}: {error}; is it the right URL?") from None

        try:
            return self._calls.run(attempt, go_on)
        except FailedCallError as error:
            raise ModelError(str(without_secrets(f"{self._url}: {error}"))) from None

    def check_ready(self) -> None:
        """Require httpx2."""
        try:
            import httpx2  # noqa: F401
        except ImportError as error:
            raise DependencyError(f"models behind an endpoint need httpx2: {install('endpoint')}") from error

    def _receive(self, body: bytes, most: int) -> bytes:
        self.check_ready()
        import httpx2

        with self._lock:
            client = self._clients.get(os.getpid())
            if client is None:
                client = self._clients[os.getpid()] = httpx2.Client(timeout=self._calls.endpoint.timeout)
                weakref.finalize(self, client.close)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if (key := self._key()) is not None:
            headers["Authorization"] = f"Bearer {key}"
        try:
            with client.stream("POST", f"{self._url}/{self._what}", content=body, headers=headers) as response:
                if response.status_code != 200:
                    raise self._refusal(response)
                content = _first_bytes(response, most + 1)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            temporary = isinstance(error, httpx2.TransportError)
            raise FailedCallError(f"{type(error).__name__}: {error}", temporary=temporary) from None
        if len(content) > most:
            raise FailedCallError(f"its answer is longer than {most:,} bytes; the rest was not read")
        return content

    def _refusal(self, response: httpx2.Response) -> FailedCallError:
        status = response.status_code
        message = _first_bytes(response, 2**14).decode("utf-8", "replace")
        reason = f"HTTP {status}: {printable(' '.join(message.split()))[:200]}"
        if status in (401, 403):
            reason += f"; check the key in {self._variable or 'api_key_env'}"
        if 300 <= status < 400:
            reason += "; it redirects elsewhere, which is not followed"
        seconds = response.headers.get("Retry-After", "")
        wait = float(seconds[:10]) if seconds.isascii() and seconds.isdigit() else None
        return FailedCallError(reason, temporary=status in _TEMPORARY and "insufficient_quota" not in message, wait=wait)


def first_fault(error: ValidationError) -> str:
    """Return what is wrong with an answer first, as half a sentence."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")[:200]


def _first_bytes(response: httpx2.Response, most: int) -> bytes:
    """The beginning of a body, which is not decompressed; the rest is not read."""
    content = bytearray()
    for part in response.iter_raw():
        content += part[: most - len(content)]
        if len(content) == most:
            break
    return bytes(content)
