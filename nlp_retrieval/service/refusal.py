"""Error answers of the service: one format, a status, and never a traceback.

The answer is ``{"error": {"type": ..., "message": ...}}``; programs read the type, people the message. It contains no server
paths; the log has the whole message.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    DependencyError,
    IndexDamagedError,
    IndexLockedError,
    IndexStateError,
    IndexWriteError,
    InputError,
    RetrievalError,
)

__all__ = ["ErrorAnswer", "ErrorDetail", "RefusedError", "faults_of", "refusal_of"]

_LONGEST = 2_000
_SHOWN_FAULTS = 5
_RETRY = {"retry-after": "1"}


class ErrorDetail(BaseModel):
    """An error.

    Args:
        type: for programs; stable across versions.
        message: for people: the problem, its location, and what to do.
    """

    type: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer to a refused request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"error": {"type": "invalid_request", "message": "k: Input should be less than or equal to 1000"}}]
        }
    )

    error: ErrorDetail


class RefusedError(RetrievalError):
    """Raised to refuse a request.

    Args:
        status: HTTP status.
        kind: the type of the error, for programs.
        message: for people.
        headers: additional headers of the answer.
    """

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.headers = status, kind, dict(headers or {})

    @property
    def message(self) -> str:
        """The message for people: one text, without secrets."""
        return str(without_secrets(str(self)))[:_LONGEST].encode("utf-8", "replace").decode()

    def body(self) -> bytes:
        """Return the answer as JSON, without secrets."""
        return ErrorAnswer(error=ErrorDetail(type=self.kind, message=self.message)).model_dump_json().encode()


_STATUSES: tuple[tuple[type[Exception], int, str, str], ...] = (
    (InputError, 422, "invalid_request", ""),
    (DependencyError, 501, "dependency_missing", "the service lacks a package or a model for this; its log says which"),
    (IndexLockedError, 503, "index_locked", "another process is writing to what is served; try again in a second"),
    (IndexWriteError, 503, "index_not_writable", "the service cannot write: no permission, or no space; its log says more"),
    (IndexDamagedError, 500, "index_damaged", "a file of what is served is missing, cut off or changed; the log says which"),
    (IndexStateError, 409, "index_state", ""),
    (RetrievalError, 500, "failed", "the service could not do this; its log says why"),
    (MemoryError, 503, "out_of_memory", "there is not enough memory for this; ask for less at a time"),
)
"""Status, type and message for each kind of error; the message is empty if the error's own may be sent."""

_PATH = re.compile(r"(?<![^\s'\"(\[=,;:])(?!https?://)[^\s'\"(),;]*[/\\][^'\"(),;:]*?(?=['\"(),;]|[:.]?(?:\s|\Z))")


def refusal_of(error: Exception) -> RefusedError:
    """Return the answer to an error.

    Args:
        error: an error of this package; other errors reveal nothing, because their messages were not written for clients.
    """
    if isinstance(error, RefusedError):
        return error
    for kind, status, name, said in _STATUSES:
        if isinstance(error, kind):
            if kind is not InputError:
                logging.getLogger(__name__).error("%s: %s", name, without_secrets(str(error)))
            message = said or (_PATH.sub("...", str(error)) if kind is IndexStateError else str(error))
            return RefusedError(status, name, message, _RETRY if status == 503 else None)
    return RefusedError(500, "internal", "an unexpected error, which is a defect of the service; its log says more")


def faults_of(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults of a request and their places; not its values, which may be anything.

    Args:
        faults: as pydantic lists them.
    """
    shown = []
    for fault in faults[:_SHOWN_FAULTS]:
        place = ".".join(str(part)[:60] for part in fault["loc"] if part != "body")
        shown.append(f"{place}: {fault['msg']}" if place else str(fault["msg"]))
    if len(faults) > _SHOWN_FAULTS:
        shown.append(f"and {len(faults) - _SHOWN_FAULTS} more")
    return "; ".join(shown)
