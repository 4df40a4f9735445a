"""The tests' side of :mod:`crash.worker`: tasks out, results in; and the judgement of what an interruption left."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from postgres_server import admin_url, env_url
from readable import is_readable

from crash.operation import Operation, State
from crash.worker import Result

_TESTS = Path(__file__).parent.parent
_SECONDS = 150
_CHEAPLY = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

_STARTING_JAVA = "jnius", "pyserini"
"""Modules that each child imports by itself, as Java does not survive a fork."""


class Worker:
    """A worker process, and a folder for the worlds of its tasks."""

    def __init__(self, folder: Path, operations: str) -> None:
        self.folder, self.operations = folder, operations
        self._worlds = 0
        self.log = (folder / "log.txt").open("w+")
        env_url()
        with psycopg.connect(admin_url()) as connection:  # or the first operation of all would do more than the others
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        paths = [str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crash.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=folder,
            env=os.environ | _CHEAPLY | {"PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, do: str, operation: Operation, world: Path, **more: Any) -> Result:
        """Have something done by a child of the worker."""
        task = {"do": do, "operations": self.operations, "operation": operation.name, "world": str(world)}
        return self.send(task | more)

    def send(self, task: dict[str, Any]) -> Result:
        """Send a task and wait for its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        self._process.stdin.flush()
        assert is_readable(self._process.stdout, _SECONDS), f"no answer within {_SECONDS} s to {task}"
        line = self._process.stdout.readline()
        assert line, f"the worker ended at {task}:\n{self.told()}"
        result: Result = json.loads(line)
        return result

    def told(self) -> str:
        """The end of what the worker and its children printed."""
        self.log.seek(0)
        return self.log.read()[-3000:]

    def world(self) -> Path:
        """A folder that is not there yet."""
        self._worlds += 1
        return self.folder / f"world{self._worlds}"

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=300)
        self.log.close()


class Trials:
    """An operation with its old and new state, and what interruptions left of it."""

    def __init__(self, worker: Worker, operation: Operation) -> None:
        self.worker, self.operation = worker, operation
        self.tried, self.wrong = 0, list[str]()
        self._before = worker.world()
        self._before.mkdir()
        known = worker.ask("known", operation, self._before, other=str(worker.world()))
        assert "twice" in known, f"{known}\n{worker.told()}"
        modules = [name for name in known["modules"] if not name.startswith(_STARTING_JAVA)]
        worker.send({"do": "import", "modules": modules})  # the children that come later find it imported
        assert not known["scratch"], known["scratch"]
        assert known["old"] != known["new"], "nothing would be seen of an interruption"
        self.events: list[str] = known["events"]
        self.states: list[State] = [known[name] for name in ("old", "new", "halfway") if name in known]
        self.new: State = known["new"]
        self.halfway: State = known.get("halfway")
        self.twice: list[State] = known["twice"]

    @property
    def right(self) -> int:
        """How many of those tried were judged right."""
        return self.tried - len(self.wrong)

    def anew(self) -> Trials:
        """The same, with nothing tried yet."""
        made = copy.copy(self)
        made.tried, made.wrong = 0, []
        return made

    @contextmanager
    def world(self) -> Iterator[Path]:
        """A copy of the world as it is before the operation, removed at the end of the block."""
        path = self.worker.world()
        shutil.copytree(self._before, path, symlinks=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def judge(self, world: Path, how: str, *, done: bool) -> bool:
        """Whether what an interruption left is the old state or the new one, and the operation then succeeds."""
        checked = self.worker.ask("check", self.operation, world)
        ended = f"looking at it ended with signal {checked['signal']}, exit {checked['exit']}"
        wrong = self._wrong(checked, done) if "found" in checked else ended
        if wrong:
            self.wrong.append(f"{self.operation.name}, {how}: {wrong}")
        self.tried += 1
        return not wrong

    def _wrong(self, checked: Result, done: bool) -> str:
        found, again, failed = checked["found"], checked["again"], checked["failed"]
        if done and found != self.new:
            return f"it was reported done, and now there is {found!r:.400}"
        if found not in self.states and not self.operation.between(found, self.states[0], self.new):
            return f"neither the old state nor the new one, but {found!r:.400}"
        expected = self.twice if found == self.new else [self.new, ""]
        if [again, failed] != expected and found != self.halfway:
            return f"run again: {failed or again!r:.400}"
        return f"run again, it leaves {checked['scratch']}" if checked["scratch"] else ""


class AllTrials(dict[str, Trials]):
    """Operations with their states, made when they are first asked for."""

    def __init__(self, worker: Worker, operations: dict[str, Operation]) -> None:
        super().__init__()
        self._worker, self._operations = worker, operations

    def __missing__(self, name: str) -> Trials:
        self[name] = Trials(self._worker, self._operations[name])
        return self[name]


@contextmanager
def all_trials(operations: str, of: dict[str, Operation]) -> Iterator[AllTrials]:
    """Trials by a worker in a folder that a user without rights can enter, which those of pytest are not."""
    in_memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="crash-", dir=in_memory if os.access(in_memory, os.W_OK) else None))
    folder.chmod(0o755)
    worker = Worker(folder, operations)
    try:
        yield AllTrials(worker, of)
    finally:
        worker.close()
        shutil.rmtree(folder, ignore_errors=True)


def sampled(points: list[Any], most: int) -> list[Any]:
    """At most so many of the points, drawn evenly and in order."""
    if len(points) <= most:
        return points
    return [points[place] for place in sorted(random.Random(0).sample(range(len(points)), most))]


ONLY_BEFORE = ("open ", "sql ")
"""Events of which nobody is told after them."""
