"""A file of trajectories that grows while they end."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from nlp_retrieval.agents.trajectory import Trajectory
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import check_file_for_output, write_output
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import OutputError, SourceError

TrajectoryKey = tuple[str, str]
"""Id of a question, and its filter."""


class TrajectoryFile:
    """Trajectories as lines of JSON, each written when it ends.

    A question that was asked before is written again only if something else happened. What an earlier process wrote for
    other questions is kept; a line that it did not finish is dropped.

    Args:
        path: the file.
        agent: name of the agent; a file holds one.
    """

    def __init__(self, path: Path, agent: str) -> None:
        self.path, self._agent = path, agent
        self._lock = Lock()
        self._lines: dict[TrajectoryKey, Trajectory] | None = None
        self._changed = False

    def check(self) -> None:
        """Read what is there.

        Raises:
            SourceError: the file is something else.
            OutputError: it cannot be written.
        """
        with self._lock:
            if self._lines is not None:
                return
            check_file_for_output(self.path)
            self._lines = {}
            content = self.path.read_bytes() if self.path.exists() else b""
            *lines, torn = content.split(b"\n")
            for number, line in enumerate(lines, start=1):
                trajectory = self._read(line, number)
                where = trajectory.metadata.get("where")
                self._lines[trajectory.question_id, "" if where is None else canonical_json(where)] = trajectory
            self._changed = bool(torn)
        self.settle()

    def keep(self, key: TrajectoryKey, trajectory: Trajectory) -> None:
        """Append a trajectory; or note that an earlier one is to be replaced."""
        with self._lock:
            lines = cast("dict[TrajectoryKey, Trajectory]", self._lines)
            known = lines.get(key)
            if known is not None and _timeless(known) == _timeless(trajectory):
                return
            lines[key] = trajectory
            if known is not None:
                self._changed = True
                return
            try:
                with self.path.open("ab") as file:
                    file.write(_line(trajectory))
            except OSError as error:
                raise OutputError(f"cannot write to {self.path}: {error.strerror or error}") from error

    def settle(self) -> None:
        """Write the file anew if something in it is to be replaced."""
        with self._lock:
            if self._changed:
                write_output(self.path, b"".join(map(_line, (self._lines or {}).values())))
                self._changed = False

    def _read(self, line: bytes, number: int) -> Trajectory:
        try:
            trajectory = Trajectory.model_validate_json(line)
        except ValueError:
            raise SourceError(
                f"{self.path}: line {number:,} is no trajectory, so nothing is written there; name another file for record"
            ) from None
        if trajectory.agent != self._agent:
            raise SourceError(
                f"{self.path} holds what the agent {trajectory.agent!r:.80} did, and this one is {self._agent!r}; give each a "
                "file of its own"
            )
        return trajectory


def _line(trajectory: Trajectory) -> bytes:
    return (trajectory.model_dump_json(exclude_defaults=True) + "\n").encode()


def _timeless(trajectory: Trajectory) -> Trajectory:
    steps = tuple(step.model_copy(update={"seconds": None}) for step in trajectory.steps)
    return trajectory.model_copy(update={"steps": steps})
