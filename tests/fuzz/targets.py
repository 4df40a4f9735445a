"""One function for each parser: it takes any bytes, and lets through nothing but the project's own errors.

An error that escapes, an oracle that disagrees, a hang, a crash of the interpreter and memory that grows without bound are
findings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from .settings import BY_USERS
from .sources import FROM_OTHERS

Target = Callable[[bytes], bool]

TARGETS: dict[str, Target] = {target.__name__: target for target in (*FROM_OTHERS, *BY_USERS)}


def feed(target: str, data: bytes, targets: Mapping[str, Target] = TARGETS) -> bool:
    """Give a target an input; returns whether the parser took it, and raises what the target does not expect."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for accepted in (UserWarning, DeprecationWarning):  # ours, and those of numpy about strange headers
            warnings.simplefilter("ignore", accepted)
        return targets[target](data)
