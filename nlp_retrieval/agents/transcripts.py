"""Transcripts of tool calls as trajectories: messages of OpenAI and Anthropic, and the run files of BrowseComp-Plus.

A transcript is data: nothing in it is run, and no text in it decides what is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nlp_retrieval.agents.trajectory import MOST, AgentStep, StepKind, Trajectory
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.files.records import kind, quoted
from nlp_retrieval.errors import SourceError

QUESTION_IDS = ("question_id", "query_id", "qid", "id", "_id")
ITEM_IDS = ("item_id", "docid", "doc_id", "docno", "document_id", "pid", "passage_id", "id", "_id", "url")
LISTS = ("results", "hits", "documents", "passages", "items", "chunks", "data", "result", "structuredContent", "content")

_QUERIES = ("query", "q", "search_query", "question", "text", "input")
_COUNTS = ("k", "top_k", "topk", "n", "num_results", "limit")
_FILTERS = ("where", "filter", "filters")
_SEARCHES = ("search", "retriev", "query", "lookup")
_OPENS = ("open", "read", "fetch", "visit", "get_doc", "document", "scrape", "browse")
_WRITTEN_ID = re.compile(
    r"""\b(?:docid|doc_id|docno|item_id|document_id)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?([^\s"',\]}]{1,500})""", re.IGNORECASE
)
_FAILURE = re.compile(r"error\s*(?::|\Z)", re.IGNORECASE)
_MOST_CALLS = 10_000
_NO_RESULT = "the transcript ends before its result"
NO_IDS = "no ids can be read in what came back"


@dataclass
class TranscriptReading:
    """What was noticed while transcripts were read."""

    tools: Mapping[str, StepKind] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    cut: int = 0
    other_union: int = 0
    unplaced: int = 0

    def kind_of(self, tool: str) -> StepKind:
        """Return what a tool does, by the given kinds or by its name."""
        if tool in self.tools:
            return self.tools[tool]
        name = tool.lower()
        if any(word in name for word in _SEARCHES):
            return "search"
        if any(word in name for word in _OPENS):
            return "open"
        self.unknown[tool] += 1
        return "other"

    def step(self, tool: str, arguments: object, output: object, *, failed: bool = False, finished: bool = True) -> AgentStep:
        """Return a call of a tool as a step."""
        given = _as_object(arguments)
        values: dict[str, Any] = {"kind": self.kind_of(tool), "tool": tool[:200]}
        error = _NO_RESULT if not finished else _error_in(output, failed)
        if given is None:
            given, error = {}, error or "its arguments are no JSON object"
        if values["kind"] == "search":
            values |= {"query": _first_text(given, _QUERIES), "k": _first_count(given), "where": _first_object(given)}
            if not error:
                ids = ids_in(output)
                if ids is None:
                    error, self.unreadable = NO_IDS, self.unreadable + 1
                values["results"] = tuple(ids or ())
        elif values["kind"] == "open":
            values["item_id"] = _first_id(given) or next(iter(given.values()), "") if given else ""
            if not isinstance(values["item_id"], str) or not values["item_id"]:
                values["item_id"], error = "", error or "it does not say what it reads"
        return AgentStep(**values, error=error)


@dataclass
class _ToolCall:
    name: str
    arguments: object
    output: object = None
    failed: bool = False
    finished: bool = False
    tokens: tuple[int | None, int | None] = (None, None)


Event = str | _ToolCall
"""A text that the agent wrote, or a call."""


class _Asked(str):
    """A text of the user behind the question, which is no answer."""

    __slots__ = ()


def is_transcript(row: Mapping[str, Any]) -> bool:
    """Return whether an object holds messages."""
    given = row.get("input")
    return isinstance(row.get("messages"), list) or isinstance(given, list) or (isinstance(given, str) and "output" in row)


def is_browsecomp(row: Mapping[str, Any]) -> bool:
    """Return whether an object is a run file of BrowseComp-Plus."""
    return isinstance(row.get("result"), list) and "query_id" in row


def read_transcript(
    row: Mapping[str, Any], location: str, named: str, agent: str, questions: Mapping[str, str], reading: TranscriptReading
) -> Trajectory:
    """Return a transcript as a trajectory.

    Raises:
        SourceError: it holds something else than messages, or a result that belongs to no call before it.
    """
    given: Any = row.get("messages")
    if not isinstance(given, list):
        given = [{"role": "user", "content": row["input"]}] if isinstance(row["input"], str) else row["input"]
        given = [*given, *(row.get("output") or ())]
    asked, events, usage = _events(given, location)
    while events and isinstance(events[-1], _Asked):  # the user's last words
        events.pop()
    answer = events.pop() if events and isinstance(events[-1], str) else ""
    steps = [
        AgentStep(kind="note", text=event)
        if isinstance(event, str)
        else reading.step(event.name, event.arguments, event.output, failed=event.failed, finished=event.finished).model_copy(
            update={"input_tokens": event.tokens[0], "output_tokens": event.tokens[1]}
        )
        for event in events
    ]
    complete = bool(answer) and all(event.finished for event in events if isinstance(event, _ToolCall))
    reading.cut += not complete
    own = next((row[name] for name in QUESTION_IDS if isinstance(row.get(name), str | int)), None)
    total = _usage(row.get("usage"))
    return Trajectory(
        question_id=str(own) if own is not None else questions.get(plain_question(asked), named),
        question=asked,
        agent=str(row.get("agent") or agent),
        steps=tuple(steps),
        answer=str(answer),
        complete=complete,
        input_tokens=usage[0] if total[0] is None else total[0],
        output_tokens=usage[1] if total[1] is None else total[1],
        metadata={"model": row["model"]} if isinstance(row.get("model"), str) else {},
    )


def plain_question(text: str) -> str:
    """Return a question without what writers of it differ in: case and spaces."""
    return " ".join(text.casefold().split())


def read_browsecomp(
    row: Mapping[str, Any], location: str, agent: str, texts: Mapping[str, str], reading: TranscriptReading
) -> Trajectory:
    """Return a run file of BrowseComp-Plus as a trajectory.

    Raises:
        SourceError: a part of it is no object.
    """
    events: list[AgentStep | str] = []
    for number, part in enumerate(row["result"], 1):
        if not isinstance(part, dict):
            raise SourceError(f"{location}: part {number} of 'result' is {kind(part)}; an object is expected")
        if part.get("type") == "tool_call":
            events.append(reading.step(str(part.get("tool_name")), part.get("arguments"), part.get("output")))
        elif text := _plain(part.get("output")):
            events.append(text)
    complete = row.get("status") == "completed"
    answer = events.pop() if events and isinstance(events[-1], str) and row["result"][-1].get("type") == "output_text" else ""
    reading.cut += not complete
    steps = [event if isinstance(event, AgentStep) else AgentStep(kind="note", text=event) for event in events]
    tokens = _usage(row.get("usage"))
    metadata = row.get("metadata")
    query_id = str(row["query_id"])
    return Trajectory(
        question_id=query_id,
        question=texts.get(query_id, ""),
        agent=agent,
        steps=tuple(_with_listed(steps, row, reading)),
        answer=str(answer),
        complete=complete,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        metadata={"model": metadata["model"]} if isinstance(metadata, dict) and isinstance(metadata.get("model"), str) else {},
    )


def _with_listed(steps: list[AgentStep], row: Mapping[str, Any], reading: TranscriptReading) -> list[AgentStep]:
    """Return the steps with what a run file lists beyond them: agents of several parts keep no calls, only what came back.

    Nothing says which search found it. It counts with the last one, so that no recall before the end is too high.
    """
    listed = row.get("retrieved_docids")
    if not isinstance(listed, list):
        return steps
    ids = [str(item_id) for part in listed for item_id in (part if isinstance(part, list) else [part])]
    seen = {item_id for step in steps for item_id in step.results}
    reading.other_union += not seen <= set(ids)
    missing = [item_id for item_id in dict.fromkeys(ids) if item_id and item_id not in seen]
    if not missing:
        return steps
    reading.unplaced += 1
    if not any(step.kind == "search" for step in steps):
        counts = row.get("tool_call_counts")
        calls = counts.get("search") if isinstance(counts, dict) else None
        made = min(calls, _MOST_CALLS) if type(calls) is int and calls > 0 else 1
        steps = [*steps, *[AgentStep(kind="search", tool="search")] * made]
    last = max(number for number, step in enumerate(steps) if step.kind == "search")
    steps[last] = steps[last].model_copy(update={"results": (*steps[last].results, *missing)})
    return steps


def ids_in(output: Any) -> list[str] | None:
    """Return the ids of results in what a tool returned, in order; None if it holds something and no ids.

    Examples:
        >>> ids_in('[{"docid": "12", "snippet": "It eats krill."}]'), ids_in({"results": []}), ids_in("Nothing to see.")
        (['12'], [], None)
    """
    if isinstance(output, str):
        return _ids_in_text(output.strip())
    if isinstance(output, list):
        if output and all(_is_block(part) for part in output):
            return _ids_in_blocks([part["text"] for part in output])
        listed = [item_id for part in output if (item_id := _id_of(part))]
        return listed if listed or not output else None
    for name in LISTS if isinstance(output, dict) else ():
        if isinstance(output.get(name), list | dict | str) and (ids := ids_in(output[name])) is not None:
            return ids
    return [] if output is None else None


def _ids_in_blocks(texts: list[str]) -> list[str] | None:
    """Ids in blocks of text: of one item each, or in all of them together."""
    with suppress(ValueError):
        each = [_id_of(parse_json(text)) for text in texts]
        if all(each):
            return each
    return ids_in("\n".join(texts))


def _ids_in_text(text: str) -> list[str] | None:
    if text[:1] in ("[", "{"):
        with suppress(ValueError):
            return ids_in(parse_json(text))
    written: list[str] = _WRITTEN_ID.findall(text)
    return written or (None if text else [])


def _is_block(part: object) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in ("text", "output_text", "input_text")
        and isinstance(part.get("text"), str)
    )


