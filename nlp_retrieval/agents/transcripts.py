"""Transcripts of tool calls as trajectories: messages of OpenAI (Chat and Responses) and Anthropic, and ATIF.

A transcript is data: nothing in it is run, and no text in it decides what is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from nlp_retrieval.agents.trajectory import MOST, AgentStep, Amount, StepKind, Trajectory
from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.core.files.records import kind
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import SourceError

QUESTION_IDS = ("question_id", "query_id", "qid", "id", "_id")
ITEM_IDS = ("item_id", "docid", "doc_id", "docno", "document_id", "pid", "passage_id", "file_id", "id", "_id", "url", "link")
_LISTS = ("results", "hits", "matches", "points", "docs", "ids", "documents", "passages", "items", "chunks",
          "organic", "data", "result", "response", "web", "value", "structuredContent", "content")  # fmt: skip
_QUERIES = ("query", "q", "search_query", "question", "text", "input", "queries")
_COUNTS = ("k", "top_k", "topk", "n", "num_results", "limit")
_FILTERS = ("where", "filter", "filters")
_SEARCHES = ("search", "retriev", "query", "lookup")
_OPENS = ("open", "read", "fetch", "visit", "get_doc", "document", "scrape", "browse")
_TEXTS = ("text", "output_text", "input_text")
_HOSTED = ("web_search_call", "file_search_call", "mcp_call", "code_interpreter_call", "image_generation_call")
"""Calls of tools that OpenAI runs itself; others have a result of their own."""
_SILENT = ("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "item_reference", "compaction")
"""Messages of OpenAI that are neither text nor a call."""
_UNREAD = ("parts", "function_call", "functionCall", "toolUse", "toolResult", "toolCallId")
"""Where other forms have calls, which would be lost without a word."""

_WRITTEN_ID = re.compile(
    rf"""(?:\b(docid|doc_id|docno|item_id|document_id|url)["']?|["']({"|".join(ITEM_IDS)})["'])"""
    r"""[ \t]{0,4}[:=][ \t]{0,4}["']?([^\s"',\]}]{1,500})""",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\w{0,60}(?:error|exception)\s*(?::|\Z)|(?:an )?error (?:executing|calling|running|occurred)\b|traceback \(", re.IGNORECASE
)
_NOTHING = re.compile(
    r"(?:found )?(?:no|0)\b[^.:\n]{0,60}\b(?:results?|documents?|matches|hits|passages?|items?)\b", re.IGNORECASE
)
_AMOUNT = TypeAdapter(Amount)
_ENDS = ("status", "stop_reason", "finish_reason")
_CUT = "incomplete failed cancelled max_tokens length content_filter model_context_window_exceeded pause_turn".split()
"""What a response or a message says of its end if its text is no answer, or half of one."""
NO_IDS = "no ids can be read in what came back"
READ = "messages of OpenAI (Chat and Responses) and Anthropic, and ATIF are read"


