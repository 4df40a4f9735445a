"""Use of language models during a run: calls, tokens, and failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass
from operator import add, sub

from nlp_retrieval.core.processes import Lock


@dataclass(frozen=True)
class CallCounts:
    """A count, so far.

    Args:
        calls: requests that were sent, retries among them.
        cache_hits: answers found on disk.
        tokens_in: tokens of the prompts sent, as the server counts them; 0 if it does not report them.
        tokens_out: tokens of its answers.
        failures: requests without an answer: refused, timed out, an error of the server.
        degraded: questions without a usable answer, so that their query was searched unchanged.
        kept_tokens_in: tokens that the prompts of the answers on disk took originally, which are not spent again; 0 if unknown.
        kept_tokens_out: the same for those answers.

    Examples:
        >>> CallCounts(calls=3, tokens_in=1200, tokens_out=80).tokens_in
        1200
    """

    calls: int = 0
    cache_hits: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failures: int = 0
    degraded: int = 0
    kept_tokens_in: int = 0
    kept_tokens_out: int = 0

    @property
    def answers(self) -> int:
        """How many answers there were, from the server or from disk, usable or not."""
        return self.calls - self.failures + self.cache_hits

    def __add__(self, other: CallCounts) -> CallCounts:
        return CallCounts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: CallCounts) -> CallCounts:
        return CallCounts(*map(sub, astuple(self), astuple(other)))


def summed(counts: Iterable[CallCounts]) -> CallCounts:
    """Return the sum of counts; all zeros if there are none."""
    return sum(counts, CallCounts())


class CallCounter:
    """A count that several threads add to, of a model; ``""`` for a recording."""

    def __init__(self, model: str = "") -> None:
        self.model = model
        self._lock = Lock()
        self._by_model: dict[str, CallCounts] = {}
        self.last_failure = ""

    @property
    def failure(self) -> str | None:
        """The reason why no question to a language model got any answer; None if one did, or nothing was asked."""
        degraded = [counts for counts in self.by_model.values() if counts.degraded]
        return self.last_failure if degraded and not any(counts.answers for counts in degraded) else None

    def add(self, counts: CallCounts, model: str) -> None:
        """Add to the count of a model."""
        with self._lock:
            self._by_model[model] = self._by_model.get(model, CallCounts()) + counts

    @property
    def by_model(self) -> dict[str, CallCounts]:
        """The count so far of each model, in the order of their names."""
        with self._lock:
            return dict(sorted(self._by_model.items()))

    @property
    def counts(self) -> CallCounts:
        """The count so far, over all models."""
        return summed(self.by_model.values())


_recordings: ContextVar[tuple[CallCounter, ...]] = ContextVar("nlp_retrieval_recordings", default=())


@contextmanager
def record_calls() -> Iterator[CallCounter]:
    """Count all calls of language models inside the block, in this thread and in those that the package starts for it.

    Examples:
        >>> with record_calls() as counter:
        ...     answer = "krill"  # ask models here
        >>> counter.counts.calls, counter.counts.tokens_in
        (0, 0)
    """
    counter = CallCounter()
    token = _recordings.set((*_recordings.get(), counter))
    try:
        yield counter
    finally:
        _recordings.reset(token)


def count(own: CallCounter, counts: CallCounts, failure: str = "") -> None:
    """Add to a model's own count and to that of every recording around the caller; ``failure`` says why there is no answer."""
    for counter in (own, *_recordings.get()):
        counter.add(counts, own.model)
        if failure:
            counter.last_failure = f"{own.model}: {failure}"
