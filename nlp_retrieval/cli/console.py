"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

from nlp_retrieval.errors import ConfigurationError


def say(message: str) -> None:
    """Write a line to standard error."""
    typer.echo(message, err=True)


def parse_options(options: Sequence[str]) -> dict[str, Any]:
    """Turn ``key=value`` words into parameters; a value is read as JSON where it is JSON, else as text.

    Raises:
        ConfigurationError: a word has no ``=``.
    """
    parsed: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{option!r} is no key=value")
        try:
            parsed[key.strip()] = json.loads(value)
        except ValueError:
            parsed[key.strip()] = value
    return parsed


def parse_component(text: str) -> dict[str, Any]:
    """Turn ``name`` or ``name:key=value,key=value`` into the settings of a component."""
    name, _, options = text.partition(":")
    return {"name": name} | parse_options([option for option in options.split(",") if option])


def megabytes(n_bytes: int) -> str:
    """Return a size for people."""
    return f"{n_bytes / 1e6:,.1f} MB"
