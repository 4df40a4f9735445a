"""Error messages in the terms of their reader: Python, a YAML file, or the command line.

Messages are written for Python: ``pass encoding="latin-1"``, ``index again with replace=True``. Elsewhere, the caller rewrites
its settings. Only settings after such a verb, and the terms in ``_ELSEWHERE``, are changed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from nlp_retrieval.errors import RetrievalError

__all__ = ["in_yaml", "on_command_line", "said_in_yaml"]

_SETTING = re.compile(
    r"\b(?P<verb>pass|use|try|give|write|with) (?P<name>[a-z_]{2,40})="
    r"""(?P<value>"(?:[^"\\\n]|\\.){0,200}"|'(?:[^'\\\n]|\\.){0,200}'|\[[^\]\n]{0,400}\]|[A-Za-z0-9](?:[\w:/-]|\.(?=\w)){0,100}|\.{3}|)"""
)
_ELSEWHERE = {
    "index again with replace=True": (
        "remove the folder of the index and index again",
        "index again with --replace (nlp-retrieval index)",
    ),
    "pass replace=True": ("remove the folder", "index again with --replace (nlp-retrieval index)"),
    "pass lm=LanguageModel(...), or call dspy.configure(lm=...)": ("write lm: PROVIDER/MODEL", "pass lm=PROVIDER/MODEL"),
    "pass lm=LanguageModel(...)": ("write lm: PROVIDER/MODEL", "pass lm=PROVIDER/MODEL"),
}
"""Wording for a YAML file, and for a command that has no option of this name."""

_COMPONENTS = ("retriever", "reranker", "verifier", "answerer")
_PLAIN = {"None": "null", "True": "true", "False": "false", "": "..."}


def in_yaml(message: str) -> str:
    """Return a message with its settings as YAML keys; an index is discarded by removing its folder."""
    for python, (yaml, _) in _ELSEWHERE.items():
        message = message.replace(python, yaml)
    return _SETTING.sub(lambda setting: f"write {setting['name']}: {_as_json(setting['value'])}", message)


@contextmanager
def said_in_yaml() -> Iterator[None]:
    """Rewrite the settings in errors of the package as YAML keys.

    Examples:
        >>> from nlp_retrieval.core import build
        >>> with said_in_yaml():
        ...     searcher = build("retrievers", {"name": "bm25", "k1": 1.2})
    """
    try:
        yield
    except RetrievalError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (in_yaml(error.args[0]), *error.args[1:])
        raise


def on_command_line(message: str, options: Mapping[str, str], *, of_source: bool) -> str:
    """Return a message with its settings as options of a command; those of components in its YAML file become keys of the file.

    Args:
        message: as in Python.
        options: spelling of the command's parameters by name: ``--replace``, or the name of an argument.
        of_source: the message is about a file or database that a loader reads.
    """
    by_file = "config" in options and "retriever" not in options
    for python, (yaml, command_line) in _ELSEWHERE.items():
        if "replace" not in options or "replace" not in python:
            message = message.replace(python, yaml if by_file else command_line)

    def spelled(setting: re.Match[str]) -> str:
        verb, name, value = setting["verb"], setting["name"], setting["value"]
        if options.get(name, "").startswith("--") and (value == "True" or not by_file):
            return f"{verb} {options[name]}" + ("" if value == "True" else f" {_as_word(value)}")
        if of_source and "option" in options:
            if name in ("url", "path"):
                return f"{verb} {_as_word(value)} as the corpus"
            return f"{verb} -o {shlex.quote(f'{name}={_as_word(value)}')}"
        if by_file:
            return f"write {name}: {_as_json(value)}"
        if chosen := [options[component] for component in _COMPONENTS if component in options]:
            return f"{verb} {name}={_as_word(value)} in {' or '.join(chosen)}"
        return setting[0]

    return _SETTING.sub(spelled, message)


def _as_json(value: str) -> str:
    """A value of Python as JSON, which YAML reads too."""
    if value.startswith("'"):
        return json.dumps(value[1:-1], ensure_ascii=False).replace("\\\\", "\\")
    return _PLAIN.get(value, value)


def _as_word(value: str) -> str:
    """A Python value as the command line reads it: text without quotation marks, unless it would be read as something else."""
    text = _as_json(value)
    if text.startswith("['") and '"' not in text:
        return text.replace("'", '"')  # in single quotes on the command line
    if not text.startswith('"') or "\\" in text:
        return text
    try:
        json.loads(text[1:-1])
    except ValueError:
        return text if text[1:2] in ("[", "{") else text[1:-1]
    return text
