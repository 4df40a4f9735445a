"""Recording what agents do: a folder with one file of JSON lines for each session, which :func:`read_trajectories` reads.

A line is written with one call before the answer goes out, so a process that is killed leaves every step that was answered;
a last line that it tore is removed by the next writer and left out by readers (what a power cut takes is not covered). Threads
and processes take turns by a lock on the file of the session: its steps are numbered from 1, without a gap, whichever serves
it, and nothing has to be merged. Kept are queries, filters, ids of results and of what was read, times, answers and
citations, without what looks like a secret; never the texts of items.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import string
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, OutputError

MOST_STEPS = 10_000
"""Steps of a session that are recorded."""

MOST_BYTES = 2**30
"""Size of a folder of sessions, in bytes, at which recording stops."""

_BYTES_OF_A_FILE = 4096
"""What a file takes besides its content, roughly: many small ones fill a disk, too."""
_LONGEST_LINE = 2**20
_LONGEST_NAME = 500
_LOCK_SECONDS = 5.0
_DAY = 86_400.0
_EMPTY: tuple[Any, ...] = (None, "", (), [])
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.")
_encode = json.JSONEncoder(ensure_ascii=False).encode
_log = logging.getLogger(__name__)


class Recorder:
    """Writes sessions to a folder, from any number of threads and processes.

    A session of 10,000 steps and a folder of 1 GiB are full: what follows is not recorded, and the log says so once. When a
    recorder starts, and daily, it removes sessions whose last step is too old.

    Args:
        folder: created if it is missing, readable by its owner alone.
        days: how long a session is kept after its last step.
        most_steps: recorded steps of a session.
        most_bytes: size of the folder at which recording stops.

    Raises:
        ConfigurationError: a number is not above 0.
        OutputError: the folder cannot be written.

    Examples:
        >>> session = Recorder("sessions").session("s1", question_id="q1", agent="react")
        >>> session.add({"kind": "search", "query": "large whales", "k": 2, "results": ["whale", "krill"]})
        True
        >>> session.add_answer("The blue whale.", ["whale"])
        True
        >>> [trajectory.seen() for trajectory in read_trajectories("sessions")]
        [['whale', 'krill']]
    """

    def __init__(
        self, folder: str | Path, *, days: float = 30.0, most_steps: int = MOST_STEPS, most_bytes: int = MOST_BYTES
    ) -> None:
        for name, value in (("days", days), ("most_steps", most_steps), ("most_bytes", most_bytes)):
            if not value > 0:
                raise ConfigurationError(f"{name}={value}; it must be above 0")
        self.folder = Path(folder)
        self._days, self._most_steps, self._most_bytes = days, most_steps, most_bytes
        self._lock = Lock()
        self._known: dict[str, tuple[str, tuple[int, int]]] = {}
        self._used = self._since = 0
        self._failed = self._full = False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.folder / f".probe-{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
            self._tidy()
        except OSError as error:
            raise OutputError(
                f"sessions cannot be recorded in {self.folder} ({error.strerror or error}); choose a folder that can be written"
            ) from None

    def session(self, name: str = "", *, question_id: str = "", question: str = "", agent: str = "") -> Session:
        """Return a session of this folder; one that exists goes on.

        Args:
            name: of the session; by default a new one.
            question_id: the id under which the question has gold; by default the session's name.
            question: its text.
            agent: name of the agent.

        Raises:
            ConfigurationError: a name is longer than 500 characters.
        """
        return Session(self, name, question_id=question_id, question=question, agent=agent)

    def path_of(self, session: str) -> Path:
        """Return the file of a session: a name that is safe for any file system, and a digest that tells similar ones apart."""
        plain = "".join(sign if sign in _PLAIN else "-" for sign in session[:60])
        digest = hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
        return self.folder / f"session-{plain}-{digest[:16]}.jsonl"

    def write(self, session: str, line: Mapping[str, Any], *, is_step: bool) -> bool:
        """Append a line, and return whether it was recorded; the log says why if it was not.

        Args:
            session: its name, without secrets.
            line: plain values, without secrets.
            is_step: whether it gets the next number.
        """
        try:
            return self._write(session, line, is_step=is_step)
        except OSError as error:
            if not self._failed:
                _log.warning("sessions cannot be recorded in %s: %s", self.folder, error.strerror or error)
            self._failed = True
            return False

    def _write(self, session: str, line: Mapping[str, Any], *, is_step: bool) -> bool:
        key = self._known.get(session)
        path, known = (str(self.path_of(session)), (0, 0)) if key is None else key
        descriptor = _open(path)
        try:
            size, steps = _read_up_to_end(descriptor, *known)
            if is_step and steps >= self._most_steps:
                return False
            number = steps + is_step
            content = _as_line({"step": number, **line} if is_step else line)
            if not self._take(len(content) + (0 if size else _BYTES_OF_A_FILE)):
                if not size:
                    os.unlink(path)  # noqa: PTH108
                return False
            if os.write(descriptor, content) < len(content):  # the disk is full
                os.ftruncate(descriptor, size)
                raise OSError(0, "the disk is full")
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[session] = path, (size + len(content), number)
        finally:
            os.close(descriptor)
        self._failed = False
        if is_step and number == self._most_steps:
            _log.warning("the session %r has %s steps; further ones are not recorded", session[:80], f"{number:,}")
        return True

    def _take(self, n_bytes: int) -> bool:
        """Whether the folder has room for so many bytes more."""
        with self._lock:
            self._used += n_bytes
            self._since += n_bytes
            full, waited = self._used > self._most_bytes, time.monotonic() - self._tidied
            if waited > _DAY or (full and (waited > 60 or not self._full)) or self._since > self._most_bytes // 64:
                self._tidy()
                self._used += n_bytes
                full = self._used > self._most_bytes
            if full:
                self._used -= n_bytes
                if not self._full:
                    _log.warning(
                        "%s holds %s bytes of sessions; nothing more is recorded until some are removed",
                        self.folder,
                        f"{self._used:,}",
                    )
            self._full = full
            return not full

    def _tidy(self) -> None:
        """Remove old sessions, and add up the size of the others, also those that other processes wrote."""
        oldest = time.time() - self._days * _DAY
        self._used = self._since = 0
        self._tidied = time.monotonic()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not (entry.name.startswith("session-") and entry.name.endswith(".jsonl")):
                    continue
                with suppress(FileNotFoundError):  # another process removed it
                    about = entry.stat(follow_symlinks=False)
                    if about.st_mtime < oldest and entry.is_file(follow_symlinks=False):
                        os.unlink(entry.path)  # noqa: PTH108
                    else:
                        self._used += about.st_size + _BYTES_OF_A_FILE


class Session:
    """One session: what an agent does for one question.

    Its searches are recorded inside :meth:`active`; further steps and the answer are added by hand.

    Args:
        recorder: writes it to a folder; None to keep it in memory alone.
        name: of the session; by default a new one.
        question_id: the id under which the question has gold; by default the session's name.
        question: its text.
        agent: name of the agent.

    Raises:
        ConfigurationError: a name is longer than 500 characters.

    Examples:
        >>> session = Session(None, question_id="q1")
        >>> session.add({"kind": "open", "item_id": "whale"})
        True
        >>> session.trajectory().opened()
        ['whale']
    """

    def __init__(
        self, recorder: Recorder | None, name: str = "", *, question_id: str = "", question: str = "", agent: str = ""
    ) -> None:
        for field, value in (("session", name), ("question_id", question_id), ("agent", agent)):
            if not isinstance(value, str) or len(value) > _LONGEST_NAME:
                raise ConfigurationError(
                    f"{field}={str(value)[:40]!r}...: expected a text of at most {_LONGEST_NAME} characters"
                )
        about = {"session": name or uuid.uuid4().hex, "question_id": question_id or name, "question": question, "agent": agent}
        self._about = {field: value for field, value in about.items() if value}
        self._recorder = recorder
        self._steps: list[dict[str, Any]] = []
        self._answer: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name, without secrets."""
        return str(without_secrets(self._about["session"]))

    def add(self, step: AgentStep | Mapping[str, Any]) -> bool:
        """Record a step, and return whether it was; the log says why if it was not.

        Args:
            step: a step, or its fields.
        """
        taken = step if isinstance(step, AgentStep) else _step_of(step)
        return self._keep(taken.model_dump(mode="json", exclude_defaults=True))

    def take(self, fields: Mapping[str, Any]) -> bool:
        """Record a step as :meth:`add` does; faster, because its fields are not checked unless they cannot be kept.

        Args:
            fields: of the step, of their types.
        """
        given = {name: value for name, value in fields.items() if value not in _EMPTY}
        try:
            return self._keep(given)
        except (TypeError, ValueError):  # a filter that is no JSON
            return self.add(fields)

    def _keep(self, fields: dict[str, Any]) -> bool:
        line = _hide(self._about | fields)
        if len(self._steps) < MOST_STEPS:
            self._steps.append({name: line[name] for name in fields})
        return self._write(line, is_step=True)

    @property
    def steps(self) -> list[AgentStep]:
        """Steps of this object, up to 10,000; another process may have recorded more of the session."""
        return [_step_of(fields) for fields in self._steps]

    def add_answer(self, text: str, citations: Sequence[str] | None = None) -> bool:
        """Record the answer, and return whether it was.

        Args:
            text: the answer.
            citations: ids of the items that it cites; None if its own marks say so (``[whale]``).
        """
        answer = {"answer": text} | ({} if citations is None else {"citations": list(citations)})
        line = _hide(self._about | answer)
        self._answer = {field: line[field] for field in answer}
        return self._write(line, is_step=False)

    @contextmanager
    def active(self) -> Iterator[Session]:
        """Record the searches of the block: by any searcher, in this thread and in threads that copy its context."""
        with changed_context(record=self.take):
            yield self

    def trajectory(self) -> Trajectory:
        """Return what this object recorded as a trajectory."""
        about = {"question_id": self.name} | _hide(self._about)
        del about["session"]
        whole = about | {"steps": self._steps, "complete": bool(self._answer)}
        return Trajectory.model_validate_json(json.dumps(whole | self._answer))

    def _write(self, line: Mapping[str, Any], *, is_step: bool) -> bool:
        if self._recorder is None:
            return True
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self._recorder.write(line["session"], {**line, "time": now}, is_step=is_step)


