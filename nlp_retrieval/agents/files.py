"""Files of trajectories: written as JSON lines, and read from those, from recordings and from transcripts."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nlp_retrieval.agents.recorder import SESSION_FILES
from nlp_retrieval.agents.trajectory import AgentStep, StepKind, Trajectory
from nlp_retrieval.agents.transcripts import (
    ITEM_IDS,
    QUESTION_IDS,
    READ,
    TranscriptReading,
    id_of,
    plain_question,
    read_transcript,
    transcript_in,
)
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.opening import open_bytes, parse_json
from nlp_retrieval.core.files.records import kind, quoted
from nlp_retrieval.core.models import Query
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.text.printing import counted

_ALIASES = (
    dict.fromkeys(QUESTION_IDS, "question_id")
    | {"type": "kind", "search_query": "query", "top_k": "k", "filter": "where"}
    | dict.fromkeys(("docids", "doc_ids", "retrieved", "hits"), "results")
    | {name: "item_id" for name in ITEM_IDS if name not in (*QUESTION_IDS, "url", "link")}
)
_OF_ANSWERS = ("answer", "citations", "complete", "input_tokens", "output_tokens", "price", "metadata")


def write_trajectories(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories to a file of JSON lines.

    Args:
        path: the file, called ``.jsonl``; it is replaced as a whole.
        trajectories: at most one for an agent and a question.

    Raises:
        ConfigurationError: an agent has two for one question, or the file has another name.
        OutputError: the file cannot be written.

    Examples:
        >>> write_trajectories("agents.jsonl", trajectories)
        >>> read_trajectories("agents.jsonl") == trajectories
        True
    """
    listed = list(trajectories)
    require_one_each(listed, ConfigurationError, str(path))
    if not str(path).endswith(".jsonl"):
        raise ConfigurationError(f"{path}: trajectories are written as JSON lines; call the file .jsonl")
    lines = (f"{trajectory.model_dump_json(exclude_defaults=True)}\n" for trajectory in listed)
    write_output(Path(path), "".join(lines).encode())


def read_trajectories(
    path: str | Path,
    *,
    tools: Mapping[str, StepKind] | None = None,
    questions: Sequence[Query] = (),
) -> list[Trajectory]:
    """Read trajectories, in whatever form they were kept; an agent without a name is called after the file or folder.

    Args:
        path: a file, or a folder of files: JSON lines of :func:`write_trajectories`, recorded sessions, messages of OpenAI
            or Anthropic, sessions of Claude Code, trajectories of ATIF, or JSON lines with one step each. A conversation of
            several questions is one trajectory for each, if ``questions`` has their texts, or ids such as ``31_2``.
        tools: what tools do whose names do not say it: ``{"kb": "search", "page": "open"}``.
        questions: give transcripts their question ids, by equal text, and sessions the texts of their questions.

    Raises:
        SourceError: it cannot be read, is in no such form, is damaged, or has two answers to one question.

    Examples:
        >>> line = '{"qid": "q1", "query": "large whales", "docids": ["whale"]}'
        >>> _ = Path("steps.jsonl").write_text(line)
        >>> (trajectory,) = read_trajectories("steps.jsonl")
        >>> trajectory.agent, trajectory.question_id, trajectory.seen()
        ('steps', 'q1', ['whale'])
    """
    place = Path(path)
    if wrong := [name for name, does in (tools or {}).items() if not name or does not in ("search", "open", "note", "other")]:
        raise ConfigurationError(f"tools: {wrong[0]!r}: a tool is 'search', 'open' or 'other'; write --tool NAME=search")
    ids = {plain_question(query.text): query.query_id for query in questions}
    named = place.name.removesuffix(".gz").rpartition(".")[0] or place.name
    reading = TranscriptReading(named, ids, tools or {})
    trajectories: list[Trajectory] = []
    for file in _files(place):
        sessions = _Sessions(named, questions, ids)
        rows, stem = _rows(file), file.name.partition(".")[0]
        for number, (location, row) in enumerate(rows, 1):
            with _located(location):
                if (transcript := transcript_in(row, location)) is not None:
                    name = stem if len(rows) == 1 else f"{stem}:{number}"
                    trajectories += read_transcript(transcript, location, name, reading)
                elif "steps" in row:
                    own = next(({"question_id": str(row[name])} for name in QUESTION_IDS if row.get(name) is not None), {})
                    values = _named({name: value for name, value in row.items() if name not in QUESTION_IDS}, location)
                    if isinstance(row["steps"], list):
                        values["steps"] = [_step(step, location) for step in row["steps"]]
                    trajectories.append(Trajectory.model_validate_json(json.dumps({"agent": named, **values, **own})))
                else:
                    sessions.add(row, location)
        trajectories += sessions.trajectories()
    if not trajectories:
        raise SourceError(f"{path} holds no trajectory in a .json or .jsonl file; is it the right one?")
    require_one_each(trajectories, SourceError, str(path))
    for note in _notes(reading):
        warnings.warn(f"{path}: {note}", RetrievalWarning, stacklevel=2)
    return trajectories


