"""Compiled DSPy programs as JSON: written, checked against the program that is to take them, and loaded. Never pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from nlp_retrieval.core.checksums import sha256_of
from nlp_retrieval.core.component import canonical_json
from nlp_retrieval.core.durable import write_atomically
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError

_KEYS = frozenset({"traces", "train", "demos", "signature", "lm", "fields"})


def fingerprint_of_program(program: Any) -> str:
    """Of what a program adds to a prompt: its instructions, fields and demonstrations."""
    state = {name: _essence(predictor) for name, predictor in program.named_predictors()}
    return hashlib.sha256(canonical_json(state).encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint_of_file(path: str | Path) -> str:
    """SHA-256 of a compiled program's file, for the provenance of a run.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        return f"sha256:{sha256_of(Path(path))}"
    except OSError as error:
        raise SourceError(f"the compiled program {path} cannot be read: {error}") from None


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


def read_program(path: str | Path) -> dict[str, Any]:
    """Read the state of a compiled program.

    Raises:
        SourceError: the file is missing or is no JSON.
        ConfigurationError: it is no state of a DSPy program.
    """
    file = _json_path(path)
    try:
        state = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise SourceError(f"there is no compiled program at {file}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{file} is no compiled program: {error}") from None
    if not isinstance(state, dict) or not all(_is_state(value) for key, value in state.items() if key != "metadata"):
        raise ConfigurationError(f"{file} is no state of a DSPy program; it is to be what optimize or dspy.Module.save wrote")
    return {key: value for key, value in state.items() if key != "metadata"}


def load_program(program: Any, path: str | Path) -> None:
    """Give a program the compiled state in a file. Which model it calls is not taken from there.

    Raises:
        SourceError: the file is missing or is no JSON.
        ConfigurationError: it holds the state of another program.
    """
    state = read_program(path)
    predictors = dict(program.named_predictors())
    if set(state) != set(predictors):
        raise ConfigurationError(f"{path} was compiled for another program: it has {sorted(state)}, not {sorted(predictors)}")
    for name, predictor in predictors.items():
        wanted, found = _prefixes(predictor.signature.dump_state()), _prefixes(state[name]["signature"])
        # an optimiser may rewrite the prefix of the last field (COPRO does), no other
        if wanted[:-1] != found[:-1] or len(wanted) != len(found):
            raise ConfigurationError(
                f"{path} was compiled for another signature: the fields of {name!r} there are {found}, here {wanted}"
            )
        names = set(predictor.signature.fields) | {"augmented"}
        strange = sorted({key for demo in state[name].get("demos", []) for key in demo} - names)
        if strange:
            raise ConfigurationError(
                f"{path} was compiled for another signature: its demonstrations have the fields {strange}, "
                f"{name!r} has {sorted(predictor.signature.fields)}"
            )
    for name, predictor in predictors.items():
        predictor.load_state(_without_model(state[name]))


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


def _prefixes(signature: dict[str, Any]) -> list[str]:
    return [one["prefix"] for one in signature["fields"]]


def _json_path(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix != ".json":
        raise ConfigurationError(f"{file} does not end in .json; compiled programs are kept as JSON only")
    return file
