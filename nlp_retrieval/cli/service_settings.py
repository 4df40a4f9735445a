"""Settings of ``serve`` from a file and from environment variables: a flag overrides a variable, and a variable the file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nlp_retrieval.errors import ConfigurationError, nearest

PREFIX = "NLP_RETRIEVAL_"
TOKEN = f"{PREFIX}TOKEN"

_OTHERS = frozenset({TOKEN, f"{PREFIX}TRUSTED_SERVERS"})
"""Variables of this prefix that are no settings of the service."""

_OF_KUBERNETES = ("SERVICE_HOST", "SERVICE_PORT", "PORT_")
"""How names begin that Kubernetes sets in every container, if a service is called nlp-retrieval; and PORT, with an address."""


def read_settings(context: Any, file: Path | None) -> Path | None:
    """Set the defaults of a command's options from the environment and a file; the callback of ``--config``.

    Args:
        context: of the command, as click has it.
        file: YAML with the names of options as keys; by default the one that the environment names.

    Raises:
        ConfigurationError: a name is no option, or a value cannot be used.
    """
    parameters = {
        name: parameter for parameter in context.command.params if (name := _name_of(parameter)) not in {"help", "check"}
    }
    variables = _variables(parameters)
    if file is None and "config" in variables:
        file = Path(variables.pop("config"))
    variables.pop("config", None)
    settings: dict[str, tuple[Any, str]] = {}
    if file is not None:
        settings |= {key: (value, f"{file}: {key}") for key, value in _of_file(file, parameters).items()}
    settings |= {key: (value, f"{PREFIX}{key.upper()}") for key, value in variables.items()}
    defaults = {}
    for key, (value, where) in settings.items():
        parameter = parameters[key]
        defaults[parameter.name] = _converted(parameter, context, value, where)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def is_given(context: Any, name: str) -> bool:
    """Return whether a parameter was given on the command line, by its name in Python."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _name_of(parameter: Any) -> str:
    """The name of a parameter in files: its longest option without dashes."""
    return str(max(parameter.opts, key=len)).lstrip("-").replace("-", "_")


def _variables(parameters: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for variable, value in os.environ.items():
        key = variable.removeprefix(PREFIX)
        if key == variable or variable in _OTHERS or key.startswith(_OF_KUBERNETES) or (key == "PORT" and "://" in value):
            continue
        if key.lower() not in parameters or key != key.upper():
            known = [PREFIX + name.upper() for name in parameters] + sorted(_OTHERS)
            raise ConfigurationError(f"the environment variable {variable} sets nothing; {nearest(variable, known)}")
        if value:
            found[key.lower()] = value
    return found


def _of_file(file: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    from nlp_retrieval.core.files.yaml_text import read_yaml

    content = read_yaml(file)
    known = parameters.keys() - {"config"}
    for key in content:
        if key == "token":
            raise ConfigurationError(f"{file}: put the token into a file of its own, named by token_file")
        if key not in known:
            raise ConfigurationError(f"{file}: unknown setting {key!r}; {nearest(str(key), known)}")
    return {key: value for key, value in content.items() if value is not None}


def _converted(parameter: Any, context: Any, value: Any, where: str) -> Any:
    """The value of an option, as if it had been given on the command line.

    Raises:
        ConfigurationError: it cannot be used; the message says where it stands.
    """
    if parameter.multiple:
        value = _words(value, where, of_variable=where.startswith(PREFIX))
    elif isinstance(value, list | dict):
        raise ConfigurationError(f"{where}: expected one value")
    elif isinstance(value, bool) and not getattr(parameter, "is_flag", False):
        raise ConfigurationError(f"{where}: {str(value).lower()} is no value of this setting")
    elif not isinstance(value, bool):
        value = str(value)
    try:
        return parameter.process_value(context, value)
    except Exception as error:  # click's, which typer has in a place of its own
        raise ConfigurationError(f"{where}: {getattr(error, 'message', None) or error}") from None


def _words(value: Any, where: str, *, of_variable: bool) -> list[str]:
    """The values of a repeatable option: a list, one value, a mapping (``set``), or words between spaces in a variable.

    A variable may also hold a list or a mapping in brackets, as the file does.
    """
    if of_variable:
        from nlp_retrieval.core.files.yaml_text import parse_yaml

        if not str(value).lstrip().startswith(("[", "{")):
            return str(value).split()
        value = parse_yaml(str(value), where)
    if isinstance(value, dict):
        return [f"{key}={inner if isinstance(inner, str) else json.dumps(inner)}" for key, inner in value.items()]
    words = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str | int | float) for word in words):
        raise ConfigurationError(f"{where}: expected a list of texts")
    return [str(word) for word in words]
