"""Workers on the nodes of a Ray cluster (Moritz et al., OSDI 2018, https://arxiv.org/abs/1712.05889).

A worker is an actor with a core of its own, which opens a model once and does block after block. A lost actor is a lost worker:
its block is done again elsewhere, and another actor is started if there is room for one. Ray's own restarts are off, so that
every worker reports its versions and its model before its first block.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from nlp_retrieval.encoders.workers import (
    Confirmed,
    Failure,
    NoRoomError,
    Task,
    Worker,
    WorkerLostError,
    WorkerPool,
    WorkerSide,
)
from nlp_retrieval.errors import ConfigurationError, DependencyError, WorkerError, first_line, install

ROOM_SECONDS = 60.0
"""Seconds that a worker waits for a free core and for its process to start."""

LOOK_SECONDS, MISSED_LOOKS = 3.0, 4
"""Seconds between two checks that the head is alive, and how often it may be missed."""

_REACHED_SECONDS = 5.0
_WAITED_SECONDS = 0.5
"""Seconds that a thread stays inside Ray at a time: if one still is when Ray is shut down, Ray ends the whole process."""

_ADVICE = "see 'ray status', and give the workers more memory or fewer at a time; the same call continues from there"


class ActorSide(WorkerSide):
    """A worker, from inside the cluster."""

    def place(self) -> str:
        ray = _ray()
        return f"worker process {os.getpid()} on node {ray.util.get_node_ip_address()}"


class ClusterWorker(Worker):
    """An actor of a Ray cluster.

    Args:
        ray: the module of that name.
        actors: creates actors.
        gone: set when the head of the cluster is gone, which ends all waiting.
    """

    def __init__(self, ray: Any, actors: Any, gone: threading.Event) -> None:
        self._ray, self._gone, self._started = ray, gone, False
        try:
            self._actor = actors.remote()
        except Exception as error:  # any exception of Ray after the loss of its head
            raise WorkerLostError(_reason(error)) from None

    def ask(self, doing: str, task: Task) -> Confirmed | Failure:
        if not self._started:
            self.place = self._node_name()
            self._started = True
        return cast("Confirmed | Failure", self._answer(self._actor.ask, doing, task))

    def do(self, doing: str, work: object) -> object:
        return self._answer(self._actor.do, doing, work)

    def close(self) -> None:
        with suppress(Exception):  # it is gone, or the whole cluster is
            self._ray.kill(self._actor)

    def _node_name(self) -> str:
        try:
            return str(self._get(self._actor.place.remote(), ROOM_SECONDS))
        except self._ray.exceptions.GetTimeoutError:
            raise NoRoomError(
                f"a worker waited {ROOM_SECONDS:g} seconds for a core of the cluster, which has {_free_cores(self._ray)}"
            ) from None
        except Exception as error:  # any exception of Ray if an actor does not start
            raise WorkerLostError(f"a worker did not start: {_reason(error)}") from None

    def _answer(self, method: Any, *given: object) -> object:
        try:
            return self._get(method.remote(*given))
        except Exception as error:  # an encoder's error is an answer; this one is of the actor, its node or the cluster
            raise WorkerLostError(f"{self.place} ended: {_reason(error)}") from None

    def _get(self, answer: Any, seconds: float = math.inf) -> object:
        """Wait for an answer as ``ray.get`` does, but not when the head is gone."""
        deadline = time.monotonic() + seconds
        while not self._gone.is_set():
            try:
                return self._ray.get(answer, timeout=_WAITED_SECONDS)
            except self._ray.exceptions.GetTimeoutError:
                if time.monotonic() >= deadline:
                    raise
        raise WorkerLostError("the head of the cluster is gone")


def cluster_pool(address: str, n_workers: int | None) -> WorkerPool:
    """Return a pool of workers of a Ray cluster, which are started when there is work for them.

    Args:
        address: of the cluster, ``host:port``; or ``auto`` for the one that this machine belongs to.
        n_workers: number of workers; at most, and by default, the number of the cluster's cores.

    Raises:
        ConfigurationError: the address is one of Ray's client.
        DependencyError: ray is not installed.
        WorkerError: there is no cluster, it is of another version of Ray or Python, or it has no core.
    """
    ray = _ray()
    if "://" in address:
        raise ConfigurationError(f"ray={address!r}: pass host:port, on a machine of the cluster; Ray's client is not supported")
    connected = ray.is_initialized()
    if connected:
        _require_same(ray, address)
    else:
        _connect(ray, address)
    n_cores = int(ray.cluster_resources().get("CPU", 0))
    actors = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD")(ActorSide)
    gone, over = threading.Event(), threading.Event()
    pool = WorkerPool(lambda: ClusterWorker(ray, actors, gone), min(n_workers or n_cores, n_cores), _ADVICE)
    if not connected:
        pool.at_the_end(lambda: _disconnect(ray))
    pool.at_the_end(over.set)
    head = ray.get_runtime_context().gcs_address
    threading.Thread(target=_watch, args=(head, pool, gone, over), daemon=True).start()
    if n_cores < 1:
        pool.close()
        raise WorkerError(f"the Ray cluster at {address} has no core for a worker; start a node with --num-cpus")
    return pool


def _watch(head: str, pool: WorkerPool, gone: threading.Event, over: threading.Event) -> None:
    """End the call with an error when the head of the cluster is gone: Ray ends the whole process after a minute."""
    missed = 0
    while not over.wait(LOOK_SECONDS) and missed < MISSED_LOOKS:
        missed = 0 if _connection_error(head) is None else missed + 1
    if missed >= MISSED_LOOKS:
        gone.set()
        pool.give_up(
            WorkerError(
                f"the head of the Ray cluster at {head} is gone; restart it and repeat the call: it continues from "
                "what is stored"
            )
        )


def _connection_error(where: str) -> OSError | None:
    """Return the reason why no connection can be made; None if it was made."""
    host, _, port = where.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _REACHED_SECONDS).close()
    except OSError as error:
        return error
    return None


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray reports usage to its makers
    try:
        import ray
    except ImportError as error:
        raise DependencyError(f"a cluster needs ray ({error}): {install('ray')}") from error
    return ray


_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTERM)
_LARGEST_ACTION = 512
"""Bytes, more than a ``struct sigaction`` has on any platform."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that end a process: Ray sets its own, and removes existing ones.

    Java reads invalid memory on purpose, and its handler turns that into an exception. Without it, a search by Lucene after a
    connection to a cluster would end the process.
    """
    library = ctypes.CDLL(None)
    handlers = {number: ctypes.create_string_buffer(_LARGEST_ACTION) for number in _SIGNALS}
    saved = [number for number, handler in handlers.items() if library.sigaction(int(number), None, handler) == 0]
    try:
        yield
    finally:
        for number in saved:
            library.sigaction(int(number), handlers[number], None)


def _connect(ray: Any, address: str) -> None:
    where = _resolve_address(address)
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"ray={address!r}: expected 'auto', or the address of a cluster such as '10.0.0.5:6379'")
    if (error := _connection_error(where)) is not None:  # Ray itself would try for minutes, and then end this process
        raise WorkerError(f"there is no Ray cluster at {where} ({error}); start one with 'ray start --head', or check it")
    try:
        with handlers_kept():
            ray.init(address=where, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # a RuntimeError for other versions, and undocumented exceptions
        raise WorkerError(f"the Ray cluster at {where} cannot be used: {' '.join(str(error).split())}") from error


def _disconnect(ray: Any) -> None:
    with handlers_kept():
        ray.shutdown()


def _resolve_address(address: str) -> str:
    """The address of the cluster; ``auto`` is looked up as Ray does."""
    if address != "auto":
        return address
    from ray._private.services import canonicalize_bootstrap_address

    try:
        local_address = canonicalize_bootstrap_address("auto")
    except Exception as error:  # a ConnectionError, which Ray does not document
        raise WorkerError(f"there is no Ray cluster on this machine: {first_line(error)}") from None
    if not local_address:
        raise WorkerError("there is no Ray cluster on this machine; start one with 'ray start --head', or pass its address")
    return str(local_address)


def _require_same(ray: Any, address: str) -> None:
    connected = ray.get_runtime_context().gcs_address
    if address not in ("auto", connected):
        raise WorkerError(f"this process is connected to the Ray cluster at {connected} already; call ray.shutdown() first")


def _free_cores(ray: Any) -> str:
    everywhere, free = ray.cluster_resources(), ray.available_resources()
    return f"{everywhere.get('CPU', 0):g} cores on {len(ray.nodes())} nodes, {free.get('CPU', 0):g} of them free"


def _reason(error: Exception) -> str:
    """Return Ray's explanation of an end, in one line: the sentence that gives the reason, if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    because = [line for line in lines if "because" in line or "memory" in line]
    return " ".join((because or lines or [type(error).__name__])[:2])[:300]
