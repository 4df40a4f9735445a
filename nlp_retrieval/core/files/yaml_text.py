"""Configuration files: YAML with registry names and values, and nothing executable.

It accepts what JSON can hold. The only words with a meaning of their own are ``true``, ``false``, ``null`` and ``~``, and only
decimal numbers are numbers: ``no``, ``on``, ``010``, ``12:30`` and dates are text, and so is every key. Values are built from
the parser's events, so nothing is nested or repeated without end, also by aliases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.opening import explain_file_limit
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import ConfigurationError, SourceError, nearest

_LONGEST = 2**20
_MOST_VALUES = 1_000_000
_DEEPEST = 100
"""Limits of a file: its bytes, its values once its aliases are written out, and its depth."""

_TAG = "tag:yaml.org,2002:"
_MEANINGS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WORDS = {form: value for word, value in _MEANINGS.items() for form in (word, word.title(), word.upper())}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,639})")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_OPEN = object()
"""Stands for an anchored value that is not complete."""


class _Reader:
    """Builds the value of one document."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._count = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        """Return the value; None if there is none."""
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 1)
        next(self._events)  # the end of the document
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            _refuse(event, "a second document begins here; keep one")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        before = self._count
        self._count += 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                _refuse(event, f"there is no anchor {event.anchor!r} before this alias")
            value, size = self._anchors[event.anchor]
            if value is _OPEN:
                _refuse(event, "an alias refers to a value that contains it")
            self._count += size
        else:
            if event.anchor is not None:
                self._anchors[event.anchor] = (_OPEN, 0)
            value = self._built(event, depth)
        if self._count > _MOST_VALUES:
            _refuse(event, f"with its aliases written out this is more than {_MOST_VALUES:,} values")
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _built(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        kind = "seq" if isinstance(event, yaml.SequenceStartEvent) else "map"
        if event.tag not in (None, "!", _TAG + kind):
            _refuse_tag(event)
        if depth > _DEEPEST:
            _refuse(event, f"more than {_DEEPEST} levels inside each other")
        if kind == "seq":
            return [self._value(inner, depth + 1) for inner in iter(self._next, None)]
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in iter(self._next, None):
            if isinstance(event, yaml.ScalarEvent):
                _scalar(event)  # which checks it
                key = event.value
            else:
                key = self._value(event, depth + 1)
            if not isinstance(key, str):
                _refuse(event, f"a key is text, not {type(key).__name__}")
            value = self._value(next(self._events), depth + 1)
            if key == "<<" and not event.style:
                for other in value if isinstance(value, list) else [value]:
                    if not isinstance(other, dict):
                        _refuse(event, "a merge key (<<) takes a mapping, or a list of them")
                    merged = other | merged
            elif key in own:
                _refuse(event, f"{key!r} appears twice")
            else:
                own[key] = value
        return merged | own

    def _next(self) -> Any:
        """The next event of a sequence or a mapping; None at its end."""
        event = next(self._events)
        return None if isinstance(event, yaml.CollectionEndEvent) else event


def _scalar(event: Any) -> Any:
    text: str = event.value
    kind = (event.tag or "").removeprefix(_TAG)
    if kind not in ("", "!", "str", "null", "bool", "int", "float"):
        _refuse_tag(event)
    if kind in ("!", "str") or (not kind and event.style):  # in quotation marks, or a block
        return text
    value = _plain(event, text)
    names = {"null": "NoneType", "bool": "bool", "int": "int", "float": "float"}
    if kind and type(value).__name__ != names[kind]:
        _refuse(event, f"{text[:40]!r} is no {kind}")
    return value


def _plain(event: Any, text: str) -> Any:
    """Return the value that people mean by a text without quotation marks."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        if math.isfinite(value := float(text)):
            return value
        _refuse(event, f"{text[:40]} is not a finite number")
    return text


def _refuse_tag(event: Any) -> NoReturn:
    _refuse(event, f"the tag {event.tag!r} is refused: only plain values are read")


def _refuse(event: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def parse_yaml(text: str, where: str) -> Any:
    """Read a text as YAML.

    Args:
        text: a single document.
        where: its source, for messages.

    Raises:
        ConfigurationError: it is not YAML, too large, or has a repeated key or something other than plain values.

    Examples:
        >>> parse_yaml("{retrievers: [bm25], depth: 50, language: no}", "settings.yaml")
        {'retrievers': ['bm25'], 'depth': 50, 'language': 'no'}
    """
    if len(text) > _LONGEST:
        raise ConfigurationError(f"{where} is longer than {_LONGEST >> 20} MiB, which is too long for a configuration")
    if (surrogate := find_lone_surrogate(text)) is not None:
        raise ConfigurationError(f"{where}: {surrogate} is half of a surrogate pair, which is not text")
    try:
        return _Reader(yaml.parse(text, yaml.CSafeLoader)).document()
    except yaml.YAMLError as error:
        line, reason = "", str(error).splitlines()[0]
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
            line, reason = f", line {error.problem_mark.line + 1}", error.problem or reason
        raise ConfigurationError(f"{where}{line}: {reason}") from None


def read_yaml(path: str | Path) -> Config:
    """Read a configuration file.

    Raises:
        SourceError: it does not exist or cannot be read.
        ConfigurationError: it is not YAML, not a mapping, too large, or has a repeated key or other than plain values.

    Examples:
        >>> read_yaml("benchmark.yaml")["corpus"]
        {'loader': 'jsonl', 'path': 'animals.jsonl'}
    """
    file = Path(path)
    try:
        with explain_file_limit(file), file.open("rb") as opened:
            text = opened.read(_LONGEST + 1).decode("utf-8")
    except FileNotFoundError:
        raise SourceError(f"there is no configuration file at {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read: {error}") from None
    content = parse_yaml(text, str(file))
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{file} holds {'nothing' if content is None else type(content).__name__}, not a mapping of settings"
        )
    return content


def check_keys(settings: Config, valid: Iterable[str], required: Iterable[str], where: str) -> None:
    """Raise :class:`ConfigurationError` for a key that is unknown, or one that is missing.

    Examples:
        >>> check_keys({"path": "a.txt"}, valid=["path", "encoding"], required=["path"], where="corpus")
    """
    known = list(valid)
    for key in settings:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key {key!r}; {nearest(str(key), known)}")
    missing = [key for key in required if key not in settings]
    if missing:
        raise ConfigurationError(f"{where}: {', '.join(map(repr, missing))} missing; keys there can be: {', '.join(known)}")
