"""Hiding keys and passwords: found by the name of a setting, the form of a value, or the environment variables that hold them.

Every pattern takes time linear in the length of a text, whatever the text is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?:(?:^|[_.-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))(?:token|(?:key|authorization|bearer|cookie|pwd)s?)"
    r"|(?:api|access|auth|bearer|secret|private|signing)[_-]?(?:key|token)s?"
    r"|(?:password|passwd|passphrase|secret|credential)s?)$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"key", "keys"})
_SECRET_VALUE = re.compile(
    r"(?<=://)[^/\s:]*:[^/\s]*(?=@)"  # user and password of a URL
    r"|(?:(?<=http://)|(?<=https://))[^/\s:@]+(?=@)"  # a token in place of both
    r"|(?<=[?&;])[\w.-]*(?:key|token|password|passwd|pwd|secret|signature|sig|credential)=[^&;\s]+"
    r"|\b(?:sk|hf|gh[opsur]|pk|gsk|glpat|github_pat)[-_][A-Za-z0-9_-]{16,}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{10,}"  # Slack
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # Amazon
    r"|\bAIza[A-Za-z0-9_-]{30,}"  # Google
    r"|\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"  # JSON web tokens
    r"|\bBearer\s+\S+"
    r"|(?<=\bAuthorization: Basic )\S+",
    re.IGNORECASE,
)
_SHORTEST = 12
"""Characters that the value of an environment variable must have to be looked for: shorter ones may be plain words."""


def without_secrets(value: Any) -> Any:
    """Return plain values (as of JSON) with everything that looks like a key or a password replaced by ``***``.

    The values of environment variables with names like secrets are replaced too, whatever they look like.
    """
    return _without(value, _of_environment())


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return name.lower() not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def _without(value: Any, known: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(inner) if is_secret_name(str(key)) else _without(inner, known) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, known) for inner in value]
    if not isinstance(value, str):
        return value
    for secret in known:
        value = value.replace(secret, HIDDEN)
    return _SECRET_VALUE.sub(HIDDEN, value)


def _of_environment() -> list[str]:
    """Values of environment variables with names like secrets, longest first, except paths of files."""
    found = {value for name, value in os.environ.items() if len(value) >= _SHORTEST and is_secret_name(name)}
    return sorted((value for value in found if not value.startswith(("/", "."))), key=len, reverse=True)


def _hidden(value: Any) -> Any:
    """What is shown of a secret setting; None and empty values stay, as they hold no secret."""
    if isinstance(value, Mapping):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    return value if value is None or value == "" else HIDDEN
