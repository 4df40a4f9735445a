"""A process that has everything imported and forks a child for every task, so that a child costs milliseconds.

It reads tasks from standard input and writes results to standard output, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from crash.events import Events, killer, limiter
from crash.operation import Operation, attempted
from crash.power_loss import Disk

Task = dict[str, Any]
Result = dict[str, Any]

_SECONDS = 90
_NOBODY = 65534


def perform(task: Task, report: int) -> Result:
    """Do a task in this process, which is a child and is stopped by a signal where it takes too long."""
    signal.alarm(_SECONDS)
    world = Path(task["world"])
    os.environ["XDG_CACHE_HOME"] = str(world / "cache")
    warnings.simplefilter("ignore")
    operation: Operation = importlib.import_module(task["operations"]).OPERATIONS[task["operation"]]
    if task["do"] == "known":
        return _known(operation, world, Path(task["other"]))
    if task["do"] == "check":
        return _check(operation, world)
    return _run(task, operation, world, report)


def _known(operation: Operation, world: Path, other: Path) -> Result:
    """Prepare a world, and find out in a copy of it what the operation makes of it."""
    operation.prepare(world)
    result: Result = {}
    for name, change in (("old", None), ("halfway", operation.halfway)):
        if name == "old" or change is not None:
            _copied(world, other)
            if change is not None:
                change(other)
            result[name] = operation.look(other)
    _copied(world, other)
    events = Events(other, lambda *_: None)
    events.install()
    operation.run(other)
    result |= {"events": list(events.seen), "new": operation.look(other), "scratch": operation.scratch(other)}
    failed = attempted(operation.run, other)
    return result | {"twice": [operation.look(other), failed], "modules": sorted(sys.modules)}


def _copied(world: Path, other: Path) -> None:
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(world, other)
    os.environ["XDG_CACHE_HOME"] = str(other / "cache")


def _run(task: Task, operation: Operation, world: Path, report: int) -> Result:
    disk = Disk(world, Path(task["power_loss"][0]), task["power_loss"][1]) if "power_loss" in task else None
    listener = killer(*task["kill"]) if "kill" in task else limiter(task["limit"]) if "limit" in task else disk
    if task.get("nobody") and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    if listener is not None:
        Events(world, listener).install()
    failed = attempted(operation.run, world)
    os.write(report, b"!")
    if disk is not None:
        disk.end()
    return {"failed": failed}


def _check(operation: Operation, world: Path) -> Result:
    """Look at a world, run the operation again, and look again."""
    result: Result = {}
    long_ago = time.time() - 7200  # what another process may just be writing is left alone for an hour
    for path in world.rglob(".*"):
        with contextlib.suppress(OSError):
            os.utime(path, (long_ago, long_ago))
    for when in ("found", "again"):
        if when == "again":
            result["failed"] = attempted(operation.run, world)
        try:
            result[when] = operation.look(world)
        except Exception as error:
            result[when] = f"{type(error).__name__}: {error}"
    return result | {"scratch": operation.scratch(world)}


def handle(task: Task) -> Result:
    """Have a task done by a child, and return what it said and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.write(writing, json.dumps(perform(task, writing)).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    told = said.removeprefix(b"!")
    result: Result = json.loads(told) if told else {}
    ended = {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "exit": status >> 8}
    return result | {"done": said.startswith(b"!")} | ended


def serve() -> None:
    """Answer tasks until the input ends; the modules that one names are imported for the children to come."""
    tried: set[str] = set()
    for line in sys.stdin:
        task = json.loads(line)
        if task["do"] == "import":
            for name in set(task["modules"]) - set(sys.modules) - tried:
                tried.add(name)
                with contextlib.suppress(Exception), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    importlib.import_module(name)
            gc.collect()
            gc.freeze()  # what is there is no child's garbage, and its pages stay shared
        sys.stdout.write(json.dumps({} if task["do"] == "import" else handle(task)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
