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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from milvus_server import milvus_url
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


class Worker:
    """A worker process, and a folder for the worlds of its tasks."""

    def __init__(self, folder: Path, operations: str) -> None:
        self.folder, self.operations = folder, operations
        self._worlds = 0
        self.log = (folder / "log.txt").open("w+")
        env_url(), milvus_url()
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
        fresh = {"fresh": True} if operation.native else {}
        task = {"do": do, "operations": self.operations, "operation": operation.name, "world": str(world)}
        return self.send(task | fresh | more)

    def known(self, operation: Operation, world: Path, other: Path) -> Result:
        """Prepare an operation in one world, and see in another what it does when nothing interrupts it."""
        known = self.ask("known", operation, world, other=str(other))
        self.log.seek(0)
        assert "twice" in known, f"{known}\n{self.log.read()[-3000:]}"
        return known

    def send(self, task: dict[str, Any]) -> Result:
        """Send a task and wait for its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        self._process.stdin.flush()
        assert is_readable(self._process.stdout, _SECONDS), f"no answer within {_SECONDS} s to {task}"
        line = self._process.stdout.readline()
        self.log.seek(0)
        assert line, f"the worker ended at {task}:\n{self.log.read()}"
        result: Result = json.loads(line)
        return result

    def world(self) -> Path:
        """A folder that is not there yet."""
        self._worlds += 1
        return self.folder / f"world{self._worlds}"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(300)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self.log.close()


@dataclass
class Trials:
    """An operation with its old and new state, and what interruptions left of it."""

    worker: Worker
    operation: Operation
    tried: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = self.worker.world()
        self._before.mkdir()
        known = self.worker.known(self.operation, self._before, self.worker.world())
        if not self.operation.native:  # the children that come later find it imported
            self.worker.send({"do": "import", "modules": known["modules"]})
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
        return self.judge_all([(world, how, done)])

    def judge_all(self, left: list[tuple[Path, str, bool]]) -> bool:
        """Judge several in one process, as :meth:`judge` does one."""
        if not left:
            return True
        worlds = [str(world) for world, _, _ in left]
        result = self.worker.ask("check", self.operation, left[0][0], worlds=worlds)
        ended = f"looking at it ended with signal {result['signal']}, exit {result['exit']}"
        before = len(self.wrong)
        for place, (_, how, done) in enumerate(left):
            wrong = self._wrong(result["checked"][place], done) if "checked" in result else ended
            if wrong:
                self.wrong.append(f"{self.operation.name}, {how}: {wrong}")
        self.tried += len(left)
        return len(self.wrong) == before

    def _wrong(self, checked: Result, done: bool) -> str:
        found, again, failed = checked["found"], checked["again"], checked["failed"]
        if done and self.operation.promised and found != self.new:
            return f"it was reported done, and now there is {_short(found)}"
        if found not in self.states and not self.operation.between(found, self.states[0], self.new):
            return f"neither the old state nor the new one, but {_short(found)}"
        expected = self.twice if found == self.new else [self.new, ""]
        if [again, failed] != expected and found != self.halfway:
            return f"run again: {failed or _short(again)}"
        if checked["scratch"]:
            return f"run again, it leaves {checked['scratch']}"
        return ""


@contextmanager
def working(operations: str) -> Iterator[Worker]:
    """A worker in a folder that a user without rights can enter, which those of pytest are not."""
    in_memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="crash-", dir=in_memory if os.access(in_memory, os.W_OK) else None))
    folder.chmod(0o755)
    made = Worker(folder, operations)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


class AllTrials(dict[str, Trials]):
    """Operations with their states, made when they are first asked for."""

    def __init__(self, worker: Worker, operations: dict[str, Operation]) -> None:
        super().__init__()
        self._worker, self._operations = worker, operations

    def __missing__(self, name: str) -> Trials:
        self[name] = Trials(self._worker, self._operations[name])
        return self[name]


def sampled(points: list[Any], most: int, seed: int = 0) -> list[Any]:
    """At most so many of the points, drawn evenly and in order."""
    if len(points) <= most:
        return points
    return [points[place] for place in sorted(random.Random(seed).sample(range(len(points)), most))]


ONLY_BEFORE = ("open ", "sql ", "request ")
"""Events of which nobody is told after them."""


def named(operations: dict[str, Operation], *, native: bool, synced: bool = False) -> list[str]:
    """The names of the operations that start Java, or of the others."""
    return [name for name, one in operations.items() if one.native == native and not (synced and one.synced_unseen)]


def _short(state: State) -> str:
    text = json.dumps(state)
    return text if len(text) < 400 else f"{text[:400]}..."
