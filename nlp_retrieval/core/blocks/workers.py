"""How many workers encode, and where they are: of the call that is running.

The ground knows only that there may be workers; :mod:`nlp_retrieval.encoders.workers` starts them when the first block is
there, and they end with the call that asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from nlp_retrieval.errors import ConfigurationError

MOST_WORKERS = 4096


@dataclass(frozen=True)
class Workers:
    """Who encodes the passages of an index, and computes the stages of a benchmark.

    Args:
        n: how many workers, of one core each; None for as many as the cluster has room for, or for none without a cluster.
        ray: address of a Ray cluster, or ``auto`` for the one that this machine belongs to; None for processes of this machine.

    Raises:
        ConfigurationError: a number below 1 or too large, or no address.
    """

    n: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.n is not None and (isinstance(self.n, bool) or not isinstance(self.n, int) or not 1 <= self.n <= MOST_WORKERS):
            raise ConfigurationError(
                f"workers={self.n!r}: expected a whole number from 1 to {MOST_WORKERS:,}; each worker is a process that uses "
                "one core, and 1 means no further process"
            )
        if self.ray is not None and (not isinstance(self.ray, str) or not self.ray.strip()):
            raise ConfigurationError(f"ray={self.ray!r}: expected 'auto', or the address of a cluster such as '10.0.0.5:6379'")

    @property
    def elsewhere(self) -> bool:
        """Whether anything is encoded outside of this process."""
        return self.ray is not None or (self.n or 1) > 1


THIS_PROCESS = Workers()
"""No workers: whoever is asked encodes by itself."""


class Closable(Protocol):
    """What ends its workers."""

    def close(self) -> None:
        """End them."""


class Crew:
    """The workers of one call; started when they are first needed."""

    def __init__(self, wanted: Workers) -> None:
        self.wanted = wanted
        self._pool: Closable | None = None

    def pool(self, start: Callable[[Workers], Closable]) -> Closable:
        """Return the pool of this call, started by ``start`` where there is none yet."""
        if self._pool is None:
            self._pool = start(self.wanted)
        return self._pool

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


_crew: ContextVar[Crew | None] = ContextVar("nlp_retrieval_workers", default=None)


@contextmanager
def working(wanted: Workers) -> Iterator[None]:
    """Have these workers encode the passages of what is built inside the block, and end them after it."""
    if not wanted.elsewhere:
        yield
        return
    crew: Crew = Crew(wanted)
    token = _crew.set(crew)
    try:
        yield
    finally:
        _crew.reset(token)
        crew.close()


def current_crew() -> Crew | None:
    """The workers of the call that is running; None where it encodes by itself."""
    return _crew.get()
