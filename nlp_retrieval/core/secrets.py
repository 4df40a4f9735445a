"""Hiding keys and passwords: by the name of a setting, the form of a value, or the environment variables that hold them.

A value that :func:`read_variable` has read from the environment is hidden from then on, in any form; so are the values of
variables with secret-looking names. Every pattern takes time linear in the length of a text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

HIDDEN = "***"
"""What is shown in place of a secret."""

_SECRET_NAME = re.compile(
    r"(?:(?:^|[_.-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))(?:token|(?:key|authorization|bearer|cookie|pwd)s?)"
    r"|(?:api|access|auth|bearer|secret|private|signing)[_-]?(?:key|token)s?"
    r"|(?:password|passwd|passphrase|secret|credential)s?)$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"key", "keys"})
_PREFIXES = ("sk", "pk", "rk", "hf", "gho", "ghp", "ghs", "ghu", "ghr", "gsk", "glpat", "github_pat", "xai", "pplx", "tvly")
_SECRET_VALUE = re.compile(
    r"(?:(?<=://)|(?<=:\\/\\/))[^/\s:]*:[^/\s]*(?=@)"  # user and password of a URL, as JSON may write it too
    r"|(?:(?<=http://)|(?<=https://)|(?<=http:\\/\\/)|(?<=https:\\/\\/))[^/\s:@]+(?=@)"  # a token in place of both
    r"|(?<=[?&;#])[\w.-]*(?:key|token|auth|password|passwd|pwd|secret|signature|sig|credential)=[^&;\s\"'\\]+"
    rf"|\b(?:{'|'.join(_PREFIXES)})[-_][A-Za-z0-9_-]{{16,}}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{10,}"  # Slack
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # Amazon
    r"|\bAIza[A-Za-z0-9_-]{30,}"  # Google
    r"|\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"  # JSON web tokens
    r"|\bBearer(?:\s|[+:=]|%20|\\++(?:u0020|[tnr]))++(?:\d{1,12}(?:\||%7C))?+[\w.~+/=-]{8,}"
    r"|(?<=cookie: )[^\s=;,\"'\\]+=[^\r\n\"'\\]*"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:[^-]|-(?!----))*+",
    re.IGNORECASE,
)
_MARKS = (
    *("://", ":\\/\\/", "=", "xox", "akia", "asia", "aiza", "eyj", "bearer", "cookie: ", "-----begin"),
    *(prefix + sign for prefix in _PREFIXES for sign in "-_"),
)
"""An ASCII text without any of these, in small letters, has no match of ``_SECRET_VALUE``; looking for them is much faster."""
_SETTING = re.compile(
    r"((?:(?<![\w.%-])|(?<=%[0-9A-F][0-9A-F]))[\w.-]{0,60}?"  # a name, such as "api_key": or api_key=
    r"(?:key|token|authorization|bearer|cookie|pwd|pass(?:w(?:or)?d|phrase|code)?|secret(?:_?id)?|credential)s?[0-9]{0,2})"
    r"(\\*+[\"']?+\s*+(?:[:=]|%3[AD])\s*+(?:[\[(]\s*+|b(?=\\*+[\"']))?+)"
    r"((?P<quote>\\*+[\"'])(?:(?!(?P=quote))(?:\\.|.))*+"
    r"|(?:(?:bearer|basic|token|apikey|digest)[\s+]++)?+(?:(?!%26)[^\s'\"&;,)\\<>|])++)",
    re.IGNORECASE,
)
_SURE_NAME = re.compile(r"pass|pwd|secret|(?:api|access|auth|bearer|private)[_-]?(?:key|token)|authorization", re.IGNORECASE)
_OPAQUE = re.compile(r"(?=\D*+\d)\S{8,}+\Z|(?:bearer|basic|token|apikey|digest)\s", re.IGNORECASE)
"""What a key looks like, and no word: eight signs with a digit among them, or a scheme of HTTP before it."""
_SHORTEST = 12
"""Minimum length of an environment variable's value to be hidden: shorter ones may be ordinary words."""
_SHORTEST_READ = 4
"""The same for a variable that was read as a secret; one shorter than ``_SHORTEST`` is hidden only as a whole word."""

_NO_KEYS = frozenset({"none", "null", "empty", "dummy", "test", "local"})
"""What people set where a server asks for no key: words that settings and texts have, too."""

_read: set[str] = set()


def without_secrets(value: Any) -> Any:
    """Return plain values (as in JSON) with everything that looks like a key or a password replaced by ``***``.

    The values of environment variables that were read as secrets, or have secret-looking names, are replaced in any
    form.

    Examples:
        >>> without_secrets({"model": "openai/gpt-4o-mini", "api_key": "sk-12345678901234567890"})
        {'model': 'openai/gpt-4o-mini', 'api_key': '***'}
    """
    return _without(value, _of_environment())


def read_variable(name: str) -> str:
    """Return the value of an environment variable, or nothing; from now on it is hidden in all output of the process."""
    value = os.environ.get(name, "")
    if value.strip().lower() not in _NO_KEYS:
        _read.update({value, value.strip()})
    return value


def was_read(value: str) -> bool:
    """Return whether a value is that of an environment variable that was read as a secret."""
    return bool(value) and value in _read


@lru_cache(1024)
def is_secret_name(name: str) -> bool:
    """Return whether a setting with this name holds a secret."""
    return name.lower() not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def _without(value: Any, known: list[str], is_secret: bool = False) -> Any:
    if isinstance(value, Mapping):
        named = {"value"} if is_secret_name(str(value.get("name"))) else set()  # {"name": "Authorization", "value": ...}
        return {
            key: _without(inner, known, is_secret or key in named or is_secret_name(str(key))) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without(inner, known, is_secret) for inner in value]
    if is_secret and value is not None and value != "":
        return HIDDEN
    if not isinstance(value, str):
        return value
    value = hide_values(value, known)
    if not value.isascii() or any(map(value.lower().__contains__, _MARKS)):
        value = _SECRET_VALUE.sub(HIDDEN, value)
    return _SETTING.sub(_hide_setting, value) if any(map(value.__contains__, (":", "=", "%3"))) else value


def hide_values(text: str, values: list[str]) -> str:
    """Return a text without these values, longest first; a short one only where it is a word of its own."""
    for value in values:
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
        elif value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
    return text


def _hide_setting(match: re.Match[str]) -> str:
    """A setting as displayed: the name of a variable is no secret, and a word after a colon may be prose."""
    name, sign, value, quote = match.groups()
    plain = value.removeprefix(quote or "")
    if plain.startswith(("env:", HIDDEN)) or not plain:
        return match[0]
    is_set = "=" in sign or "%3d" in sign.lower() or (bool(quote) and (sign[0] in "\\\"'" or not re.search(r"\s", plain)))
    is_secret = (_SURE_NAME.search(name) is not None and is_set) or (is_secret_name(name) and _OPAQUE.match(plain) is not None)
    return f"{name}{sign}{quote or ''}{HIDDEN}" if is_secret else match[0]


def _of_environment() -> list[str]:
    """Values of environment variables that were read, or have secret-looking names and are not paths, longest first."""
    values = {os.environ.get(name, "") for name in os.environ if is_secret_name(name)}
    known = {value for value in values if len(value) >= _SHORTEST and not value.startswith(("/", "."))}
    known |= {value for value in _read if len(value) >= _SHORTEST_READ}
    return sorted(known, key=len, reverse=True)
