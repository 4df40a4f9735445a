"""A process that has everything imported and forks a child for every task, so that a child costs milliseconds.

It reads tasks from standard input and writes results to standard output, one JSON object a line. Java does not survive a fork:
tasks with ``fresh`` run in a new process, which is this module with the word ``once``. The child is stopped by a signal where
it takes too long.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Task = dict[str, Any]
Result = dict[str, Any]

_SECONDS = 90
_ATTACHED_WITHIN = 300
_NOBODY = 65534


def perform(task: Task, report: int, go: int) -> None:
    """Do a task in this process, which is a child."""
    signal.alarm(_SECONDS)
    world = Path(task["world"])
    os.environ["XDG_CACHE_HOME"] = str(world / "cache")
    warnings.simplefilter("ignore")
    operation = importlib.import_module(task["operations"]).OPERATIONS[task["operation"]]
    result: Result = {}
    if task["do"] == "known":
        result = _known(operation, world, Path(task["other"]))
    elif task["do"] == "check":
        result = {"checked": [_check(operation, Path(one)) for one in task["worlds"]]}
    else:
        result = _run(task, operation, world, report, go)
    os.write(report, json.dumps(result).encode())


def _known(operation: Any, world: Path, other: Path) -> Result:
    """Prepare a world, and find out in a copy of it what the operation makes of it."""
    from crash.events import Events
    from crash.operation import attempted

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
    result["events"] = list(events.seen)
    result["new"] = operation.look(other)
    result["scratch"] = operation.scratch(other)
    failed = attempted(operation.run, other)
    result["twice"] = [operation.look(other), failed]
    result["modules"] = sorted(sys.modules)
    return result


def _copied(world: Path, other: Path) -> None:
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(world, other)
    os.environ["XDG_CACHE_HOME"] = str(other / "cache")


def _run(task: Task, operation: Any, world: Path, report: int, go: int) -> Result:
    from crash.events import Events, killer, limiter
    from crash.operation import attempted
    from crash.power_loss import Disk

    if operation.native:
        from nlp_retrieval.retrievers.pyserini import jvm as lucene_jvm

        lucene_jvm.start()
    disk = Disk(world, Path(task["power_loss"][0]), task["power_loss"][1]) if "power_loss" in task else None
    listener = killer(*task["kill"]) if "kill" in task else limiter(*task["limit"]) if "limit" in task else disk
    events = Events(world, listener or (lambda *_: None))
    if task.get("nobody") and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    if task.get("traced"):
        os.read(go, 1)
    if listener is not None:
        events.install()
    failed = attempted(operation.run, world)
    os.write(report, b"!")
    if disk is not None:
        disk.end()
    return {"failed": failed}


def _check(operation: Any, world: Path) -> Result:
    """Look at a world, run the operation again, and look again."""
    from crash.operation import attempted

    os.environ["XDG_CACHE_HOME"] = str(world / "cache")
    result: Result = {}
    _age(world)
    for when in ("found", "again"):
        if when == "again":
            result["failed"] = attempted(operation.run, world)
        try:
            result[when] = operation.look(world)
        except Exception as error:
            result[when] = f"{type(error).__name__}: {error}"
    result["scratch"] = operation.scratch(world)
    return result


def _age(world: Path) -> None:
    """Let two hours pass: what another process may just be writing is left alone for one."""
    long_ago = time.time() - 7200
    for path in world.rglob(".*"):
        with contextlib.suppress(OSError):
            os.utime(path, (long_ago, long_ago))


@dataclass
class _Child:
    pid: int
    report: int
    go: int


def _forked(task: Task) -> _Child:
    report_out, report_in = os.pipe()
    go_out, go_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(report_out)
            os.close(go_in)
            perform(task, report_in, go_out)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(report_in)
    os.close(go_out)
    return _Child(pid, report_out, go_in)


def _started(task: Task) -> _Child:
    report_out, report_in = os.pipe()
    go_out, go_in = os.pipe()
    command = [sys.executable, "-m", "crash.worker", "once", json.dumps(task), str(report_in), str(go_out)]
    child = subprocess.Popen(command, pass_fds=(report_in, go_out), stdin=subprocess.DEVNULL)
    child.returncode = 0  # it is waited for by its id
    os.close(report_in)
    os.close(go_out)
    return _Child(child.pid, report_out, go_in)


def handle(task: Task) -> Result:
    """Have a task done by a child, and return what it said and how it ended."""
    child = _started(task) if task.get("fresh") else _forked(task)
    tracer = None
    try:
        if task.get("traced"):
            tracer = _attached(child.pid, task["traced"])
            os.write(child.go, b"!")
        said = b""
        while part := os.read(child.report, 2**20):
            said += part
        _, status = os.waitpid(child.pid, 0)
    finally:
        os.close(child.report)
        os.close(child.go)
        if tracer is not None:
            tracer.wait(_ATTACHED_WITHIN)
            tracer.stderr.close()  # type: ignore[union-attr]
    done = said.startswith(b"!")
    told = said.removeprefix(b"!")
    result: Result = json.loads(told) if told else {}
    return result | {"done": done, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "exit": status >> 8}


def _attached(pid: int, words: list[str]) -> subprocess.Popen[bytes]:
    """Attach strace to a child; returns when it is."""
    tracer = subprocess.Popen(["strace", "-f", "-p", str(pid), *words], stderr=subprocess.PIPE)
    begin = time.monotonic()
    while time.monotonic() - begin < _ATTACHED_WITHIN:
        line = tracer.stderr.readline()  # type: ignore[union-attr]
        if b"attached" in line or not line:
            break
    return tracer


def serve() -> None:
    """Answer tasks until the input ends."""
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
            result: Result = {}
        else:
            result = handle(task)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        perform(json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        sys.stdout.flush()
        os._exit(0)
    serve()