class _Spent(NamedTuple):
    """Tokens and price of a message, or of all; None if unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    price: float | None = None


@dataclass
class TranscriptReading:
    """How transcripts are read, and what was noticed; ``questions`` are ids by text (:func:`plain_question`)."""

    agent: str
    questions: Mapping[str, str]
    tools: Mapping[str, StepKind]
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


class _Text(NamedTuple):
    by: Literal["user", "agent"]
    text: str
    cited: tuple[str, ...] = ()  # by its annotations


class _Result(NamedTuple):
    call_id: str
    output: object
    failed: bool = False


@dataclass
class _Call:
    """A call with its result, once that came, and what the message spent that made it."""

    call_id: str
    tool: str
    arguments: object
    result: _Result | None = None
    spent: _Spent = field(default_factory=_Spent)


def transcript_in(row: Mapping[str, Any], location: str) -> Mapping[str, Any] | None:
    """Return an object in any form of a transcript as one with ``messages``; None if it is something else."""
    if isinstance(row.get("messages"), list):
        return row
    if isinstance(row.get("steps"), list) and str(row.get("schema_version")).startswith("ATIF-"):
        by, extra = (row[name] if isinstance(row.get(name), dict) else {} for name in ("agent", "extra"))
        about = {"agent": by.get("name"), "model": by.get("model_name"), "usage": row.get("final_metrics")}
        return {**extra, **about, "messages": list(_messages_of_atif(row["steps"], location))}
    asked, answered = row.get("input"), row.get("output")
    if isinstance(asked, list) or isinstance(answered, list) or (isinstance(asked, str) and "output" in row):
        sides = {role: given for role, given in (("user", asked), ("assistant", answered)) if given is not None}
        listed = (given if isinstance(given, list) else [{"role": role, "content": given}] for role, given in sides.items())
        return {**row, "messages": [message for messages in listed for message in messages]}
    return None


def plain_question(text: str) -> str:
    """Return a question without what writers of it differ in: case, spaces and Unicode form."""
    return " ".join(normalize("NFKC", text).casefold().split())


def read_transcript(row: Mapping[str, Any], location: str, named: str, reading: TranscriptReading) -> Iterator[Trajectory]:
    """Yield a transcript as a trajectory, or as one for each of its turns if at least two of them are known questions."""
    ids = {name: str(row[name]) for name in QUESTION_IDS if isinstance(row.get(name), str | int)}
    own = next(iter(ids.values()), None)
    if turns := _turns(row["messages"], own, reading.questions):
        row = {**row, "usage": None, **dict.fromkeys(_ENDS)}
    elif ids.keys() & {"question_id", "query_id", "qid"} or own in reading.questions.values():
        turns = [(own, row["messages"])]
    else:  # the id of a response or a run is no more than a name
        turns, named = [(None, row["messages"])], own or named
    asked = Counter[str | None]()
    for turn, messages in turns:
        asked[turn] += 1
        again = f":{asked[turn]}" if asked[turn] > 1 else ""
        yield _trajectory(messages, turn and f"{turn}{again}", named, row, location, reading)


def _turns(messages: list[Any], own: str | None, questions: Mapping[str, str]) -> list[tuple[str | None, list[Any]]]:
    """Return the messages of each turn, if at least two are known: by their text, or as ``31_2``, the second turn of 31."""
    begins, known = list[tuple[str, int]](), set(questions.values())
    asked = (at for at, message in enumerate(messages) if isinstance(message, dict) and message.get("role") == "user")
    for number, (at, text) in enumerate(((at, text) for at in asked if (text := _plain(messages[at].get("content")))), 1):
        turn = questions.get(plain_question(text)) or (numbered if (numbered := f"{own}_{number}") in known else None)
        begins += [(turn, at)] if turn is not None else []
    if len(begins) < 2:
        return []
    parts = pairwise([0, *(at for _, at in begins[1:]), len(messages)])
    return [(turn, messages[start:end]) for (turn, _), (start, end) in zip(begins, parts, strict=True)]


def _trajectory(
    messages: list[Any], own: str | None, named: str, row: Mapping[str, Any], location: str, reading: TranscriptReading
) -> Trajectory:
    events, spent = _events(messages, location)
    said = [event for event in events if isinstance(event, _Text) and event.by == "user"] or [_Text("user", "")]
    asked = next((event for event in said if plain_question(event.text) in reading.questions), said[0])
    events = [event for event in events if event is not asked]
    while events and isinstance(events[-1], _Text) and events[-1].by == "user":  # the user's last words are no answer
        events.pop()
    last = events[-1] if events else None
    answer = last if isinstance(last, _Text) else _Text("agent", "")
    events = events[:-1] if last is answer else events
    steps = [AgentStep(kind="note", text=event.text) if isinstance(event, _Text) else _step(event, reading) for event in events]
    complete = bool(answer.text) and not any(isinstance(event, _Call) and event.result is None for event in events)
    complete = complete and not any(each.get(name) in _CUT for each in (row, *messages[-1:]) for name in _ENDS)
    reading.cut += not complete
    whole = _spent(row.get("usage"))
    total = _Spent(*(summed if value is None else value for value, summed in zip(whole, spent, strict=True)))  # type: ignore[arg-type]
    return Trajectory(
        question_id=own if own is not None else reading.questions.get(plain_question(asked.text), named),
        question=asked.text,
        agent=str(row.get("agent") or reading.agent),
        steps=tuple(steps),
        answer=answer.text,
        citations=tuple(dict.fromkeys(answer.cited)) or None,
        complete=complete,
        **total._asdict(),
        metadata={"model": row["model"]} if isinstance(row.get("model"), str) else {},
    )


def _messages_of_atif(steps: list[Any], location: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of the Agent Trajectory Interchange Format (Harbor, versions 1.0 to 1.7) as messages."""
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict):
            raise SourceError(f"{location}: step {number} is {kind(step)}; an object with a source is expected")
        calls = step["tool_calls"] if isinstance(step.get("tool_calls"), list) else []
        role = "assistant" if step.get("source") == "agent" else step.get("source")
        usage = None if step.get("is_copied_context") else step.get("metrics")
        yield {"role": role, "content": step.get("message"), "tool_calls": calls, "usage": usage}
        observed = step.get("observation")
        results = observed.get("results") if isinstance(observed, dict) else None
        waiting = [str(call.get("tool_call_id")) for call in calls if isinstance(call, dict)]
        for result in results if isinstance(results, list) and waiting else ():
            answered = str(result.get("source_call_id") or next(iter(waiting), "")) if isinstance(result, dict) else ""
            if answered in waiting:  # a result of no call is the environment's own
                waiting.remove(answered)
                yield {"role": "tool", "tool_call_id": answered, "content": result.get("content")}


