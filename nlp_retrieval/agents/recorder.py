"""Recording what agents do: a folder with one file of JSON lines for each session, which :func:`read_trajectories` reads.

A line is appended with one call before the answer goes out, so a process that is killed leaves every step that was answered,
and threads and processes may write to one session. A line that was torn is left out by readers; the next begins a line of its
own. Kept are queries, filters, ids of results and of what was read, times, answers and citations, without what looks like a
secret; never the texts of items.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.files.atomic import check_folder_for_output
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError

SESSION_FILES = "session-*.jsonl"
_LONGEST_NAME = 500
_log = logging.getLogger(__name__)


class Recorder:
    """Writes sessions to a folder, from any number of threads and processes.

    Args:
        folder: created if it is missing, readable by its owner alone; what is no longer needed is yours to remove.

    Raises:
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

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        check_folder_for_output(self.folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def session(self, name: str = "", *, question_id: str = "", question: str = "", agent: str = "") -> Session:
        """Return a session of this folder; one that exists goes on. Arguments and errors are those of :class:`Session`."""
        return Session(self, name, question_id=question_id, question=question, agent=agent)

    def path_of(self, session: str) -> Path:
        """Return the file of a session: a name that is safe for any file system, and a digest that tells similar ones apart."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", session[:60])
        return self.folder / f"session-{plain}-{_digest(session)}.jsonl"

    def write(self, session: str, line: Mapping[str, Any]) -> bool:
        """Append a line, and return whether it was recorded; the log says why if it was not."""
        content = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path_of(session), flags, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
                content = b"\n" + content if torn else content
                if os.write(descriptor, content) < len(content):
                    raise OSError(0, "the disk is full")
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("a step of an agent cannot be recorded in %s: %s", self.folder, error.strerror or error)
            return False
        return True


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
                raise ConfigurationError(f"{field}={str(value)[:40]!r}...: take a text of at most {_LONGEST_NAME} characters")
        about = {"question_id": _named(question_id or name), "question": without_secrets(question), "agent": _named(agent)}
        self.name = _named(name or uuid.uuid4().hex)
        """Its name; one that looks like a secret is replaced by its digest, as are those of its question and agent."""
        self.steps: list[AgentStep] = []
        """Steps of this object; another process may have recorded more of the session."""
        self._about = {field: value for field, value in about.items() if value}
        self._recorder = recorder
        self._answer: dict[str, Any] = {}

    def add(self, step: AgentStep | Mapping[str, Any]) -> bool:
        """Record a step, and return whether it was; the log says why if it was not.

        Args:
            step: a step, or its fields.
        """
        given = step.model_dump(mode="json", exclude_defaults=True) if isinstance(step, AgentStep) else step
        added = _step_of(without_secrets(dict(given)))
        self.steps.append(added)
        return self._write(added.model_dump(mode="json", exclude_defaults=True))

    def add_answer(self, text: str, citations: Sequence[str] | None = None) -> bool:
        """Record the answer, and return whether it was. What follows in the session belongs to another question.

        Args:
            text: the answer.
            citations: ids of the items that it cites; None if its own marks say so (``[whale]``).
        """
        cited = {} if citations is None else {"citations": [item_id for item_id in citations if item_id]}
        self._answer = without_secrets({"answer": text} | cited)
        return self._write(self._answer)

    @contextmanager
    def active(self) -> Iterator[Session]:
        """Record the searches of the block: by any searcher, in this thread and in threads that copy its context."""
        with changed_context(record=self.add):
            yield self

    def trajectory(self) -> Trajectory:
        """Return what this object recorded as a trajectory."""
        whole = {"question_id": self.name, **self._about, "complete": bool(self._answer), **self._answer}
        return Trajectory.model_validate_json(json.dumps(whole)).model_copy(update={"steps": tuple(self.steps)})

    def _write(self, fields: Mapping[str, Any]) -> bool:
        if self._recorder is None:
            return True
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return self._recorder.write(self.name, {"session": self.name, **self._about, **fields, "time": now})


@contextmanager
def recording(
    folder: str | Path | None = None, session: str = "", *, question_id: str = "", question: str = "", agent: str = ""
) -> Iterator[Session]:
    """Record the searches of a block as a session, whatever framework calls the searchers in it.

    Every :class:`~nlp_retrieval.Searcher` is recorded: in this thread, in coroutines, and in threads that copy the context
    (``asyncio.to_thread``, LangChain's ``batch``). In those of ``dspy.Parallel``, ``dspy.Evaluate`` and a bare
    ``ThreadPoolExecutor``, enter ``session.active()`` inside what they run. Other processes are not recorded.

    Args:
        folder: where the session is kept; None for :attr:`Session.steps` and :meth:`Session.trajectory` alone.
        session: its name, and the other arguments of :class:`Session`.
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


def _step_of(fields: Mapping[str, Any]) -> AgentStep:
    """A step from fields; what cannot be kept, such as a filter that is no JSON, is left out and said."""
    fields = {**fields, "results": tuple(fields.get("results", ()))}
    try:
        return AgentStep.model_validate(fields)
    except ValidationError as error:
        wrong = {str(fault["loc"][0]) if fault["loc"] else "kind" for fault in error.errors()}
        left = {key: value for key, value in fields.items() if key not in wrong}
        said = f"left out, cannot be kept: {', '.join(sorted(wrong))}"
        return AgentStep.model_validate({"kind": "other", **left, "text": said})


def _named(name: str) -> str:
    return name if without_secrets(name) == name else f"hidden-{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
