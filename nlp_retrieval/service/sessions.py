"""Recorded sessions of a service: which session a call belongs to, and what is kept of it; see :mod:`nlp_retrieval.agents`.

The client names its session: by the headers ``X-Session-Id``, ``X-Question-Id`` and ``X-Agent``, or in the ``_meta`` of a tool
call as ``session_id``, ``question_id``, ``agent`` and ``question``. Without a name, calls over standard input are one session,
those with an ``Mcp-Session-Id`` one each, and all others one a day; of these, each question is a session of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from nlp_retrieval.agents.recorder import Recorder, Session
from nlp_retrieval.core.context import changed_context, record_steps, search_context
from nlp_retrieval.service.endpoints import Endpoint, McpTool, QueryText, RefusedError, RequestBody
from nlp_retrieval.service.logs import current_request
from nlp_retrieval.service.settings import ServiceSettings

_NAMES = {"session_id": b"x-session-id", "question_id": b"x-question-id", "agent": b"x-agent"}
_LONGEST_NAME = 128
_GONE = "it took too long: the client no longer waited"


class AnswerBody(RequestBody):
    """The answer of an agent to its question."""

    answer: str = Field(max_length=200_000, description="The answer.")
    citations: list[str] | None = Field(
        default=None, max_length=1000, description="Ids of the items that it cites; by default those in its brackets: [id]."
    )
    question: QueryText = Field(default="", description="The question.")


class AnswerTaken(BaseModel):
    """The session that an answer was recorded in."""

    session: str


class SessionRecord:
    """Records what is asked of a service."""

    def __init__(self, recorder: Recorder | None = None, name: str = "") -> None:
        self._recorder, self._name = recorder, name

    @classmethod
    def of(cls, settings: ServiceSettings, name: str = "") -> Self:
        """Return the record that settings ask for."""
        return cls(None if settings.record is None else Recorder(settings.record), name)

    def endpoints(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Return endpoints that are recorded, and the one that takes the agent's answer."""
        if self._recorder is None:
            return list(endpoints)
        recorded = [replace(each, run=self._recorded(each.run, each.path)) if each.records else each for each in endpoints]
        summary = "Record the answer of an agent to its question."
        answer = Endpoint("/submit_answer", summary, self._take_answer, AnswerTaken, AnswerBody, writes=True, filtered=True)
        return [*recorded, answer]

    def tools(self, tools: Sequence[McpTool]) -> list[McpTool]:
        """Return tools that are recorded, and the one that takes the agent's answer."""
        if self._recorder is None:
            return list(tools)
        recorded = [replace(tool, run=self._recorded(tool.run, tool.name, other=not tool.records)) for tool in tools]
        about = "Submit the final answer to the user's question, once, with the ids of the items that it cites."
        answer = McpTool(
            "submit_answer", about, AnswerBody, AnswerTaken, self._take_answer, shows_texts=False, writes=True, filtered=True
        )
        return [*recorded, answer]

    @contextmanager
    def called_with(self, meta: Mapping[str, Any] | None) -> Iterator[None]:
        """Take names of the session from the ``_meta`` of a tool call."""
        token = current_request.set(replace(current_request.get(), meta=meta or {}))
        try:
            yield
        finally:
            current_request.reset(token)

    def _recorded(self, run: Callable[[Any], bytes], tool: str, *, other: bool = False) -> Callable[[Any], bytes]:
        """A call that records its steps; that of another tool is one step, whatever it searches."""

        def run_recorded(argument: Any) -> bytes:
            session = self._session()

            def record(step: Mapping[str, Any]) -> None:
                gone = search_context().abandoned
                late = {"results": (), "error": _GONE} if gone is not None and gone.is_set() else {}
                session.add({**step, "tool": tool, **late})

            with changed_context(record=record):
                if not other:
                    return run(argument)
                with record_steps([{"kind": "other"}]):
                    return run(argument)

        return run_recorded

    def _take_answer(self, body: AnswerBody) -> bytes:
        session = self._session(body.question)
        if not session.add_answer(body.answer, body.citations):
            raise RefusedError(503, "not_recorded", "the answer could not be recorded; the service's log says why")
        return AnswerTaken(session=session.name).model_dump_json().encode()

    def _session(self, question: str = "") -> Session:
        """The session of the current call.

        Raises:
            RefusedError: a name is no short word.
        """
        if self._recorder is None:
            raise RefusedError(404, "not_found", "nothing is recorded")
        meta, headers = current_request.get().meta, dict(current_request.get().headers)
        names = [_word(name, meta.get(name) or headers.get(header, b"").decode("latin-1")) for name, header in _NAMES.items()]
        session, question_id, agent = names
        if not session:
            transport = headers.get(b"mcp-session-id")
            called = f"mcp-{hashlib.sha256(transport).hexdigest()[:32]}" if transport else self._name
            session = ":".join(filter(None, [called or f"day-{datetime.now(UTC):%Y-%m-%d}", question_id, agent]))
        if current_request.get().token:  # one token does not write into the session of another
            session = f"{current_request.get().token}:{session}"
        question = question or str(meta.get("question") or "")[:10_000]
        return self._recorder.session(session, question_id=question_id, question=question, agent=agent)


def _word(name: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= _LONGEST_NAME and all("!" <= sign <= "~" for sign in value):
        return value
    header = _NAMES[name].decode().title()
    raise RefusedError(
        422, "invalid_request", f"{name} (header {header}): expected at most {_LONGEST_NAME} ASCII characters without spaces"
    )