def _step(call: _Call, reading: TranscriptReading) -> AgentStep:
    given = _as_object(call.arguments)
    values: dict[str, Any] = {"kind": reading.kind_of(call.tool), "tool": call.tool[:200], **call.spent._asdict()}
    error = "the transcript ends before its result" if call.result is None else _error_in(call.result)
    if given is None:
        given, error = {}, error or "its arguments are no JSON object"
    if values["kind"] == "search":
        values["query"] = _query_in(given)
        values["k"] = next((n for name in _COUNTS if type(n := given.get(name)) is int and 0 <= n <= MOST), None)
        values["where"] = next((value for name in _FILTERS if isinstance(value := given.get(name), dict) and value), None)
        if call.result is not None and not error:
            ids = ids_in(call.result.output)
            if ids is None:
                error, reading.unreadable = NO_IDS, reading.unreadable + 1
            values["results"] = tuple(ids or ())
    elif values["kind"] == "open":
        values["item_id"] = _first_id(given) or next((value for value in given.values() if isinstance(value, str)), "")
        error = error if values["item_id"] else error or "it does not say what it reads"
    return AgentStep(**values, error=error)


def _events(messages: list[Any], location: str) -> tuple[list[_Text | _Call], _Spent]:
    """Return the texts and the calls with their results, in order, and what all messages spent."""
    events: list[_Text | _Call] = []
    waiting: dict[str, list[_Call]] = {}
    all_spent: dict[object, _Spent] = {None: _Spent()}
    for number, message in enumerate(messages, 1):
        where = f"{location}: message {number}"
        if not isinstance(message, dict):
            raise SourceError(f"{where} is {kind(message)}; an object with a role is expected")
        spent = _spent(message.get("usage"))
        all_spent[str(message["id"]) if message.get("id") else number] = spent  # logs give each block of a message a line
        for part in _parts(message, where):
            if isinstance(part, _Result):
                _give(waiting, part, where)
                continue
            events.append(part)
            if isinstance(part, _Call):
                part.spent, spent = spent, _Spent()  # it counts once
                waiting.setdefault(part.call_id, []).append(part)
    known = [[value for value in column if value is not None] for column in zip(*all_spent.values(), strict=True)]
    return events, _Spent(*(sum(column) if column else None for column in known))


def _give(waiting: Mapping[str, list[_Call]], result: _Result, where: str) -> None:
    """Give a result to the first call of its id that waits for one; without an id, to the first of all."""
    calls = waiting.get(result.call_id) or (next(filter(None, waiting.values()), None) if not result.call_id else None)
    if not calls and result.call_id not in waiting:
        raise SourceError(
            f"{where} is the result of the call {result.call_id!r}, which is not before it; the steps are out of order, or the "
            "beginning of the transcript is missing"
        )
    if not calls:
        raise SourceError(f"{where} is a second result of the call {result.call_id!r}; keep the one that the agent saw")
    calls.pop(0).result = result


