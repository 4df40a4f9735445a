"""Settings of the service: address, access and limits, checked before anything is opened.

Anyone who can reach the service can use it, so it listens on this machine alone unless a token is required.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.core.filters import parse_filter
from nlp_retrieval.errors import ConfigurationError, InputError

WRITING_SECONDS = 600.0
"""Time of a request that adds sources."""


@dataclass(frozen=True)
class TokenGrant:
    """A token: its name, its SHA-256, and the filter of what it may see; None for everything."""

    name: str
    sha256: bytes = field(repr=False)
    where: dict[str, Any] | None


@dataclass(frozen=True)
class ServiceSettings:
    """Address, access (without tokens, requests need none), and limits of one request and of one process."""

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: tuple[TokenGrant, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    proxy: str = ""
    workers: int = 1
    body: int = 16 * 2**20
    seconds: float = 30.0
    threads: int = 4
    waiting: int = 128
    mcp: bool = False
    warm: bool = False
    log_format: str = "text"
    log_level: str = "info"
    log_queries: bool = False
    record: Path | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ConfigurationError(f"threads={self.threads}: take at least 1")
        for name in self.allowed_hosts:
            if not (re.fullmatch("[A-Za-z0-9._-]+", name) or is_address(name)):
                raise ConfigurationError(
                    f"allowed_host={name[:100]!r} is not a host name; write it without scheme, port and path, such as "
                    "search.example.org, and several of them in a variable between spaces"
                )
        if self.proxy and not is_address(self.proxy):
            raise ConfigurationError(f"proxy={self.proxy[:100]!r} is not the address of a machine, such as 10.0.0.2")
        if not self.tokens and not self.on_loopback:
            raise ConfigurationError(
                f"host={self.host!r} can be reached from other machines, and no token is set: anyone could send requests. Put "
                "a token into the environment variable NLP_RETRIEVAL_TOKEN or a file (--token-file), or listen on 127.0.0.1"
            )

    @property
    def on_loopback(self) -> bool:
        """Whether the address, or every address of the name, belongs to this machine alone."""
        try:
            addresses = socket.getaddrinfo(self.host or "(empty)", None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConfigurationError(f"host={self.host[:100]!r} is not an address to listen on ({error})") from None
        return all(ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in addresses)


def is_address(name: str) -> bool:
    """Return whether this is the address of a machine, not a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def read_token(token: str, file: Path | None) -> tuple[TokenGrant, ...]:
    """Return the token in a file, or else in the text, which sees everything; nothing if there is none."""
    if file is not None:
        try:
            token = file.read_text("ascii", "replace")
        except OSError as error:
            raise ConfigurationError(f"the token in {file} cannot be read: {error.strerror or error}") from None
    token = token.strip()
    if file is None and not token:
        return ()
    if not re.fullmatch("[!-~]{16,4096}", token):
        raise ConfigurationError(
            f"{file or 'the environment variable NLP_RETRIEVAL_TOKEN'} holds no usable token; take at least 16 ASCII letters, "
            "digits and signs on one line, for example from: openssl rand -hex 32"
        )
    return (TokenGrant("", sha256(token.encode()).digest(), None),)


def read_tokens(file: Path) -> tuple[TokenGrant, ...]:
    """Return the tokens of a YAML file: by name ``{sha256, where}``, where ``where`` is a filter, left out for everything."""
    grants: list[TokenGrant] = []
    for name, row in read_yaml(file).items():
        place = f"{file}: {str(name)[:100]}"
        if not (re.fullmatch("[A-Za-z0-9_-]{1,64}", name) and isinstance(row, dict) and row.keys() <= {"sha256", "where"}):
            raise ConfigurationError(f"{place}: write NAME: {{sha256: ...}}, perhaps with where, a filter; NAME is one word")
        if not re.fullmatch("[0-9a-fA-F]{64}", digest := str(row.get("sha256"))):
            raise ConfigurationError(f"{place}: sha256 has 64 hexadecimal digits, as of: printf %s TOKEN | sha256sum")
        if "where" in row:
            try:
                parse_filter(row["where"])
            except InputError as error:
                raise ConfigurationError(f"{place}: {error}; leave it out for everything") from None
        grants.append(TokenGrant(name, bytes.fromhex(digest), row.get("where")))
    if not grants or len({grant.sha256 for grant in grants}) < len(grants):
        raise ConfigurationError(f"{file} holds no token, or two of the same sha256; write NAME: {{sha256: ..., where: ...}}")
    return tuple(grants)
