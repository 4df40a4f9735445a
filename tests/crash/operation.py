"""What is interrupted: how its folder is prepared, how it runs, and what can be seen of it.

All of an operation lies in one folder, its world: the index, the cache of the user, the files of a benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlp_retrieval.errors import RetrievalError

State = Any
"""What can be seen of a world, as JSON holds it."""


@dataclass(frozen=True)
class Operation:
    """Something that is interrupted."""

    name: str
    prepare: Callable[[Path], object]
    run: Callable[[Path], object]
    look: Callable[[Path], State]
    scratch: Callable[[Path], list[str]]
    """What lies in a world that nobody will read, after a later writer had the chance to remove it."""
    halfway: Callable[[Path], object] | None = None
    """Does a part that is published before the rest."""
    between: Callable[[State, State, State], bool] = lambda found, old, new: False
    """Whether a state that is neither the old nor the new one may be seen, given these two."""
    synced_unseen: bool = False
    """Whether native code makes files durable without Python, so that power cannot be cut in a record of it."""


def attempted(run: Callable[[Path], object], world: Path) -> str:
    """Run something in a world; returns the error that the project raised, or nothing."""
    try:
        run(world)
    except RetrievalError as error:
        return f"{type(error).__name__}: {error}".replace(str(world), "WORLD")
    return ""