def _id_of(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    direct = _first_id(part)
    inner = next((part[name] for name in ("item", "document", "metadata") if isinstance(part.get(name), dict)), None)
    return direct or (_first_id(inner) if inner else "")


def _first_id(given: Mapping[str, Any]) -> str:
    for name in ITEM_IDS:
        value = given.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
    return ""


def _first_text(given: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in (*names, "queries"):
        value = given.get(name)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return "\n".join(value)
        if isinstance(value, str) and value:
            return value
    return ""


def _first_count(given: Mapping[str, Any]) -> int | None:
    values = (given.get(name) for name in _COUNTS)
    return next((value for value in values if type(value) is int and 0 <= value <= MOST), None)


def _first_object(given: Mapping[str, Any]) -> dict[str, Any] | None:
    values = (given.get(name) for name in _FILTERS)
    return next((value for value in values if isinstance(value, dict) and value), None)


def _as_object(arguments: object) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        if (text := arguments.strip()) and text[0] not in '{["':
            name, colon, value = text.partition(":")
            named = colon and name.strip() in (*_QUERIES, *ITEM_IDS)
            return {name.strip(): value.strip()} if named else {"query": text, "item_id": text}
        try:
            arguments = parse_json(arguments) if arguments.strip() else {}
        except ValueError:
            return None
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else None


def _error_in(output: object, failed: bool) -> str:
    text = _plain(output)
    if failed or (_FAILURE.match(text) and not ids_in(output)):
        return text[:500] or "the call failed"
    try:
        value = parse_json(text) if text[:1] == "{" else output
    except ValueError:
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    return _plain(error)[:500] if error else ""


def _plain(value: object) -> str:
    """The text of a message's content."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        texts = [part if isinstance(part, str) else part.get("text") for part in value if isinstance(part, str | dict)]
        return "\n".join(text for text in texts if isinstance(text, str)).strip()
    if isinstance(value, dict):
        return _plain(value.get("text") or value.get("message") or "")
    return ""


def _usage(given: object) -> tuple[int | None, int | None]:
    if not isinstance(given, dict):
        return None, None
    counts = {name: count for name, count in given.items() if type(count) is int and 0 <= count <= MOST}
    cached = [counts[name] for name in ("cache_creation_input_tokens", "cache_read_input_tokens") if name in counts]
    incoming = counts.get("input_tokens", counts.get("prompt_tokens"))
    if incoming is not None or cached:  # Anthropic counts what it cached beside the rest
        incoming = min((incoming or 0) + sum(cached), MOST)
    return incoming, counts.get("output_tokens", counts.get("completion_tokens"))


def _events(messages: list[Any], location: str) -> tuple[str, list[Event], tuple[int | None, int | None]]:
    """Return the question, what the agent wrote and called in order, and the tokens of all messages."""
    question: str | None = None
    events: list[Event] = []
    calls: dict[str, _ToolCall] = {}
    spent: list[tuple[int | None, int | None]] = []
    for number, message in enumerate(messages, 1):
        where = f"{location}: message {number}"
        if not isinstance(message, dict):
            raise SourceError(f"{where} is {kind(message)}; an object with a role is expected")
        began = len(events)
        for said, part in _parts(message, where):
            if said == "user":
                if question is None:
                    question = part
                else:
                    events.append(_Asked(part))
            elif said == "text":
                events.append(part)
            elif said == "call":
                call_id, name, arguments = part
                if call_id in calls and not calls[call_id].finished:
                    raise SourceError(f"{where}: the call {call_id!r} is there already; is a part of the transcript repeated?")
                call = _ToolCall(name, arguments)
                events.append(call)
                calls[call_id or f"call {len(calls) + 1}"] = call
            else:
                call_id, output, failed = part
                _give_result(calls, call_id, output, failed, where)
        tokens = _usage(message.get("usage"))
        spent.append(tokens)
        for event in events[began:]:
            if isinstance(event, _ToolCall):
                event.tokens = tokens
                break
    totals = [[tokens[side] for tokens in spent if tokens[side] is not None] for side in (0, 1)]
    return question or "", events, (sum(totals[0]) if totals[0] else None, sum(totals[1]) if totals[1] else None)  # type: ignore[arg-type]


def _give_result(calls: dict[str, _ToolCall], call_id: str, output: object, failed: bool, where: str) -> None:
    call = calls.get(call_id)
    if call is None and not call_id:  # forms without ids answer the calls in order
        call = next((waiting for waiting in calls.values() if not waiting.finished), None)
    if call is None:
        raise SourceError(
            f"{where} is the result of the call {call_id!r}, which is not before it; the steps are out of order, or the "
            "beginning of the transcript is missing"
        )
    if call.finished:
        raise SourceError(f"{where} is a second result of the call {call_id!r}; keep the one that the agent saw")
    call.output, call.failed, call.finished = output, failed, True


def _parts(message: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a message: texts ("user", "text"), calls (id, name, arguments), results (id of a call, output)."""
    form = message.get("type")
    if form in ("function_call", "tool_call"):
        yield (
            "call",
            (str(message.get("call_id") or message.get("id") or ""), str(message.get("name")), message.get("arguments")),
        )
        return
    if form in ("function_call_output", "tool_result"):
        yield "result", (str(message.get("call_id") or ""), message.get("output"), False)
        return
    if form in ("web_search_call", "file_search_call", "mcp_call"):
        yield from _hosted(form, message)
        return
    if form == "reasoning":
        if text := _plain(message.get("summary")):
            yield "text", text
        return
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        return
    if role in ("tool", "function"):
        yield "result", (str(message.get("tool_call_id") or ""), content, False)
        return
    if role not in ("user", "assistant"):
        raise SourceError(f"{where} has the role {role!r}; known are {quoted(['system', 'user', 'assistant', 'tool'])}")
    said = "user" if role == "user" else "text"
    if isinstance(content, list):
        yield from _blocks(content, said)
    elif text := _plain(content):
        yield said, text
    called = message.get("tool_calls") or ([message] if message.get("function_call") else [])
    for call in called if isinstance(called, list) else []:
        function = (call.get("function") or call.get("function_call") or call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise SourceError(f"{where}: a call of a tool is {kind(call)}; an object with 'function' is expected")
        yield "call", (str(call.get("id") or ""), str(function.get("name")), function.get("arguments", function.get("args")))


def _hosted(form: str, call: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a call of a tool that OpenAI runs itself, and its result; the id of a file is that of the item."""
    call_id = str(call.get("id") or "")
    unlisted = {"results": "not in the transcript"}
    if form == "mcp_call":
        name, arguments, output = str(call.get("name")), call.get("arguments"), call.get("output")
    elif form == "file_search_call":
        listed = call.get("results")
        found = [{"item_id": row["file_id"]} for row in listed if "file_id" in row] if isinstance(listed, list) else unlisted
        name, arguments, output = "file_search", {"queries": call.get("queries")}, found
    else:
        action = call.get("action")
        arguments = action if isinstance(action, dict) else {}
        does = str(arguments.get("type") or "search")
        name, output = "web_search" if does == "search" else does, arguments.get("sources") or unlisted
    yield "call", (call_id, name, arguments)
    yield "result", (call_id, call.get("error") or output, bool(call.get("error")) or call.get("status") == "failed")


def _blocks(content: list[Any], said: str) -> Iterator[tuple[str, Any]]:
    texts: list[str] = []
    for block in content:
        form = block.get("type") if isinstance(block, dict) else None
        if form in ("tool_use", "server_tool_use", "mcp_tool_use"):
            if texts:
                yield said, "\n".join(texts)
                texts = []
            yield "call", (str(block.get("id") or ""), str(block.get("name")), block.get("input"))
        elif form in ("tool_result", "web_search_tool_result", "mcp_tool_result"):
            yield "result", (str(block.get("tool_use_id") or ""), block.get("content"), bool(block.get("is_error")))
        elif text := _plain([block]):
            texts.append(text)
    if texts:
        yield said, "\n".join(texts)