def _parts(message: Mapping[str, Any], where: str) -> Iterator[_Text | _Call | _Result]:
    form, role, content = str(message.get("type") or ""), message.get("role"), message.get("content")
    call_id = str(message.get("call_id") or message.get("tool_call_id") or "")
    if role == "tool":
        yield _Result(call_id, content, message.get("status") == "error")
    elif role in ("user", "assistant"):
        held = [part for part in (message, *(content if isinstance(content, list) else ())) if isinstance(part, dict)]
        if other := next((name for name in _UNREAD for part in held if part.get(name)), None):
            raise SourceError(f"{where} has {other!r}, which is of a form that is not known; {READ}")
        called = message.get("tool_calls") or []
        yield from _blocks(content or message.get("refusal"), "user" if role == "user" else "agent", calls=not called)
        for call in called if isinstance(called, list) else []:
            if not isinstance(call, dict):
                raise SourceError(f"{where}: a call of a tool is {kind(call)}; an object with 'function' is expected")
            function = next((each for name in ("function", "custom") if isinstance(each := call.get(name), dict)), call)
            tool = next((function[name] for name in ("name", "function_name", "function") if function.get(name)), None)
            yield _Call(str(call.get("id") or call.get("tool_call_id") or ""), str(tool), _arguments(function))
    elif form in _HOSTED:
        yield from _hosted(form, message)
    elif form.endswith("_call"):
        tool = str(message.get("name") or form.removesuffix("_call"))
        yield _Call(call_id or str(message.get("id") or ""), tool, _arguments(message))
    elif form.endswith(("_output", "tool_result")):
        yield _Result(call_id, message.get("output"))
    elif form == "reasoning":
        if text := _plain(message.get("summary")):
            yield _Text("agent", text)
    elif role not in ("system", "developer") and (role is not None or form not in _SILENT):
        raise SourceError(f"{where} has the role {role!r} and the type {form!r}, which are not known; {READ}")


def _arguments(call: Mapping[str, Any]) -> object:
    return next((call[name] for name in ("arguments", "input", "action") if name in call), None)


def _hosted(form: str, call: Mapping[str, Any]) -> Iterator[_Call | _Result]:
    """Yield a call of a tool that OpenAI runs itself, and its result."""
    unlisted = {"results": "not in the transcript"}
    call_id, error = str(call.get("id") or ""), call.get("error")
    tool, arguments, output = str(call.get("name") or form.removesuffix("_call")), _arguments(call), call.get("output")
    if form == "file_search_call":
        arguments, listed = {"queries": call.get("queries")}, call.get("results")
        output = unlisted if listed is None else listed
    elif form == "web_search_call":
        does = arguments if isinstance(arguments, dict) else {}
        tool = tool if does.get("type") in (None, "search") else str(does["type"])
        output = does.get("sources") or unlisted
    yield _Call(call_id, tool, arguments)
    yield _Result(call_id, error or output, bool(error) or call.get("status") == "failed")


def _blocks(content: Any, by: Literal["user", "agent"], *, calls: bool) -> Iterator[_Text | _Call | _Result]:
    """Yield the parts of a message's content; texts in a row are one text. Calls are left out where the message lists them."""
    texts, marks = list[str](), list[Any]()
    for block in content if isinstance(content, list) else [content]:
        form = str(block.get("type")) if isinstance(block, dict) else ""
        if form.endswith("tool_use") and calls:
            if texts:
                yield _Text(by, "\n".join(texts))
                texts, marks = [], []
            yield _Call(str(block.get("id") or ""), str(block.get("name")), block.get("input"))
        elif form.endswith("tool_result"):
            output = block.get("content")
            failed = bool(block.get("is_error")) or (isinstance(output, dict) and "error_code" in output)
            yield _Result(str(block.get("tool_use_id") or ""), output, failed)
        elif text := _plain([block]):
            texts.append(text)
            marked = (block.get("annotations") or block.get("citations")) if isinstance(block, dict) else None
            marks += marked if isinstance(marked, list) else []
    if texts:
        yield _Text(by, "\n".join(texts), tuple(filter(None, map(id_of, marks))))


