"""Configuration files: YAML that holds registry names and values, and nothing that runs.

Plain YAML scalars, lists and mappings only; a tag that would make an object is refused by the safe loader.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from nlp_retrieval.core.component import Config
from nlp_retrieval.errors import ConfigurationError, SourceError, nearest


class _Loader(yaml.SafeLoader):
    """The safe loader, without silent overwriting: a key that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Hashable, yaml.Node] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen[key] = key_node
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Config:
    """Read a configuration file.

    Raises:
        SourceError: it does not exist or cannot be read.
        ConfigurationError: it is no YAML, no mapping, holds a key twice, or a tag.
    """
    file = Path(path)
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise SourceError(f"there is no configuration file at {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read: {error}") from None
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 -- a subclass of the safe loader
    except (yaml.YAMLError, RecursionError) as error:
        place, reason = "", str(error).splitlines()[0]
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
            place, reason = f", line {error.problem_mark.line + 1}", error.problem or reason
        raise ConfigurationError(f"{file}{place}: {reason}") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file} holds {type(content).__name__}, not a mapping of settings")
    return content


def check_keys(settings: Config, valid: Iterable[str], required: Iterable[str], where: str) -> None:
    """Raise :class:`ConfigurationError` for a key that is unknown, or one that is missing."""
    known = list(valid)
    for key in settings:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key {key!r}; {nearest(str(key), known)}")
    missing = [key for key in required if key not in settings]
    if missing:
        raise ConfigurationError(f"{where}: {', '.join(map(repr, missing))} missing; keys there can be: {', '.join(known)}")
