"""Several requests under way at the same time; the first failure ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

PartT = TypeVar("PartT")
MadeT = TypeVar("MadeT")


def side_by_side(ask: Callable[[PartT, Callable[[], bool]], MadeT], parts: Sequence[PartT], at_once: int) -> list[MadeT]:
    """Ask about each part, several at a time; the first failure ends the others, and is raised.

    Args:
        ask: is given a part, and what tells whether an answer is still wanted.
        parts: what to ask about.
        at_once: so many at a time.
    """
    failed: list[BaseException] = []

    def asked(part: PartT) -> MadeT:
        try:
            return ask(part, lambda: not failed)
        except BaseException as error:
            failed.append(error)
            raise

    if len(parts) < 2 or at_once == 1:
        return [asked(part) for part in parts]
    with ThreadPoolExecutor(min(at_once, len(parts)), thread_name_prefix="nlp_retrieval-endpoint") as pool:
        futures = [pool.submit(copy_context().run, asked, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            failed.append(error)
            pool.shutdown(wait=False, cancel_futures=True)
            raise failed[0] from None
