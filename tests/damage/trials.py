"""A process that opens what was damaged, trusting it: where it dies, so would a user's.

It reads a JSON object a line, and answers each with one: what was found, or which error was raised. :class:`Trials` drives
it from a test, and starts another where one has died or hangs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from readable import is_readable

import nlp_retrieval
from nlp_retrieval.errors import RetrievalError

TESTS = Path(__file__).parent.parent
HANGS_AFTER = 60.0


class Trials:
    """Runs what may kill the interpreter in another one."""

    def __init__(self, *, engines: str = "damage.collection") -> None:
        self._engines = engines
        self._process: subprocess.Popen[bytes] | None = None
        self.died: list[str] = []

    def run(self, action: str, **told: object) -> dict[str, Any]:
        """Return what came of an action: ``found``, or ``error`` and ``message``; or ``died``, with the signal or "hangs"."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"action": action} | told).encode() + b"\n")
            process.stdin.flush()
        ready = is_readable(process.stdout, HANGS_AFTER)
        line = process.stdout.readline() if ready else b""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if not ready:
            process.kill()
        process.communicate()
        code = process.returncode
        self._process = None
        ended = signal.Signals(-code).name if code < 0 else f"exit {code}"
        self.died.append(f"{action} {told}: {ended if ready else 'hangs'}")
        return {"died": ended if ready else "hangs"}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate(timeout=300)
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "damage.trials", self._engines]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=TESTS, start_new_session=True
        )
        return self._process


def believe_all_files() -> None:
    """Make opening believe every file, whatever its size: what is left are the readers' own checks."""

    def believed(*_: object, **__: object) -> None:
        return None

    for name, module in list(sys.modules.items()):
        if name.startswith("nlp_retrieval.") and hasattr(module, "check_file"):
            module.check_file = believed


def search(index: str, label: str, backend: str = "numpy") -> list[list[list[object]]]:
    """Search with one retriever: ids and scores."""
    from damage.collection import QUERIES, lucene
    from nlp_retrieval import Searcher

    retriever = lucene() if label == "lucene" else import_module(sys.argv[1]).retrievers(backend)[label]
    results = Searcher([retriever]).open(index).search(QUERIES, 10)
    return [[[hit.item.item_id, hit.score] for hit in hits] for hits in results]


def read_run(folder: str) -> object:
    """Read a run folder back as the commands that compare runs do: lists, measures and the report."""
    from nlp_retrieval.benchmarks.runs import read_run_folder

    saved = read_run_folder(folder)
    measures = {
        name: {key: values.tolist() for key, values in one.per_query.items()} for name, one in saved.evaluations.items()
    }
    lists = {name: saved.lists.rankings(name) for name in saved.lists.listings}
    gold = [sorted(saved.lists.gold_of(number).items()) for number in range(len(saved.lists.query_ids))]
    signals = {
        name: {key: [value if value == value else None for value in column.tolist()] for key, column in one.signals.items()}
        for name, one in saved.lists.listings.items()
    }
    texts = [saved.lists.query_ids, saved.lists.texts, saved.lists.families, saved.lists.groups, saved.lists.titles]
    return [repr(saved.report), measures, lists, gold, signals, texts]


def index(path: str, label: str) -> None:
    """Index the collection for one retriever."""
    from damage.collection import build, lucene, retrievers

    build(Path(path), {label: (retrievers() | {"lucene": lucene()})[label]})


ACTIONS: dict[str, Callable[..., object]] = {"search": search, "index": index, "read_run": read_run}


def main() -> None:
    """Answer until standard input ends."""
    for name in nlp_retrieval.__all__:
        getattr(nlp_retrieval, name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    believe_all_files()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints is not an answer
    for line in sys.stdin:
        told = json.loads(line)
        try:
            answer: dict[str, object] = {"found": ACTIONS[told.pop("action")](**told)}
        except RetrievalError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            answer = {"untyped": type(error).__name__, "message": f"{error} ({where.filename}:{where.lineno})"}
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
