"""The protocol over standard input and output, for the program that started this one; nothing else is written there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nlp_retrieval.service.endpoints import BaseService
from nlp_retrieval.service.mcp.server import create_mcp_server, require_mcp
from nlp_retrieval.service.serving import leave_notes_out
from nlp_retrieval.service.settings import ServiceLimits
from nlp_retrieval.service.work import WorkPool

__all__ = ["serve_stdio"]


def serve_stdio(opening: Callable[[], BaseService], limits: ServiceLimits, told: Callable[[], None]) -> None:
    """Answer the messages on standard input until it ends, or a signal ends the process.

    Args:
        opening: opens what is served.
        limits: how much a call may ask.
        told: is called when it is open.

    Raises:
        DependencyError: the protocol's package is not installed.
        RetrievalError: what is served cannot be opened.
    """
    require_mcp()
    leave_notes_out()
    with _output_elsewhere():
        service = opening()
    # whoever reads standard input in a thread cannot be interrupted; what is written is whole or not at all
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    told()
    try:
        asyncio.run(_answer(service, limits))
    finally:
        signal.signal(signal.SIGINT, before)


async def _answer(service: BaseService, limits: ServiceLimits) -> None:
    from mcp.server.stdio import stdio_server

    reading = WorkPool(limits.threads, limits.waiting, limits.seconds)
    writing = WorkPool(1, limits.waiting, limits.writing_seconds)
    server = create_mcp_server(service, limits.body, reading, writing)
    try:
        async with stdio_server() as (incoming, outgoing):  # what anything else writes meanwhile goes to standard error
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        for pool in (reading, writing):
            pool.close()
        service.close()


@contextmanager
def _output_elsewhere() -> Iterator[None]:
    """Let what libraries print, in whatever language, go to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