def require_one_each(trajectories: Sequence[Trajectory], error: type[Exception], place: str) -> None:
    """Raise an error if an agent has two trajectories for one question."""
    times = Counter((trajectory.agent, trajectory.question_id) for trajectory in trajectories)
    if twice := next((key for key, count in times.items() if count > 1), None):
        raise error(
            f"{place}: agent {twice[0]!r} has two answers to question {twice[1]!r}; keep one, or name the second run of the "
            "agent differently"
        )


def _notes(reading: TranscriptReading) -> Iterator[str]:
    if reading.unknown:
        names = quoted(list(reading.unknown)[:3])
        calls = counted(reading.unknown.total(), "call of a tool that is", "calls of tools that are")
        yield (
            f"{calls} neither a search nor a read by name ({names}) are kept as other steps; "
            'say what they do with tools={"name": "search"} (--tool name=search)'
        )
    if reading.unreadable:
        searches = counted(reading.unreadable, "search", "searches")
        yield f"{searches} returned something without ids that can be read; the results are missing"
    if reading.cut:
        yield f"{counted(reading.cut, 'trajectory ends', 'trajectories end')} before an answer; what had come back counts"


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    named = (file for file in place.glob("[!.]*") if file.name.removesuffix(".gz").endswith((".json", ".jsonl")))
    return sorted(filter(Path.is_file, named))


def _rows(file: Path) -> list[tuple[str, Any]]:
    """Return the objects of a file with their locations; a file with a message each is one transcript."""
    with open_bytes(file) as stream:
        content = stream.read()
    rows = list((_lines if ".jsonl" in file.name else _objects)(file, content))
    for location, row in rows:
        if not isinstance(row, dict):
            raise SourceError(f"{location} is {kind(row)}; an object is expected")
    said = [row["message"] for _, row in rows if row.get("type") in ("user", "assistant") and "message" in row]  # Claude Code
    if said or (rows and ("role" in rows[0][1] or (".jsonl" not in file.name and len(rows) > 1 and "type" in rows[0][1]))):
        return [(str(file), {"messages": said or [row for _, row in rows]})]
    return rows


