"""Configuration files: YAML with registry names and values, and nothing executable.

It accepts what JSON can hold: texts, finite numbers, truth values, null, lists and mappings. Tags for anything else are
refused, and a date is text. Aliases are allowed as long as the configuration, with its aliases written out, has a reasonable
size; a larger one is refused before expansion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import yaml
from yaml.constructor import ConstructorError

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import ConfigurationError, SourceError, nearest

_LONGEST = 2**20
_MOST_VALUES = 1_000_000
_DEEPEST = 100
"""Limits of a file: its bytes, its values once its aliases are written out, and its depth."""

_STANDARD = "tag:yaml.org,2002:"
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """The safe loader, restricted to what JSON can hold; a repeated key is an error, not silently overwritten."""

    yaml_constructors: ClassVar[dict[str | None, Callable[..., Any]]] = {
        _STANDARD + kind: yaml.SafeLoader.yaml_constructors[_STANDARD + kind] for kind in _KINDS
    }

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RecursionError
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _check_size(node)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Hashable, yaml.Node] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise ConstructorError(None, None, f"{key!r} appears twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen[key] = key_node
        return super().construct_mapping(node, deep)


def _refused(_: _Loader, node: yaml.Node) -> NoReturn:
    raise ConstructorError(None, None, f"the tag {node.tag!r} is refused: only plain values are read", node.start_mark)


def _checked(kind: str) -> Callable[[_Loader, yaml.Node], Any]:
    """A constructor whose errors give the line."""
    construct = yaml.SafeLoader.yaml_constructors[_STANDARD + kind]

    def checked(loader: _Loader, node: yaml.Node) -> Any:
        try:
            value = construct(loader, node)
        except (ValueError, LookupError):  # an empty int is an IndexError
            raise ConstructorError(None, None, f"{str(node.value)[:40]!r} is no {kind}", node.start_mark) from None
        if (surrogate := find_lone_surrogate(value)) is not None:
            raise ConstructorError(None, None, f"{surrogate} is half of a surrogate pair, which is not text", node.start_mark)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConstructorError(None, None, f"{node.value} is not a finite number", node.start_mark)
        return value

    return checked


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_STANDARD}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(None, _refused)
for _kind in ("bool", "int", "float", "str"):
    _Loader.add_constructor(_STANDARD + _kind, _checked(_kind))


def _check_size(root: yaml.Node) -> None:
    """Refuse aliases that contain themselves, too many values, and too deep nesting."""
    sizes: dict[yaml.Node, int] = {}
    depths: dict[yaml.Node, int] = {}
    entered: set[yaml.Node] = set()
    pending = [root]
    while pending:
        node = pending[-1]
        children = _children(node)
        if node not in sizes and node not in entered:
            entered.add(node)
            for inner in children:
                if inner in entered and inner not in sizes:
                    raise ConstructorError(None, None, "an alias refers to a value that contains it", inner.start_mark)
                if inner not in sizes:
                    pending.append(inner)
            continue
        pending.pop()
        if node not in sizes:
            sizes[node] = 1 + sum(sizes[inner] for inner in children)
            depths[node] = 1 + max((depths[inner] for inner in children), default=0)
            if depths[node] > _DEEPEST:
                raise ConstructorError(None, None, f"more than {_DEEPEST} levels inside each other", node.start_mark)
            if sizes[node] > _MOST_VALUES:
                raise ConstructorError(
                    None, None, f"with its aliases written out this is more than {_MOST_VALUES:,} values", node.start_mark
                )


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def parse_yaml(text: str, where: str) -> Any:
    """Read a text as YAML.

    Args:
        text: a single document.
        where: its source, for messages.

    Raises:
        ConfigurationError: it is not YAML, too large, or has a repeated key or something other than plain values.

    Examples:
        >>> parse_yaml("{retrievers: [bm25], depth: 50}", "settings.yaml")
        {'retrievers': ['bm25'], 'depth': 50}
    """
    if len(text) > _LONGEST:
        raise ConfigurationError(f"{where} is longer than {_LONGEST >> 20} MiB, which is too long for a configuration")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 -- a subclass of the safe loader
    except RecursionError:
        raise ConfigurationError(f"{where}: more than {_DEEPEST} levels inside each other") from None
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
        with file.open("rb") as opened:
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
