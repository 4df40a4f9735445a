"""Endpoints of models other than language models: requests that are limited, retried and counted, keys and URLs."""

from __future__ import annotations

import json
import os
import random
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from nlp_retrieval.core.forks import Lock
from nlp_retrieval.core.secrets import HIDDEN, read_variable, without_secrets
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, install
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    import httpx2

# Parallel requests; the first failure ends them.

PartT = TypeVar("PartT")
MadeT = TypeVar("MadeT")


def side_by_side(ask: Callable[[PartT, Callable[[], bool]], MadeT], parts: Sequence[PartT], at_once: int) -> list[MadeT]:
    """Ask about each part, several at a time; the first failure ends the others, and is raised.

    Args:
        ask: called with a part, and a function that returns whether an answer is still wanted.
        parts: to ask about.
        at_once: most parts at a time.
    """
    failed: list[BaseException] = []

    def asked(part: PartT) -> MadeT:
        try:
            return ask(part, lambda: not failed)
        except BaseException as error:
            failed.append(error)
            raise

    if len(parts) < 2 or at_once == 1:
        return [asked(part) for part in parts]
    with ThreadPoolExecutor(min(at_once, len(parts)), thread_name_prefix="nlp_retrieval-endpoint") as pool:
        futures = [pool.submit(copy_context().run, asked, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            failed.append(error)
            pool.shutdown(wait=False, cancel_futures=True)
            raise failed[0] from None


# Keys and URLs of endpoints: a key is named by its environment variable, and neither stored nor shown.


class EndpointKey:
    """The key in an environment variable, read for each request.

    Args:
        owner: names the component in messages.
        model: names its model in messages.
        variable: name of the variable; None if no key is sent.

    Raises:
        ConfigurationError: the variable is not set, or its name looks like a key itself.
    """

    def __init__(self, owner: str, model: str, variable: str | None) -> None:
        if variable is not None and (
            not variable.isascii() or not variable.isidentifier() or HIDDEN in without_secrets(variable)
        ):
            raise ConfigurationError(
                f"{owner}: api_key_env must name an environment variable, such as OPENAI_API_KEY; what was given is not such a "
                "name (it is not shown, because it may be a key)"
            )
        self._owner, self._model, self._variable = owner, model, variable
        self.read()

    @property
    def cure(self) -> str:
        """Return advice about a refused key."""
        return f"check the key in {self._variable or 'api_key_env'}"

    def read(self) -> str | None:
        """Return the key; None if none is sent.

        Raises:
            ConfigurationError: the variable is not set, or holds something else.
        """
        if self._variable is None:
            return None
        key = read_variable(self._variable).strip()
        if not key:
            raise ConfigurationError(
                f"{self._owner}: {self._model} needs a key, and the environment variable {self._variable} is not set; set it, "
                "or name another with api_key_env"
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"{self._owner}: what {self._variable} holds is no key (it is not shown); set it again")
        return key

    def hidden(self, message: str) -> str:
        """Return a message without the key, and without anything that looks like one."""
        key = read_variable(self._variable or "").strip()
        return str(without_secrets(message.replace(key, HIDDEN) if key else message))


def check_url(owner: str, url: str) -> None:
    """Check that ``base_url`` is the URL of a server, without a secret.

    Args:
        owner: names the component in messages.
        url: the URL.

    Raises:
        ConfigurationError: it is not.
    """
    if without_secrets(url) != url:
        raise ConfigurationError(
            f"{owner}: base_url={without_secrets(url)!r} holds a password or a key; put it into an environment "
            "variable and name the variable with api_key_env"
        )
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits or parts.query or parts.fragment or parts.username or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"{owner}: base_url={url!r} is not the URL of a server; write it as http://localhost:8000/v1, without a query"
        )


# Requests to an endpoint, with limits on time, size, parallel requests and requests per minute; retried and counted.
#
# A key is sent only to its own server: redirects are not followed. It is read from its environment variable for each request,
# and is in no attribute and no message.

_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_LONGEST_WAIT = 60.0
_READ_OF_AN_ERROR = 2**14
_TOLD_OF_AN_ERROR = 200
_sleep = time.sleep

_inherited: list[httpx2.Client] = []
"""Clients of the parent process before a fork: closing them here could disturb its connections."""


class RequestLimits(Protocol):
    """Settings of requests; :class:`~nlp_retrieval.HttpEncoder` describes each."""

    calls_at_once: int
    calls_per_minute: int | None
    retries: int
    backoff: float
    timeout: float
    max_calls: int | None


class CountedAnswer(Protocol):
    """An answer that says how many tokens it took; 0 if unknown."""

    @property
    def tokens(self) -> int: ...


AnswerT = TypeVar("AnswerT", bound=CountedAnswer)


@dataclass(frozen=True)
class ModelEndpoint:
    """Address of a model.

    Args:
        url: of the server.
        what: to ask for, also the path that is appended to the URL.
        kind: of server, for messages.
        key: to send.
    """

    url: str
    what: str
    kind: str
    key: EndpointKey


class _FailedError(Exception):
    """A request without an answer.

    Args:
        reason: why.
        temporary: whether a retry may succeed.
        wait: seconds that the server asks to wait; None if it does not.
    """

    def __init__(self, reason: str, *, temporary: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.temporary = temporary
        self.wait = wait


class EndpointCalls:
    """Asks one endpoint, from any thread.

    Args:
        endpoint: to ask.
        limits: of the requests.
        counter: the model's own count.
    """

    def __init__(self, endpoint: ModelEndpoint, limits: RequestLimits, counter: CallCounter) -> None:
        self._endpoint, self._limits, self._counter = endpoint, limits, counter
        self._lock = Lock()
        self._next = 0.0
        """Start of the next request, on the monotonic clock."""
        self._client: httpx2.Client | None = None
        self._process = 0

    def ask(
        self, request: Mapping[str, object], read: Callable[[bytes], AnswerT], most: int, go_on: Callable[[], bool]
    ) -> AnswerT:
        """Return the answer to a request.

        Args:
            request: is sent as JSON.
            read: reads an answer; the message of its ValueError is half a sentence.
            most: most bytes of an answer.
            go_on: returns whether an answer is still wanted; called before each attempt.

        Raises:
            DependencyError: httpx2 is not installed.
            ModelError: there is no usable answer.
        """
        body = json.dumps(request).encode()
        for attempt in range(self._limits.retries + 1):
            if not go_on():
                raise ModelError("it is no longer wanted")
            self._take_turn()
            try:
                answer = self._attempt(body, read, most)
            except _FailedError as error:
                count(self._counter, CallCounts(failures=1))
                if attempt == self._limits.retries or not error.temporary:
                    tried = f" ({attempt + 1} attempts)" if attempt else ""
                    raise ModelError(self._endpoint.key.hidden(f"{self._endpoint.url}: {error}{tried}")) from None
                self._put_off(error.wait, attempt)
            else:
                count(self._counter, CallCounts(tokens_in=answer.tokens))
                return answer
        raise AssertionError("the last attempt returns or raises")

    def _take_turn(self) -> None:
        """Wait until a request may begin, and count it."""
        limits = self._limits
        with self._lock:
            if limits.max_calls is not None and self._counter.counts.calls >= limits.max_calls:
                raise ModelError(
                    f"{self._endpoint.url}: the limit of max_calls={limits.max_calls} requests is reached; raise it"
                )
            count(self._counter, CallCounts(calls=1))
            now = time.monotonic()
            begin = max(now, self._next)
            self._next = begin + (60.0 / limits.calls_per_minute if limits.calls_per_minute else 0.0)
        if begin > now:
            _sleep(begin - now)

    def _put_off(self, asked: float | None, attempt: int) -> None:
        """Let no request begin before the server allows; without a time from it, only this one waits."""
        if asked is not None:
            with self._lock:
                self._next = max(self._next, time.monotonic() + min(asked, _LONGEST_WAIT))
            return
        longest = min(self._limits.backoff * 2.0**attempt, _LONGEST_WAIT)
        _sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter, so that parallel requests do not come back together

    def _attempt(self, body: bytes, read: Callable[[bytes], AnswerT], most: int) -> AnswerT:
        """Ask once, within ``timeout`` for the whole; a server that sends a byte now and then is left to its own thread."""
        received: Future[bytes] = Future()
        sending = (self._opened(), body, most, received)
        Thread(target=self._send, args=sending, name=f"nlp_retrieval-{self._endpoint.what}", daemon=True).start()
        if not wait([received], self._limits.timeout).done:
            raise _FailedError(f"no whole answer within {self._limits.timeout:g} s", temporary=True)
        content = received.result()
        try:
            return read(content)
        except ValueError as error:
            raise _FailedError(
                f"what it answered is no answer of {self._endpoint.what}: {error}; is it the URL of {self._endpoint.kind}?"
            ) from None

    def _send(self, client: httpx2.Client, body: bytes, most: int, received: Future[bytes]) -> None:
        try:
            received.set_result(self._received(client, body, most))
        except BaseException as error:
            received.set_exception(error)

    def _received(self, client: httpx2.Client, body: bytes, most: int) -> bytes:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        key = self._endpoint.key.read()
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        try:
            with client.stream(
                "POST", f"{self._endpoint.url}/{self._endpoint.what}", content=body, headers=headers
            ) as response:
                if response.status_code != 200:
                    raise self._refused(response)
                if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                    raise _FailedError("it compressed its answer, which was not asked for")
                return _read(response, most)
        except httpx2.TransportError as error:
            raise _FailedError(f"{type(error).__name__}: {error}", temporary=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _FailedError(f"{type(error).__name__}: {error}") from None

    def _refused(self, response: httpx2.Response) -> _FailedError:
        status = response.status_code
        if 300 <= status < 400:
            target = printable(response.headers.get("Location", ""))[:_TOLD_OF_AN_ERROR]
            return _FailedError(
                f"HTTP {status}: it redirects to {target!r}, which is not followed; give the URL to ask as base_url"
            )
        said = _first_bytes(response)
        reason = f"HTTP {status}: {printable(' '.join(said.split()))[:_TOLD_OF_AN_ERROR]}"
        if status in (401, 403):
            return _FailedError(f"{reason}; {self._endpoint.key.cure}")
        temporary = status in _TEMPORARY and "insufficient_quota" not in said
        return _FailedError(reason, temporary=temporary, wait=_asked_to_wait(response.headers.get("Retry-After")))

    def check_ready(self) -> None:
        """Require httpx2.

        Raises:
            DependencyError: it is not installed.
        """
        try:
            import httpx2  # noqa: F401
        except ImportError as error:
            raise DependencyError(f"models behind an endpoint need httpx2: {install('endpoint')}") from error

    def _opened(self) -> httpx2.Client:
        self.check_ready()
        import httpx2

        with self._lock:
            if self._client is None or self._process != os.getpid():  # a forked child must not use its parent's connections
                self._client = httpx2.Client(follow_redirects=False, timeout=httpx2.Timeout(self._limits.timeout))
                self._process = os.getpid()
                weakref.finalize(self, _close, self._client, self._process)
            return self._client


def _close(client: httpx2.Client, process: int) -> None:
    if process == os.getpid():
        client.close()
    else:
        _inherited.append(client)


def _read(response: httpx2.Response, most: int) -> bytes:
    """The body of an answer, which is not compressed."""
    parts, left = [], most
    for part in response.iter_raw():
        left -= len(part)
        if left < 0:
            raise _FailedError(f"its answer is longer than {most:,} bytes; the rest was not read")
        parts.append(part)
    return b"".join(parts)


def _first_bytes(response: httpx2.Response) -> str:
    """Return the beginning of the body of an error."""
    said = b""
    for part in response.iter_raw():
        said += part[:_READ_OF_AN_ERROR]
        if len(said) >= _READ_OF_AN_ERROR:
            break
    return said[:_READ_OF_AN_ERROR].decode("utf-8", "replace")


def _asked_to_wait(header: str | None) -> float | None:
    """Seconds that a ``Retry-After`` asks for, in either of its forms (RFC 9110, 10.2.3); None if there are none."""
    if header is None:
        return None
    try:
        return float(int(header[:10])) if header.isascii() and header.isdigit() else _seconds_until(header)
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds_until(date: str) -> float:
    moment = parsedate_to_datetime(date[:64])
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