def _objects(file: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    try:
        value = parse_json(content)
    except ValueError as error:
        raise SourceError(
            f"{file} is no JSON ({error}); was it cut off? Write it again, or give .jsonl for JSON lines"
        ) from None
    if isinstance(value, list):
        yield from ((f"{file}: object {number}", row) for number, row in enumerate(value, 1))
    else:
        yield str(file), value


def _lines(file: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        location = f"{file} line {number}"
        try:
            if line.strip():
                yield location, parse_json(line)
        except ValueError as error:
            if number < len(lines) and not file.match(SESSION_FILES):
                raise SourceError(f"{location} is no JSON ({error})") from None
            warnings.warn(f"{location} was torn while it was written, and is left out", RetrievalWarning, stacklevel=4)


@contextmanager
def _located(location: str) -> Iterator[None]:
    """Say where a value is that a trajectory cannot have."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "it"
        if first["type"] == "extra_forbidden":
            known = quoted(sorted({*AgentStep.model_fields, *Trajectory.model_fields}))
            raise SourceError(
                f"{location}: there is no field {place!r}; known are {known}; rename it, or leave it out, or give messages"
            ) from None
        raise SourceError(f"{location}: {place}: {first['msg']}") from None


class _Sessions:
    """Collects lines with a step or an answer each, by session; after an answer, another question begins."""

    def __init__(self, agent: str, questions: Sequence[Query], ids: Mapping[str, str]) -> None:
        self._agent, self._ids = agent, ids
        self._texts = {query.query_id: query.text for query in questions}
        self._sessions: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}

    def add(self, row: Mapping[str, Any], location: str) -> None:
        """Add a line; a SourceError says that it names no question, an unknown field, or a step that is there already."""
        values = _named(row, location)
        agent = str(values.pop("agent", "") or self._agent)
        question, session = values.pop("question_id", None), values.pop("session", None)
        if session is None and question is None:
            raise SourceError(f"{location} names no question: no question_id, session or messages ({quoted(row)}); {READ}")
        session = str(question if session is None else session)
        questions = self._sessions.setdefault((agent, session), {})
        name = next(reversed(questions), session) if question is None else str(question)  # that which the session is at
        questions[name] = parts = questions.pop(name, [])
        if not parts or "answer" in parts[-1]:
            parts.append({"steps": {}, "location": location})
        own = parts[-1]
        if text := values.pop("question", ""):
            own["question"] = str(text)
        number, _ = values.pop("step", None), values.pop("time", None)
        if "answer" in values or (values and values.keys() <= set(_OF_ANSWERS)):
            own |= {name: values.pop(name) for name in list(values) if name in _OF_ANSWERS}
        if values:
            place = number if type(number) is int else max(own["steps"], default=0) + 1
            if place in own["steps"]:
                raise SourceError(f"{location}: step {place} of this session is there already; are two runs in one file?")
            own["steps"][place] = AgentStep.model_validate_json(json.dumps(_step(values, location)))

    def trajectories(self) -> list[Trajectory]:
        """Return the sessions as trajectories."""
        made = []
        for (agent, session), questions in self._sessions.items():
            for name, parts in questions.items():
                for number, part in enumerate(parts, 1):
                    steps, location = part.pop("steps"), part.pop("location")
                    own = {"question": self._texts.get(name, "")} | part
                    asked = self._ids.get(plain_question(own["question"]), name) if name == session else name
                    own |= {"agent": agent, "question_id": asked if number == 1 else f"{asked}:{number}"}
                    with _located(location):
                        whole = Trajectory.model_validate_json(json.dumps(own))
                    made.append(whole.model_copy(update={"steps": tuple(steps[place] for place in sorted(steps))}))
        return made


def _named(row: Mapping[str, Any], location: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in row.items():
        ours = name if name in AgentStep.model_fields else _ALIASES.get(name, name)
        if ours in values and value is not None:
            raise SourceError(f"{location}: {ours} is there twice, as {name!r} too; leave one of them out")
        if value is not None:
            values[ours] = value
    for name in ("results", "citations"):
        if isinstance(values.get(name), list):
            values[name] = [_id_in(result, location) for result in values[name]]
    if values.get("item_id", "") != "":
        values["item_id"] = _id_in(values["item_id"], location)
    return values


def _step(given: Any, location: str) -> Any:
    """Return the fields of a step; anything that is no object as it is."""
    if not isinstance(given, dict):
        return given
    values = _named(given, location)
    likely = "open" if "item_id" in values else "search" if "query" in values or "results" in values else "note"
    values.setdefault("kind", likely)
    return {name: value for name, value in values.items() if name not in ("step", "time")}


def _id_in(result: Any, location: str) -> str:
    if item_id := id_of(result):
        return item_id
    raise SourceError(f"{location}: a result, citation or item is {kind(result)}; ids, or objects with an id, are expected")
