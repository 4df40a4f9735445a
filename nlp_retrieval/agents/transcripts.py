"""Transcripts of tool calls as trajectories: messages of OpenAI (Chat and Responses) and Anthropic, and ATIF.

A transcript is data: nothing in it is run, and no text in it decides what is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from nlp_retrieval.agents.trajectory import MOST, AgentStep, StepKind, Trajectory
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.files.records import kind, quoted
from nlp_retrieval.errors import SourceError

QUESTION_IDS = ("question_id", "query_id", "qid", "id", "_id")
ITEM_IDS = ("item_id", "docid", "doc_id", "docno", "document_id", "pid", "passage_id", "id", "_id", "url")
_LISTS = ("results", "hits", "documents", "passages", "items", "chunks", "data", "result", "structuredContent", "content")
_QUERIES = ("query", "q", "search_query", "question", "text", "input", "queries")
_COUNTS = ("k", "top_k", "topk", "n", "num_results", "limit")
_FILTERS = ("where", "filter", "filters")
_SEARCHES = ("search", "retriev", "query", "lookup")
_OPENS = ("open", "read", "fetch", "visit", "get_doc", "document", "scrape", "browse")
_TEXTS = ("text", "output_text", "input_text")
_WRITTEN_ID = re.compile(
    r"""\b(?:docid|doc_id|docno|item_id|document_id)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?([^\s"',\]}]{1,500})""", re.IGNORECASE
)
_FAILURE = re.compile(r"error\s*(?::|\Z)", re.IGNORECASE)
NO_IDS = "no ids can be read in what came back"

_Tokens = tuple[int | None, int | None]


@dataclass
class TranscriptReading:
    """What was noticed while transcripts were read."""

    tools: Mapping[str, StepKind] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    cut: int = 0

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


class _Utterance(NamedTuple):
    by: Literal["user", "agent"]
    text: str


class _Call(NamedTuple):
    call_id: str
    tool: str
    arguments: object


class _Result(NamedTuple):
    call_id: str
    output: object
    failed: bool = False


@dataclass
class _Made:
    """A call with its result, once that came, and the tokens of the message that made it."""

    call: _Call
    result: _Result | None = None
    tokens: _Tokens = (None, None)


def is_transcript(row: Mapping[str, Any]) -> bool:
    """Return whether an object holds messages, or steps in the Agent Trajectory Interchange Format."""
    given = row.get("input")
    if isinstance(row.get("messages"), list) or isinstance(given, list) or (isinstance(given, str) and "output" in row):
        return True
    return isinstance(row.get("steps"), list) and str(row.get("schema_version")).startswith("ATIF-")


def plain_question(text: str) -> str:
    """Return a question without what writers of it differ in: case and spaces."""
    return " ".join(text.casefold().split())


def read_transcript(
    row: Mapping[str, Any], location: str, named: str, agent: str, questions: Mapping[str, str], reading: TranscriptReading
) -> list[Trajectory]:
    """Return a transcript as a trajectory, or as one for each of its turns if at least two of them are known questions.

    Raises:
        SourceError: it holds something else than messages, or a result that belongs to no call before it.
    """
    given: Any = row.get("messages")
    if not isinstance(given, list) and isinstance(row.get("steps"), list):
        by = row["agent"] if isinstance(row.get("agent"), dict) else {}
        extra = row["extra"] if isinstance(row.get("extra"), dict) else {}
        given = list(_messages_of_atif(row["steps"], location))
        row = {**extra, "agent": by.get("name"), "model": by.get("model_name"), "usage": row.get("final_metrics")}
    elif not isinstance(given, list):
        asked = row["input"]
        given = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        given = [*given, *(row.get("output") or ())]
    own = next((str(row[name]) for name in QUESTION_IDS if isinstance(row.get(name), str | int)), None)
    turns = _turns(given, own, questions)
    if len(turns) > 1:
        row = {**row, "usage": None}
    return [_trajectory(messages, turn, row, location, named, agent, questions, reading) for turn, messages in turns]


def _turns(messages: list[Any], own: str | None, questions: Mapping[str, str]) -> list[tuple[str | None, list[Any]]]:
    """Return the messages of each turn with its question: known by its text, or as ``31_2``, the second turn of topic 31."""
    begins, known = list[tuple[str, int]](), set(questions.values())
    asked = (at for at, message in enumerate(messages) if isinstance(message, dict) and message.get("role") == "user")
    for number, (at, text) in enumerate(((at, text) for at in asked if (text := _plain(messages[at].get("content")))), 1):
        turn = questions.get(plain_question(text)) or (numbered if (numbered := f"{own}_{number}") in known else None)
        begins += [(turn, at)] if turn is not None else []
    if len(begins) < 2:
        return [(own, messages)]
    ends = [*(at for _, at in begins[1:]), len(messages)]
    return [
        (turn, messages[at if number else 0 : end]) for number, ((turn, at), end) in enumerate(zip(begins, ends, strict=True))
    ]


def _trajectory(
    messages: list[Any],
    own: str | None,
    row: Mapping[str, Any],
    location: str,
    named: str,
    agent: str,
    questions: Mapping[str, str],
    reading: TranscriptReading,
) -> Trajectory:
    events, usage = _events(messages, location)
    asked = next((event for event in events if isinstance(event, _Utterance) and event.by == "user"), _Utterance("user", ""))
    events = [event for event in events if event is not asked]
    while events and isinstance(events[-1], _Utterance) and events[-1].by == "user":  # the user's last words are no answer
        events.pop()
    last = events[-1] if events else None
    answer = last.text if isinstance(last, _Utterance) else ""
    events = events[:-1] if isinstance(last, _Utterance) else events
    steps = [
        AgentStep(kind="note", text=event.text) if isinstance(event, _Utterance) else _step(event, reading) for event in events
    ]
    complete = bool(answer) and not any(isinstance(event, _Made) and event.result is None for event in events)
    reading.cut += not complete
    total = _usage(row.get("usage"))
    return Trajectory(
        question_id=own if own is not None else questions.get(plain_question(asked.text), named),
        question=asked.text,
        agent=str(row.get("agent") or agent),
        steps=tuple(steps),
        answer=answer,
        complete=complete,
        input_tokens=usage[0] if total[0] is None else total[0],
        output_tokens=usage[1] if total[1] is None else total[1],
        metadata={"model": row["model"]} if isinstance(row.get("model"), str) else {},
    )


def _messages_of_atif(steps: list[Any], location: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of the Agent Trajectory Interchange Format (Harbor, versions 1.0 to 1.7) as messages."""
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict):
            raise SourceError(f"{location}: step {number} is {kind(step)}; an object with a source is expected")
        called = [call for call in step.get("tool_calls") or () if isinstance(call, dict)]
        calls = [
            {
                "id": call.get("tool_call_id"),
                "function": {"name": call.get("function_name"), "arguments": call.get("arguments")},
            }
            for call in called
        ]
        role = "assistant" if step.get("source") == "agent" else step.get("source")
        usage = None if step.get("is_copied_context") else step.get("metrics")
        yield {"role": role, "content": step.get("message"), "tool_calls": calls, "usage": usage}
        observed = step.get("observation")
        results = observed.get("results") if isinstance(observed, dict) else None
        waiting = [str(call["id"]) for call in calls]
        for result in results if isinstance(results, list) and called else ():
            answered = str(result.get("source_call_id") or (waiting[0] if waiting else "")) if isinstance(result, dict) else ""
            if answered in waiting:  # a result of no call is the environment's own
                waiting.remove(answered)
                yield {"role": "tool", "tool_call_id": answered, "content": result.get("content")}


def _step(made: _Made, reading: TranscriptReading) -> AgentStep:
    tool, arguments = made.call.tool, made.call.arguments
    given = _as_object(arguments)
    values: dict[str, Any] = {"kind": reading.kind_of(tool), "tool": tool[:200]}
    error = "the transcript ends before its result" if made.result is None else _error_in(made.result)
    if given is None:
        given, error = {}, error or "its arguments are no JSON object"
    if values["kind"] == "search":
        values |= {"query": _query_in(given), "k": _first_count(given)}
        values["where"] = next((value for name in _FILTERS if isinstance(value := given.get(name), dict) and value), None)
        if made.result is not None and not error:
            ids = ids_in(made.result.output)
            if ids is None:
                error, reading.unreadable = NO_IDS, reading.unreadable + 1
            values["results"] = tuple(ids or ())
    elif values["kind"] == "open":
        read = _first_id(given) or next(iter(given.values()), "")
        values["item_id"] = read if isinstance(read, str) else ""
        error = error if values["item_id"] else error or "it does not say what it reads"
    return AgentStep(**values, error=error, input_tokens=made.tokens[0], output_tokens=made.tokens[1])


def _events(messages: list[Any], location: str) -> tuple[list[_Utterance | _Made], _Tokens]:
    """Return the texts and the calls with their results, in order, and the tokens of all messages."""
    events: list[_Utterance | _Made] = []
    calls: dict[str, _Made] = {}
    spent: list[_Tokens] = []
    for number, message in enumerate(messages, 1):
        where = f"{location}: message {number}"
        if not isinstance(message, dict):
            raise SourceError(f"{where} is {kind(message)}; an object with a role is expected")
        tokens = _usage(message.get("usage"))
        spent.append(tokens)
        for part in _parts(message, where):
            if isinstance(part, _Utterance):
                events.append(part)
            elif isinstance(part, _Call):
                if part.call_id in calls and calls[part.call_id].result is None:
                    raise SourceError(f"{where}: the call {part.call_id!r} is there already; is a part repeated?")
                events.append(made := _Made(part, tokens=tokens))
                calls[part.call_id or f"call {len(calls) + 1}"] = made
                tokens = (None, None)  # they count once
            else:
                _give(calls, part, where)
    totals = [[tokens[side] for tokens in spent if tokens[side] is not None] for side in (0, 1)]
    return events, (sum(totals[0]) if totals[0] else None, sum(totals[1]) if totals[1] else None)  # type: ignore[arg-type]


def _give(calls: Mapping[str, _Made], result: _Result, where: str) -> None:
    call = calls.get(result.call_id)
    if call is None and not result.call_id:  # forms without ids answer the calls in order
        call = next((waiting for waiting in calls.values() if waiting.result is None), None)
    if call is None:
        raise SourceError(
            f"{where} is the result of the call {result.call_id!r}, which is not before it; the steps are out of order, or the "
            "beginning of the transcript is missing"
        )
    if call.result is not None:
        raise SourceError(f"{where} is a second result of the call {result.call_id!r}; keep the one that the agent saw")
    call.result = result


def _parts(message: Mapping[str, Any], where: str) -> Iterator[_Utterance | _Call | _Result]:
    form, role, content = message.get("type"), message.get("role"), message.get("content")
    if form in ("function_call", "tool_call"):
        yield _Call(str(message.get("call_id") or message.get("id") or ""), str(message.get("name")), message.get("arguments"))
    elif form in ("function_call_output", "tool_result"):
        yield _Result(str(message.get("call_id") or ""), message.get("output"))
    elif form in ("web_search_call", "file_search_call", "mcp_call"):
        yield from _hosted(form, message)
    elif form == "reasoning":
        if text := _plain(message.get("summary")):
            yield _Utterance("agent", text)
    elif role in ("tool", "function"):
        yield _Result(str(message.get("tool_call_id") or ""), content)
    elif role in ("user", "assistant"):
        by: Literal["user", "agent"] = "user" if role == "user" else "agent"
        if isinstance(content, list):
            yield from _blocks(content, by)
        elif text := _plain(content):
            yield _Utterance(by, text)
        called = message.get("tool_calls") or ([message] if message.get("function_call") else [])
        for call in called if isinstance(called, list) else []:
            function = (call.get("function") or call.get("function_call") or call) if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise SourceError(f"{where}: a call of a tool is {kind(call)}; an object with 'function' is expected")
            yield _Call(str(call.get("id") or ""), str(function.get("name")), function.get("arguments", function.get("args")))
    elif role not in ("system", "developer"):
        raise SourceError(f"{where} has the role {role!r}; known are {quoted(['system', 'user', 'assistant', 'tool'])}")


def _hosted(form: str, call: Mapping[str, Any]) -> Iterator[_Call | _Result]:
    """Yield a call of a tool that OpenAI runs itself, and its result; the id of a file is that of the item."""
    call_id, unlisted = str(call.get("id") or ""), {"results": "not in the transcript"}
    if form == "mcp_call":
        tool, arguments, output = str(call.get("name")), call.get("arguments"), call.get("output")
    elif form == "file_search_call":
        listed = call.get("results")
        found = [{"item_id": row["file_id"]} for row in listed if "file_id" in row] if isinstance(listed, list) else unlisted
        tool, arguments, output = "file_search", {"queries": call.get("queries")}, found
    else:
        arguments = action if isinstance(action := call.get("action"), dict) else {}
        does = str(arguments.get("type") or "search")
        tool, output = "web_search" if does == "search" else does, arguments.get("sources") or unlisted
    yield _Call(call_id, tool, arguments)
    yield _Result(call_id, call.get("error") or output, bool(call.get("error")) or call.get("status") == "failed")


def _blocks(content: list[Any], by: Literal["user", "agent"]) -> Iterator[_Utterance | _Call | _Result]:
    """Yield the parts of a list of blocks; texts in a row are one text."""
    texts: list[str] = []
    for block in content:
        form = block.get("type") if isinstance(block, dict) else None
        if form in ("tool_use", "server_tool_use", "mcp_tool_use"):
            if texts:
                yield _Utterance(by, "\n".join(texts))
                texts = []
            yield _Call(str(block.get("id") or ""), str(block.get("name")), block.get("input"))
        elif form in ("tool_result", "web_search_tool_result", "mcp_tool_result"):
            yield _Result(str(block.get("tool_use_id") or ""), block.get("content"), bool(block.get("is_error")))
        elif text := _plain([block]):
            texts.append(text)
    if texts:
        yield _Utterance(by, "\n".join(texts))


def ids_in(output: Any) -> list[str] | None:
    """Return the ids of results in what a tool returned, in order; None if it holds something and no ids."""
    if isinstance(output, str):
        return _ids_in_text(output.strip())
    if isinstance(output, list):
        texts = [part["text"] for part in output if isinstance(part, dict) and part.get("type") in _TEXTS and "text" in part]
        if output and len(texts) == len(output):
            return _ids_in_blocks([str(text) for text in texts])
        listed = [item_id for part in output if (item_id := _id_of(part))]
        return listed if listed or not output else None
    for name in _LISTS if isinstance(output, dict) else ():
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


def _id_of(part: object) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    inner: Mapping[str, Any] = next(
        (part[name] for name in ("item", "document", "metadata") if isinstance(part.get(name), dict)), {}
    )
    return _first_id(part) or _first_id(inner)


def _first_id(given: Mapping[str, Any]) -> str:
    values = (given.get(name) for name in ITEM_IDS)
    return next(
        (str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool) and str(value)), ""
    )


def _query_in(given: Mapping[str, Any]) -> str:
    for value in map(given.get, _QUERIES):
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return "\n".join(value)
        if isinstance(value, str) and value:
            return value
    return ""


def _first_count(given: Mapping[str, Any]) -> int | None:
    return next((value for name in _COUNTS if type(value := given.get(name)) is int and 0 <= value <= MOST), None)


def _as_object(arguments: object) -> dict[str, Any] | None:
    """Return arguments as an object, {} if there are none; None if they are no object."""
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments) if arguments.strip() else {}
        except ValueError:
            return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None


def _error_in(result: _Result) -> str:
    text, value = _plain(result.output), result.output
    if result.failed or (_FAILURE.match(text) and not ids_in(value)):
        return text[:500] or "the call failed"
    if text[:1] == "{":
        with suppress(ValueError):
            value = parse_json(text)
    return _plain(value["error"])[:500] if isinstance(value, dict) and value.get("error") else ""


def _plain(value: object) -> str:
    """The text of a message's content."""
    if isinstance(value, dict):
        value = value.get("text") or value.get("message") or ""
    if isinstance(value, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in value]
        value = "\n".join(text for text in texts if isinstance(text, str))
    return value.strip() if isinstance(value, str) else ""


def _usage(given: object) -> _Tokens:
    if not isinstance(given, dict):
        return None, None
    counts = {name: count for name, count in given.items() if type(count) is int and 0 <= count <= MOST}
    cached = [counts[name] for name in ("cache_creation_input_tokens", "cache_read_input_tokens") if name in counts]
    counts |= {name.removeprefix("total_"): count for name, count in counts.items()}  # as ATIF has them
    incoming = counts.get("input_tokens", counts.get("prompt_tokens"))
    if incoming is not None or cached:  # Anthropic counts what it cached beside the rest
        incoming = min((incoming or 0) + sum(cached), MOST)
    return incoming, counts.get("output_tokens", counts.get("completion_tokens"))
