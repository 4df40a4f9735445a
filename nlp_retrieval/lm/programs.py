"""Compiled DSPy programs as JSON: written, checked against the program that is to take them, and loaded. Never pickle.

A component reads its file once, when it is made: what it runs is what its fingerprint says, whatever becomes of the file.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError

_KEYS = frozenset({"traces", "train", "demos", "signature", "lm", "fields"})


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program as its file held it.

    Args:
        path: of the file.
        state: by the names of predictors.
        fingerprint: SHA-256 of the file.
    """

    path: Path
    state: dict[str, Any]
    fingerprint: str


def fingerprint_of_program(program: Any) -> str:
    """Of what a program adds to a prompt: its instructions, fields and demonstrations."""
    state = {name: _essence(predictor) for name, predictor in program.named_predictors()}
    return hashlib.sha256(canonical_json(state).encode("utf-8", "surrogatepass")).hexdigest()


def save_program(program: Any, path: str | Path) -> None:
    """Write the compiled state of a program as JSON, atomically, in the form that ``dspy.Module.load`` reads too.

    Raises:
        ConfigurationError: the name does not end in ``.json``.
        OutputError: the file cannot be written.
    """
    from dspy.utils.saving import get_dependency_versions

    file = _json_path(path)
    state = {name: _without_model(predictor.dump_state()) for name, predictor in program.named_predictors()}
    content = state | {"metadata": {"dependency_versions": get_dependency_versions()}}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())
    except OSError as error:
        raise OutputError(f"the program cannot be written to {file}: {error}") from error


def read_program(path: str | Path, fields: Mapping[str, Sequence[str]] | None = None) -> CompiledProgram:
    """Read a compiled program.

    Args:
        path: of the JSON file.
        fields: of the program that is to take it, by the names of its predictors; None: they are not compared yet.

    Raises:
        SourceError: the file is missing or is no JSON.
        ConfigurationError: it is no state of a DSPy program, or that of another one.
    """
    file = _json_path(path)
    try:
        content = file.read_bytes()
        state = parse_json(content)
    except FileNotFoundError:
        raise SourceError(f"there is no compiled program at {file}") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is no compiled program: {error}") from None
    if not isinstance(state, dict) or not all(_is_state(value) for key, value in state.items() if key != "metadata"):
        raise ConfigurationError(f"{file} is no state of a DSPy program; it is to be what optimize or dspy.Module.save wrote")
    predictors = {key: value for key, value in state.items() if key != "metadata"}
    compiled = CompiledProgram(file, predictors, f"sha256:{hashlib.sha256(content).hexdigest()}")
    if fields is not None:
        _require_fit(compiled, {name: {one: _prefix_of(one) for one in ones} for name, ones in fields.items()})
    return compiled


def load_program(program: Any, compiled: CompiledProgram | str | Path) -> None:
    """Give a program a compiled state, or the one in a file. Which model it calls is not taken from there.

    Raises:
        SourceError: the file is missing or is no JSON.
        ConfigurationError: it holds the state of another program.
    """
    found = compiled if isinstance(compiled, CompiledProgram) else read_program(compiled)
    predictors = dict(program.named_predictors())
    fields = {
        name: dict(zip(predictor.signature.fields, _prefixes(predictor.signature.dump_state()), strict=True))
        for name, predictor in predictors.items()
    }
    _require_fit(found, fields)
    for name, predictor in predictors.items():
        predictor.load_state(_without_model(copy.deepcopy(found.state[name])))


def _require_fit(compiled: CompiledProgram, fields: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse the state of another program.

    Args:
        compiled: what was read.
        fields: by the names of predictors, the prefix of each field by its name, in order.
    """
    path, state = compiled.path, compiled.state
    if set(state) != set(fields):
        raise ConfigurationError(f"{path} was compiled for another program: it has {sorted(state)}, not {sorted(fields)}")
    for name, prefixes in fields.items():
        wanted, found = list(prefixes.values()), _prefixes(state[name]["signature"])
        # an optimiser may rewrite the prefix of the last field (COPRO does), no other
        if wanted[:-1] != found[:-1] or len(wanted) != len(found):
            raise ConfigurationError(
                f"{path} was compiled for another signature: the fields of {name!r} there are {found}, here {wanted}"
            )
        strange = sorted({key for demo in state[name]["demos"] for key in demo} - {*prefixes, "augmented"})
        if strange:
            raise ConfigurationError(
                f"{path} was compiled for another signature: its demonstrations have the fields {strange}, "
                f"{name!r} has {sorted(prefixes)}"
            )


def _essence(predictor: Any) -> dict[str, Any]:
    state = predictor.dump_state()
    return {"signature": state["signature"], "demos": state["demos"]}


def _without_model(state: dict[str, Any]) -> dict[str, Any]:
    return state | {"lm": None, "traces": [], "train": []}


def _is_state(state: Any) -> bool:
    if not isinstance(state, dict) or not {"signature", "demos"} <= set(state) <= _KEYS:
        return False
    signature, demos = state["signature"], state["demos"]
    return (
        isinstance(demos, list)
        and all(isinstance(demo, dict) for demo in demos)
        and isinstance(signature, dict)
        and isinstance(signature.get("instructions"), str)
        and isinstance(signature.get("fields"), list)
        and all(isinstance(one, dict) and {"prefix", "description"} <= set(one) for one in signature["fields"])
    )


def _prefix_of(field: str) -> str:
    """As DSPy writes it for a name of one word in lower case; telling needs no import of DSPy, which takes a second."""
    return f"{field.capitalize()}:"


def _prefixes(signature: dict[str, Any]) -> list[str]:
    return [one["prefix"] for one in signature["fields"]]


def _json_path(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix != ".json":
        raise ConfigurationError(f"{file} does not end in .json; compiled programs are kept as JSON only")
    return file
