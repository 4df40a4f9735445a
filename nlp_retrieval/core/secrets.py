"""What must not be written down: keys and passwords, by the name of a setting and by the form of a value."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?:^|[_-]|(?<=[a-z0-9])(?=[A-Z]))(?:(?:api|access|private|secret)[_-]?)?"
    r"(?:token|(?:key|password|passwd|secret|credential|authorization|bearer)s?)$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"key", "keys"})
_SECRET_VALUE = re.compile(
    r"(?<=://)[^/\s]*:[^/\s]*(?=@)"  # user and password of a URL
    r"|(?<=[?&])(?:api_?key|key|token|access_token|password|secret)=[^&\s]+"
    r"|\b(?:sk|hf|ghp|gho|pk)[-_][A-Za-z0-9_-]{16,}"
    r"|\bBearer\s+\S+",
    re.IGNORECASE,
)


def without_secrets(value: Any) -> Any:
    """Return plain values (as of JSON) with everything that looks like a key or a password replaced by ``***``."""
    if isinstance(value, dict):
        return {key: _hidden(inner) if _is_secret(str(key)) else without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return _SECRET_VALUE.sub(HIDDEN, value) if isinstance(value, str) else value


def _is_secret(name: str) -> bool:
    return name.lower() not in _NOT_SECRET and _SECRET_NAME.search(name) is not None


def _hidden(value: Any) -> Any:
    """All of a secret setting; None and empty say that there is none."""
    if isinstance(value, dict):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return value if value is None or value == "" else HIDDEN
