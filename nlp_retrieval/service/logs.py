"""Logs of the service on standard error: one line per request and event, as text or as JSON, with the id of the request.

Neither bodies, query strings nor headers are logged. In JSON, everything that Python writes to standard error is a line of
this form too: warnings, tracebacks, and what libraries print.
"""

from __future__ import annotations

import io
import json
import logging
import logging.config
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TextIO, get_args

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.text.printing import printable

__all__ = [
    "ACCESS",
    "LOG_FORMATS",
    "LOG_LEVELS",
    "LogFormat",
    "LogLevel",
    "RequestContext",
    "configure_logs",
    "current_request",
    "log_config",
]

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
LOG_FORMATS: tuple[str, ...] = get_args(LogFormat)
LOG_LEVELS: tuple[str, ...] = get_args(LogLevel)

ACCESS = "nlp_retrieval.access"
"""The logger of requests; its records hold no secrets."""


@dataclass(frozen=True)
class RequestContext:
    """The request that is being answered.

    Args:
        request_id: its id; empty outside of a request.
        headers: for the names that a recorded session takes from them; they are not logged.
        meta: of a tool call, as the client sent it, for the same names.
    """

    request_id: str = ""
    headers: Sequence[tuple[bytes, bytes]] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


current_request: ContextVar[RequestContext] = ContextVar("nlp_retrieval_request", default=RequestContext())  # noqa: B039 -- frozen

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName", "request_id"}
"""Attributes of every record; others were given to it as ``extra``."""

_LONGEST = 16_384


class _Formatter(logging.Formatter):
    """Formats records without secrets; it raises no error, whatever a record holds."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return what a record says, in the order of the line."""
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit the message
            message = f"{record.msg!r} {record.args!r}"
        found: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message.strip()[:_LONGEST],
            "request_id": getattr(record, "request_id", "") or current_request.get().request_id,
            "pid": record.process,
        }
        found |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)[-_LONGEST:]
        if record.name != ACCESS:  # whose only text from outside is the path; hiding takes longer than all the rest
            found = without_secrets(found)
        return {name: value for name, value in found.items() if value not in ("", None)}


class JsonFormatter(_Formatter):
    """One JSON object per line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(self.fields(record), default=repr)


class TextFormatter(_Formatter):
    """Time, level, message, further fields, and the traceback of an error below."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        found = self.fields(record)
        begin = f"{found.pop('time')} {found.pop('level'):7} {found.pop('message', '')}"
        traceback = found.pop("traceback", "")
        for name in ("logger", "pid"):
            found.pop(name, None)
        line = printable(" ".join([begin, *(f"{name}={value}" for name, value in found.items())]))
        return f"{line}\n{traceback}" if traceback else line


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to the process's standard error, not to what turns its lines into records."""

    def __init__(self) -> None:
        super().__init__(_real_stderr())


def _real_stderr() -> TextIO:
    return sys.stderr.stream if isinstance(sys.stderr, _LinesToRecords) else sys.stderr


def log_config(form: LogFormat, level: LogLevel) -> dict[str, Any]:
    """Return the configuration of all loggers, as ``logging.config.dictConfig`` takes it.

    Args:
        form: of the lines.
        level: of the lowest records that are written; other libraries write warnings and errors.
    """
    other = "WARNING" if level in ("debug", "info") else level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": JsonFormatter if form == "json" else TextFormatter}},
        "handlers": {"stderr": {"()": _Handler, "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": other},
        "loggers": {
            "nlp_retrieval": {"level": level.upper()},
            "uvicorn": {"level": level.upper() if level == "debug" else other, "handlers": [], "propagate": True},
            "uvicorn.access": {"handlers": [], "propagate": False},  # it would log query strings
        },
    }


def configure_logs(form: LogFormat, level: LogLevel) -> None:
    """Configure the logs of this process.

    Args:
        form: of the lines.
        level: see :func:`log_config`.
    """
    logging.config.dictConfig(log_config(form, level))
    logging.captureWarnings(form == "json")
    if form == "json":
        sys.stderr = _LinesToRecords(_real_stderr())
        sys.excepthook = _log_uncaught
        threading.excepthook = lambda given: _log_uncaught(given.exc_type, given.exc_value, given.exc_traceback)


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if not issubclass(kind, SystemExit | KeyboardInterrupt):
        logging.getLogger("nlp_retrieval").critical("uncaught error", exc_info=(kind, error or kind(), trace))


class _LinesToRecords(io.TextIOBase):
    """Standard error for code that prints: each line is a record of the log.

    Args:
        stream: the real one.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._held = threading.local()  # of each thread, so that lines are whole

    def write(self, text: str) -> int:
        """Log all whole lines."""
        *lines, self._held.rest = (getattr(self._held, "rest", "") + text).replace("\r", "\n").split("\n")
        for line in filter(str.strip, lines):
            is_error = line.startswith(("error:", "Traceback"))
            logging.getLogger("nlp_retrieval.stderr").log(logging.ERROR if is_error else logging.INFO, "%s", line)
        return len(text)

    def flush(self) -> None:
        """Flush the real one; the begin of a line waits for its end."""
        self.stream.flush()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute of the base class
        return "utf-8"
