"""What an error tells to pass, which is said as in Python, as an option of the command that was called."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from nlp_retrieval.errors import SourceError

_PASSED = re.compile(r'\bpass (\w+)=("[^"]*"|\[[^\]]*\]|\w*)')


def as_option(error: Exception, parameters: Sequence[Any]) -> str:
    """Return how to pass on the command line what an error tells to pass; empty where it tells nothing that can be.

    Args:
        error: its message says ``pass name=value``, or does not.
        parameters: the command's, as typer has them.
    """
    told = _PASSED.search(str(error))
    if told is None:
        return ""
    name, value = told[1], told[2].replace('"', "") or "..."
    own = {parameter.name: parameter for parameter in parameters}
    if name in own and value == "True":
        return f" (here: {own[name].opts[0]})"
    if name not in own and "option" in own and isinstance(error, SourceError):
        written = f"{name}={value}"
        return f" (here: -o {shlex.quote(written)})"
    return ""