@contextmanager
def recording(
    folder: str | Path | None = None, session: str = "", *, question_id: str = "", question: str = "", agent: str = ""
) -> Iterator[Session]:
    """Record the searches of a block as a session, whatever framework calls the searchers in it.

    Every :class:`~nlp_retrieval.Searcher` is recorded, also inside DSPy, LangChain, LlamaIndex and Haystack, in coroutines, and
    in threads that copy the context: ``asearch``, ``asyncio.to_thread``, LangChain's ``batch``, asynchronous pipelines, tools.
    Threads of ``dspy.Parallel``, ``dspy.Evaluate`` and a bare ``ThreadPoolExecutor`` do not copy it: open the block inside what
    they run, or ``with session.active():`` there. Other processes are not recorded. A searcher that searches several times for
    one question, such as :class:`~nlp_retrieval.hover.MultiHopSearcher`, is recorded as so many steps.

    Args:
        folder: where the session is kept; None for :attr:`Session.steps` and :meth:`Session.trajectory` alone.
        session: its name; one that exists goes on. By default a new one.
        question_id: the id under which the question has gold; by default the session's name.
        question: its text.
        agent: name of the agent.

    Raises:
        ConfigurationError: a name is longer than 500 characters.
        OutputError: the folder cannot be written.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> with recording("sessions", question_id="q1", agent="react") as session:
        ...     hits = searcher.search("krill", 1)
        ...     recorded = session.add_answer("Krill is small.", citations=["krill"])
        >>> session.trajectory().seen()
        ['krill']
    """
    recorder = None if folder is None else Recorder(folder)
    with Session(recorder, session, question_id=question_id, question=question, agent=agent).active() as active:
        yield active


