"""One function for each parser: it takes any bytes, and lets through nothing but the project's own errors.

An error that escapes, an oracle that disagrees, a hang, a crash of the interpreter and memory that grows without bound are
findings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from .settings import BY_USERS
from .sources import FROM_MODELS, FROM_OTHERS

Target = Callable[[bytes], bool]

_ALL = (FROM_OTHERS, FROM_MODELS, BY_USERS)
TARGETS: dict[str, Target] = {target.__name__: target for targets in _ALL for target in targets}


def feed(target: str, data: bytes, targets: Mapping[str, Target] = TARGETS) -> bool:
    """Give a target an input.

    Args:
        target: its name.
        data: any bytes.
        targets: by name.

    Returns:
        Whether the parser took it.

    Raises:
        Exception: anything that the target does not expect.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for accepted in (UserWarning, DeprecationWarning):  # ours, and those of numpy about strange headers
            warnings.simplefilter("ignore", accepted)
        return targets[target](data)