def ids_in(output: Any) -> list[str] | None:
    """Return the ids of results in what a tool returned, in order; None if it holds something and no ids."""
    if isinstance(output, str):
        return _ids_in_text(output.strip())
    if isinstance(output, list):
        parts = [each for part in output for each in (part if isinstance(part, list) else [part])]  # or a list for each query
        if texts := [str(part.get("text")) for part in parts if isinstance(part, dict) and part.get("type") in _TEXTS]:
            with suppress(ValueError):
                if all(each := [id_of(parse_json(text)) for text in texts]):  # of one item each
                    return each
            return ids_in("\n".join(texts))
        listed = [item_id for part in parts if (item_id := id_of(part))]
        return listed if listed or not parts else None
    for name in _LISTS if isinstance(output, dict) else ():
        if isinstance(output.get(name), list | dict | str) and (ids := ids_in(output[name])) is not None:
            return ids
    return [] if output is None else None


def _ids_in_text(text: str) -> list[str] | None:
    """Return the ids in JSON; in other text, also JSON that was cut off, those under the first name of an id that it has."""
    with suppress(ValueError):
        if text[:1] in ("[", "{"):
            return ids_in(parse_json(text))
    written = dict[str, list[str]]()
    for bare, quoted, item_id in _WRITTEN_ID.findall(text):
        written.setdefault((bare or quoted).lower(), []).append(item_id if "(" in item_id else item_id.rstrip(").;"))
    return next(filter(None, map(written.get, ITEM_IDS)), None if text and not _NOTHING.match(text) else [])


def id_of(part: object) -> str:
    """Return the id of a result, itself or in an object; empty if there is none."""
    if not isinstance(part, dict):
        return _first_id({"id": part})
    wrapped = map(part.get, ("item", "document", "metadata"))
    source = {"id": part.get("source")}  # of a block with a search result
    return next(filter(None, (_first_id(place) for place in (part, *wrapped, source) if isinstance(place, dict))), "")


def _first_id(given: Mapping[str, Any]) -> str:
    return next((str(value) for name in ITEM_IDS if type(value := given.get(name)) in (str, int) and str(value)), "")


def _query_in(given: Mapping[str, Any]) -> str:
    for value in map(given.get, _QUERIES):
        texts: list[Any] = value if isinstance(value, list) else [value]
        if texts and all(isinstance(text, str) and text for text in texts):
            return "\n".join(texts)
    return ""


def _as_object(arguments: object) -> dict[str, Any] | None:
    """Return arguments as an object, {} if there are none, a plain text as ``input``; None if they are no object."""
    if isinstance(arguments, str):
        text = arguments.strip()
        if text[:1] not in ("{", "["):
            return {"input": text} if text not in ("", "null") else {}
        try:
            arguments = parse_json(text)
        except ValueError:
            return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None


def _error_in(result: _Result) -> str:
    text, value = _plain(result.output), result.output
    if text[:1] == "{":
        with suppress(ValueError):
            value = parse_json(text)
    about = value if isinstance(value, dict) else {}
    if result.failed or about.get("isError") is True:  # as tools of MCP say it
        return (_plain(about.get("content")) or text)[:500] or "the call failed"
    said = text if _FAILURE.match(text) else _plain(about.get("error"))
    return "" if said and ids_in(result.output) else said[:500]


def _plain(value: object) -> str:
    """The text of a message's content."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("text", "message", "error_code") if value.get(name)), "")
    if isinstance(value, list):
        texts = [part.get("text") or part.get("refusal") if isinstance(part, dict) else part for part in value]
        value = "\n".join(text for text in texts if isinstance(text, str))
    return value.strip() if isinstance(value, str) else ""


def _spent(given: object) -> _Spent:
    if not isinstance(given, dict):
        return _Spent()
    known = dict[str, float]()
    for name, value in given.items():
        with suppress(ValidationError):
            known[name.removeprefix("total_")] = _AMOUNT.validate_python(value)  # ATIF has totals
    counts = {name: int(value) for name, value in known.items() if value == int(value)}
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")  # Anthropic counts them apart
    counted = [counts[name] for name in (("prompt_tokens",) if "prompt_tokens" in counts else parts) if name in counts]
    incoming = min(sum(counted), MOST) if counted else None
    outgoing = counts.get("output_tokens", counts.get("completion_tokens"))
    return _Spent(incoming, outgoing, next((known[name] for name in ("cost_usd", "cost") if name in known), None))