def _hide(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line without what looks like a secret in any of its texts."""
    texts = "\n".join(
        value if isinstance(value, str) else "\n".join(value) for value in line.values() if isinstance(value, str | list)
    )
    # one text is searched sooner than many; only with "=" could a part of one be taken for a part of another
    if "=" not in texts and not line.get("where") and without_secrets(texts) == texts:
        return dict(line)
    hidden: dict[str, Any] = without_secrets(line)
    return hidden


def _step_of(fields: Mapping[str, Any]) -> AgentStep:
    """A step from fields; what cannot be kept, such as a filter that is no JSON, is left out and said."""
    fields = {**fields, "results": tuple(fields.get("results", ()))}
    try:
        return AgentStep.model_validate(fields)
    except ValidationError as error:
        wrong = {str(fault["loc"][0]) if fault["loc"] else "kind" for fault in error.errors()}
        left = {key: value for key, value in fields.items() if key not in wrong}
        return AgentStep.model_validate(
            {"kind": "other", **left, "text": f"left out, cannot be kept: {', '.join(sorted(wrong))}"}
        )


def _as_line(line: Mapping[str, Any]) -> bytes:
    content = _encode(line).encode("utf-8", "replace")
    if len(content) >= _LONGEST_LINE:
        short = {key: value[:50_000] if isinstance(value, str) else value for key, value in line.items()}
        short = {key: value for key, value in short.items() if key not in ("where", "results", "citations")}
        content = _encode(short | {"text": f"cut: {len(content):,} bytes"}).encode("utf-8", "replace")
    return content + b"\n"


def _read_up_to_end(descriptor: int, size: int, steps: int) -> tuple[int, int]:
    """The size and the number of steps of a file, with what others wrote since; a line that one of them tore is cut off."""
    end = os.fstat(descriptor).st_size
    if end < size:
        size = steps = 0
    if end == size:
        return size, steps
    new = os.pread(descriptor, end - size, size)
    whole = new.rfind(b"\n") + 1
    if whole < len(new):
        os.ftruncate(descriptor, size + whole)
    return size + whole, steps + sum(line.startswith(b'{"step":') for line in new[:whole].splitlines())


def _open(path: str) -> int:
    """The file of a session, held alone until it is closed; created if it is missing.

    Raises:
        OSError: it cannot be opened, or another process holds it for seconds.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # otherwise it was removed meanwhile, as too old
                return descriptor
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() > until:
                raise OSError(0, "another process holds the file of a session") from None
            time.sleep(0.0005)
        except OSError:
            os.close(descriptor)
            raise
