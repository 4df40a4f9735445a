"""Logs of the service on standard error: one line per request and event, as text or as JSON, with the id of the request.

Neither bodies, query strings nor headers are logged.
"""

from __future__ import annotations

import json
import logging
import logging.config
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.text.printing import printable

LOG_FORMATS = ("text", "json")

ACCESS = "nlp_retrieval.access"
"""The logger of requests."""


@dataclass(frozen=True)
class RequestContext:
    """The request that is being answered: its id, and what a recorded session takes names from, which is not logged.

    ``token`` is the name of its token in the file of tokens, and ``where`` the filter of that: None for everything.
    """

    request_id: str = ""
    headers: Sequence[tuple[bytes, bytes]] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    token: str = ""
    where: dict[str, Any] | None = None


current_request: ContextVar[RequestContext] = ContextVar("nlp_retrieval_request", default=RequestContext())  # noqa: B039 -- frozen

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
"""Attributes of every record; others were given to it as ``extra``."""

_LONGEST = 16_384


class _Formatter(logging.Formatter):
    """Time, level, message and further fields without secrets: one JSON object in ASCII, or a line with a traceback below."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().strip(),
            "request_id": current_request.get().request_id,
            "pid": record.process,
        }
        found |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        traceback = str(without_secrets(self.formatException(record.exc_info)))[-_LONGEST:] if record.exc_info else ""
        found = {name: value for name, value in without_secrets(found).items() if value not in ("", None)}
        found["message"] = found.get("message", "")[:_LONGEST]
        if self._form == "json":
            return json.dumps(found | ({"traceback": traceback} if traceback else {}), default=repr)
        begin = f"{found.pop('time')} {found.pop('level'):7} {found.pop('message')}"
        line = printable(" ".join([begin, *(f"{name}={found[name]}" for name in found if name not in ("logger", "pid"))]))
        return f"{line}\n{traceback}" if traceback else line


def log_config(form: str, level: str) -> dict[str, Any]:
    """Return the configuration of all loggers, as ``logging.config.dictConfig`` takes it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": partial(_Formatter, form)}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "nlp_retrieval": {"level": level.upper()},
            "uvicorn": {"level": level.upper(), "handlers": [], "propagate": True},
            "uvicorn.access": {"handlers": [], "propagate": False},  # it would log query strings
        },
    }
