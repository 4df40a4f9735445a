"""Recorded sessions of a service: which session a call belongs to, and what is kept of it; see :mod:`nlp_retrieval.agents`.

The client names its session: by the headers ``X-Session-Id``, ``X-Question-Id`` and ``X-Agent``, or in the ``_meta`` of a tool
call as ``session_id``, ``question_id``, ``agent`` and ``question``. Without a name, calls over standard input are one session,
and all others one a day; of these, each question is a session of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from nlp_retrieval.agents.recorder import Recorder, Session
from nlp_retrieval.core.context import changed_context, record_steps, search_context
from nlp_retrieval.service.endpoints import Endpoint, McpTool, QueryText, RefusedError, RequestBody, current_request

_NAMES = {"session_id": "X-Session-Id", "question_id": "X-Question-Id", "agent": "X-Agent"}
_LONGEST_NAME = 128


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
    """Records what is asked of a service in a folder, if one is given; calls that name no session belong to ``name``."""

    def __init__(self, folder: Path | None, name: str = "") -> None:
        self._recorder, self._name = None if folder is None else Recorder(folder), name

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
        answer = McpTool("submit_answer", about, AnswerBody, AnswerTaken, self._take_answer, writes=True, filtered=True)
        return [*recorded, answer]

    def _recorded(self, run: Callable[[Any], bytes], tool: str, *, other: bool = False) -> Callable[[Any], bytes]:
        """A call that records its steps; that of another tool is one step, whatever it searches."""

        def run_recorded(argument: Any) -> bytes:
            session = self._session()

            def record(step: Mapping[str, Any]) -> None:
                gone = search_context().abandoned
                said = {"results": (), "error": "it took too long: the client no longer waited"}
                session.add({**step, "tool": tool, **(said if gone is not None and gone.is_set() else {})})

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
        """The session of the current call."""
        if self._recorder is None:
            raise RefusedError(404, "not_found", "nothing is recorded")
        request = current_request.get()
        meta, headers = request.meta, {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        given = {name: meta.get(name) or headers.get(header.lower(), "") for name, header in _NAMES.items()}
        for name, value in given.items():
            if not (isinstance(value, str) and len(value) <= _LONGEST_NAME and all("!" <= sign <= "~" for sign in value)):
                wanted = f"expected at most {_LONGEST_NAME} ASCII characters without spaces"
                raise RefusedError(422, "invalid_request", f"{name} (header {_NAMES[name]}): {wanted}")
        session, question_id, agent = given.values()
        if not session:
            session = ":".join(filter(None, [self._name or f"day-{datetime.now(UTC):%Y-%m-%d}", question_id, agent]))
        if request.token:  # one token does not write into the session of another
            session = f"{request.token}:{session}"
        question = question or str(meta.get("question") or "")[:10_000]
        return self._recorder.session(session, question_id=question_id, question=question, agent=agent)
