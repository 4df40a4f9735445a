"""Configuration files: YAML with registry names and values, and nothing executable.

It accepts what JSON can hold. The only words with a meaning of their own are ``true``, ``false``, ``null`` and ``~``, and only
decimal numbers are numbers: ``no``, ``on``, ``010``, ``12:30`` and dates are text, and so is every key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.opening import open_bytes
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import ConfigurationError, SourceError

_LONGEST = 2**20
_MOST_VALUES = 1_000_000
_DEEPEST = 100
"""Limits of a file: its characters, its values once its aliases are written out, and its depth."""

_TOO_DEEP = f"more than {_DEEPEST} levels inside each other"
_TAG = "tag:yaml.org,2002:"

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.")
"""A character that JSON writes as two escapes, which YAML does not know; or another escape."""

_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": (r"~|null|Null|NULL|", lambda _: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text[0] in "tT"),
    "int": (r"[-+]?(0|[1-9][0-9]*)", int),
    "float": (r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", float),
    "str": (r"[\s\S]*", str),
}
"""The form of each kind of value, and what makes it; a text without a tag is of the first kind whose form it has."""


class _Loader(yaml.CSafeLoader):
    """Finds the nodes of a text, and no other words and numbers in it than these."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 -- as its base has it


for _kind, (_form, _) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"(?:{_form})$"), None)


class _Values:
    """The values of nodes, which are counted, because aliases may repeat or nest them without end."""

    count = 0

    def of(self, node: yaml.Node, depth: int = 1) -> Any:
        """Return the value of a node."""
        self.count += 1
        if self.count > _MOST_VALUES:
            _refuse(node, f"with its aliases written out this is more than {_MOST_VALUES:,} values")
        if depth > _DEEPEST:
            _refuse(node, _TOO_DEEP)
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.of(inner, depth + 1) for inner in node.value]
        if isinstance(node, yaml.MappingNode) and kind == "map":
            mapping: dict[str, Any] = {}
            for key, value in node.value:
                if isinstance(self.of(key, depth + 1), list | dict):
                    _refuse(key, "a key is text, not a list or a mapping")
                if key.value == "<<" and not key.style:
                    _refuse(key, "merge keys (<<) are not read; write the settings out")
                if key.value in mapping:
                    _refuse(key, f"{key.value!r} appears twice")
                mapping[key.value] = self.of(value, depth + 1)
            return mapping
        if not isinstance(node, yaml.ScalarNode) or kind not in _SCALARS:
            _refuse(node, f"the tag {node.tag!r} is refused: only plain values are read")
        form, make = _SCALARS[kind]
        try:
            made = make(node.value) if re.fullmatch(form, node.value) else math.nan
        except ValueError:  # thousands of digits
            made = math.nan
        if isinstance(made, float) and not math.isfinite(made):
            _refuse(node, f"{node.value[:40]!r} is no {kind}, or too large")
        return made


def _refuse(node: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def parse_yaml(text: str, where: str) -> Any:
    """Read a text as YAML; ConfigurationError, which names its source, if it is not YAML or holds other than plain values.

    Examples:
        >>> parse_yaml("{retrievers: [bm25], depth: 50, language: no}", "settings.yaml")
        {'retrievers': ['bm25'], 'depth': 50, 'language': 'no'}
    """
    if len(text) > _LONGEST:
        raise ConfigurationError(f"{where} is longer than {_LONGEST >> 20} MiB, which is too long for a configuration")
    if (surrogate := find_lone_surrogate(text)) is not None:
        raise ConfigurationError(f"{where}: {surrogate} is half of a surrogate pair, which is not text")
    try:
        depth = 0
        for event in yaml.parse(text, _Loader):  # before nodes are made of it, which takes stack
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                _refuse(event, _TOO_DEEP)
        node = _Loader(text).get_single_node()
        return None if node is None else _Values().of(node)
    except yaml.YAMLError as error:
        line, reason = "", str(error).splitlines()[0]
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
            line, reason = f", line {error.problem_mark.line + 1}", error.problem or reason
        if type(error) is not yaml.MarkedYAMLError:  # as _refuse raises
            reason = f"not YAML: {reason}; check the start of lines (no tabs), and put a text with : # @ \\ in single quotes"
        raise ConfigurationError(f"{where}{line}: {reason}") from None


def read_yaml(path: str | Path) -> Config:
    """Read a configuration file; SourceError if it cannot be read, ConfigurationError if it is no mapping of plain values.

    Examples:
        >>> read_yaml("benchmark.yaml")["corpus"]
        {'loader': 'jsonl', 'path': 'animals.jsonl'}
    """
    try:
        with open_bytes(path) as file:
            text = file.read(_LONGEST + 1).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8") from None
    if str(path).endswith(".json"):
        text = _PAIR.sub(lambda match: match[0] if len(match[0]) == 2 else json.loads(f'"{match[0]}"'), text)
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        held = "nothing" if content is None else type(content).__name__
        raise ConfigurationError(f"{path} holds {held}, not a mapping of settings")
    return content
