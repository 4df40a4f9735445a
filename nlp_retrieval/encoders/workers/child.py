"""A worker process: ``python -m nlp_retrieval.encoders.workers.child DESCRIPTOR``, started by the process that uses it.

It takes requests from the socket that it was started with, one at a time, and answers each. It ends when the other end of that
socket is closed, even in the middle of its work.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from nlp_retrieval.encoders.workers.worker import Failure, WorkerSide

_LOOKING = 0.5
"""Seconds between two checks that the parent process still exists."""


def main() -> None:
    """Do what is asked until the parent is gone."""
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    side = WorkerSide()
    while True:
        try:
            what, *given = connection.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # the object sent cannot be created here: a module is missing
            connection.send(Failure.of(error))
            continue
        connection.send(side.ask(*given) if what == "ask" else side.do(*given))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKING)
    os._exit(1)


if __name__ == "__main__":
    main()
