"""Settings of the service: address, access and limits, checked before anything is opened.

Anyone who can reach the service can use it, so it listens on this machine alone unless a token is required.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase, digits

from nlp_retrieval.core.secrets import read_variable
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.service.logs import LOG_FORMATS, LOG_LEVELS, LogFormat, LogLevel

__all__ = ["ServiceLimits", "ServiceSettings", "is_address", "is_host_name", "is_loopback", "read_token"]

_SHORTEST_TOKEN, _LONGEST_TOKEN = 16, 4096
_OF_NAMES = frozenset(f"{ascii_lowercase}{digits}.-_")


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of one request, and of concurrent requests in one process.

    Args:
        body: maximum bytes of a request's body.
        seconds: time limit for receiving a request's body, and for answering a request that adds no sources.
        writing_seconds: time limit for answering a request that adds sources; the command line has no option for it.
        threads: number of concurrent requests.
        waiting: number of requests that wait for a thread; more are refused.
    """

    body: int = 16 * 2**20
    seconds: float = 30.0
    writing_seconds: float = 600.0
    threads: int = 4
    waiting: int = 128

    def __post_init__(self) -> None:
        """Raise an error for invalid values."""
        for name, value, least in (("body", self.body, 1024), ("threads", self.threads, 1), ("waiting", self.waiting, 0)):
            if value < least:
                raise ConfigurationError(f"{name}={value}; it must be at least {least}")
        for name, seconds in (("seconds", self.seconds), ("writing_seconds", self.writing_seconds)):
            if not 0 < seconds <= 86_400:
                raise ConfigurationError(f"{name}={seconds}; it must be above 0, and at most 86,400 (a day)")


@dataclass(frozen=True)
class ServiceSettings:
    """Address and access.

    Args:
        host: address or name to listen on.
        port: 0 for any free one.
        token: required of every request; needed to listen on other addresses than this machine's.
        allowed_hosts: additional host names to accept (of a proxy in front of the service).
        workers: number of processes.
        limits: limits of one process.
        mcp: whether to serve the Model Context Protocol too.
        warm: whether models are loaded and a query is answered before the service says that it is ready.
        drain: seconds in which requests are still accepted after the signal to end, while the service says that it is not
            ready, so that a load balancer can send them elsewhere.
        log_format: ``text`` or ``json``.
        log_level: of the lowest records that are logged: ``debug``, ``info``, ``warning`` or ``error``.
        log_queries: whether the bodies of requests are logged, cut to 2,000 characters.
        record: folder in which the sessions of agents are recorded; None records nothing.
        record_days: how long a session is kept after its last step.

    Raises:
        ConfigurationError: one of them is invalid.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    mcp: bool = False
    warm: bool = False
    drain: float = 0.0
    log_format: LogFormat = "text"
    log_level: LogLevel = "info"
    log_queries: bool = False
    record: Path | None = None
    record_days: float = 30.0

    def __post_init__(self) -> None:
        """Raise an error for invalid values."""
        if not 0 <= self.port <= 65_535:
            raise ConfigurationError(f"port={self.port}; ports are 0 (any free one) to 65,535")
        if not 1 <= self.workers <= 256:
            raise ConfigurationError(f"workers={self.workers}; take 1 to 256 processes")
        if not 0 <= self.drain <= 3600:
            raise ConfigurationError(f"drain={self.drain}; take 0 to 3,600 seconds")
        if not 0 < self.record_days <= 36_500:
            raise ConfigurationError(f"record_days={self.record_days}; it must be above 0, and at most 36,500 (a century)")
        for name, value, known in (
            ("log_format", self.log_format, LOG_FORMATS),
            ("log_level", self.log_level, LOG_LEVELS),
        ):
            if value not in known:
                raise ConfigurationError(f"{name}={value!r}: {nearest(str(value), known)}")
        for name in self.allowed_hosts:
            if not is_host_name(name):
                raise ConfigurationError(
                    f"allowed_host={name[:100]!r} is not a host name; write it without scheme, port and path, such as "
                    "search.example.org, and several of them in a variable between spaces"
                )
        if self.token is None and not self.on_loopback:
            raise ConfigurationError(
                f"host={self.host!r} can be reached from other machines, and no token is set: anyone could send requests. Put "
                "a token into the environment variable NLP_RETRIEVAL_TOKEN or a file (--token-file), or listen on 127.0.0.1"
            )

    @property
    def on_loopback(self) -> bool:
        """Return whether only this machine can reach the service."""
        return is_loopback(self.host)


def is_host_name(name: str) -> bool:
    """Return whether a header ``Host`` could name this: a name in ASCII, or an address."""
    return bool(name) and (set(name.lower()) <= _OF_NAMES or is_address(name))


def is_address(name: str) -> bool:
    """Return whether this is the address of a machine, not a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether an address, or every address of a name, belongs to this machine alone.

    Raises:
        ConfigurationError: the address does not exist.
    """
    if not host:
        raise ConfigurationError("host is empty, which would mean every address; name one, such as 127.0.0.1")
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"host={host[:100]!r} is not an address to listen on ({error}); use 127.0.0.1") from None
    return all(ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in addresses)


def read_token(variable: str, file: Path | None, *, required: bool = False) -> str | None:
    """Return the token that requests must have, or None if none is set.

    Args:
        variable: environment variable with the token.
        file: file with the token, used instead of the variable; white space around it is ignored.
        required: whether the variable must be set.

    Raises:
        ConfigurationError: it cannot be read, is too short to be a secret, or cannot be sent in a header.
    """
    if file is not None:
        try:
            with file.open("rb") as opened:
                token = opened.read(_LONGEST_TOKEN + 1).decode("ascii", "replace").strip()
        except OSError as error:
            raise ConfigurationError(f"the token in {file} cannot be read: {error.strerror or error}") from None
        where = str(file)
    else:
        token, where = read_variable(variable).strip(), f"the environment variable {variable}"
        if not token and not required:
            return None
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError(
            f"{where} holds {'no token' if not token else 'too short a token'}; use at least {_SHORTEST_TOKEN} characters, "
            "for example from: openssl rand -hex 32"
        )
    if len(token) > _LONGEST_TOKEN or not all("!" <= character <= "~" for character in token):
        raise ConfigurationError(f"{where} holds an invalid token: use ASCII letters, digits and punctuation, on one line")
    return token
