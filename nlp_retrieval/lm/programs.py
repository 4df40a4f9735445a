"""Compiled DSPy programs as JSON: written, checked against the program that loads them, and loaded. Never pickle.

A component reads its file once, when it is created, so its program matches its fingerprint even if the file changes later.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError

_KEYS = frozenset({"traces", "train", "demos", "signature", "lm", "fields"})
_WRITTEN_BY = "pass a file that optimize or dspy.Module.save wrote"


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program as read from its file.

    Args:
        path: path of the file.
        state: state of each predictor by its name.
        fingerprint: SHA-256 of the file.

    Examples:
        >>> import dspy
        >>> save_program(dspy.Predict("question -> answer"), "answer.json")
        >>> read_program("answer.json").path
        PosixPath('answer.json')
    """

    path: Path
    state: dict[str, Any]
    fingerprint: str


def fingerprint_of_program(program: Any) -> str:
    """Return a hash of everything that a program adds to a prompt: its instructions, fields and demonstrations.

    Examples:
        >>> import dspy
        >>> program = dspy.Predict("question -> answer")
        >>> fingerprint_of_program(program) == fingerprint_of_program(dspy.Predict("question -> answer"))
        True
    """
    states = {name: predictor.dump_state() for name, predictor in program.named_predictors()}
    state = {name: {key: whole[key] for key in ("signature", "demos")} for name, whole in states.items()}
    return hashlib.sha256(canonical_json(state).encode("utf-8", "surrogatepass")).hexdigest()


def save_program(program: Any, path: str | Path) -> None:
    """Write the compiled state of a program as JSON, atomically, in the form that ``dspy.Module.load`` reads too.

    Raises:
        ConfigurationError: the name does not end in ``.json``.
        OutputError: the file cannot be written.

    Examples:
        >>> import dspy
        >>> save_program(dspy.Predict("question -> answer"), "answer.json")
        >>> Path("answer.json").exists()
        True
    """
    from dspy.utils.saving import get_dependency_versions

    file = _json_path(path)
    content = _state_of(program) | {"metadata": {"dependency_versions": get_dependency_versions()}}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())
    except OSError as error:
        raise OutputError(f"the program cannot be written to {file}: {error}") from error


def read_program(path: str | Path) -> CompiledProgram:
    """Read a compiled program.

    Args:
        path: path of the JSON file.

    Raises:
        SourceError: the file is missing or not JSON.
        ConfigurationError: it is not the state of a DSPy program.

    Examples:
        >>> import dspy
        >>> save_program(dspy.Predict("question -> answer"), "answer.json")
        >>> len(read_program("answer.json").fingerprint)
        71
    """
    file = _json_path(path)
    try:
        content = file.read_bytes()
        state = parse_json(content)
    except FileNotFoundError:
        raise SourceError(f"there is no compiled program at {file}") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is not a compiled program: {error}") from None
    predictors = {key: value for key, value in state.items() if key != "metadata"} if isinstance(state, dict) else {"": None}
    if not all(isinstance(value, dict) for value in predictors.values()):
        raise ConfigurationError(f"{file} is not the state of a DSPy program; {_WRITTEN_BY}")
    return CompiledProgram(file, predictors, f"sha256:{hashlib.sha256(content).hexdigest()}")


def compiled_from(program: Any) -> CompiledProgram:
    """Return what an optimiser made of a program, as its file would hold it.

    Examples:
        >>> import dspy
        >>> load_program(dspy.Predict("question -> answer"), compiled_from(dspy.Predict("question -> answer")))
    """
    return CompiledProgram(Path(type(program).__name__), _state_of(program), fingerprint_of_program(program))


def _state_of(program: Any) -> dict[str, Any]:
    return {name: _without_model(predictor.dump_state()) for name, predictor in program.named_predictors()}


def load_program(program: Any, compiled: CompiledProgram | str | Path) -> None:
    """Load a compiled state, or the one in a file, into a program. The model that the program calls stays unchanged.

    Raises:
        SourceError: the file is missing or not JSON.
        ConfigurationError: it holds the state of another program.

    Examples:
        >>> import dspy
        >>> save_program(dspy.Predict("question -> answer"), "answer.json")
        >>> program = dspy.Predict("question -> answer")
        >>> load_program(program, "answer.json")
    """
    loaded = compiled if isinstance(compiled, CompiledProgram) else read_program(compiled)
    predictors = dict(program.named_predictors())
    if set(loaded.state) != set(predictors):
        raise ConfigurationError(
            f"{loaded.path} was compiled for another program: it has {sorted(loaded.state)}, not {sorted(predictors)}"
        )
    for name, predictor in predictors.items():
        _require_fit(loaded, name, predictor)
    for name, predictor in predictors.items():
        predictor.load_state(_without_model(copy.deepcopy(loaded.state[name])))


def _require_fit(compiled: CompiledProgram, name: str, predictor: Any) -> None:
    """Refuse what is no state of a predictor, or that of one with other fields."""
    state, no_state = compiled.state[name], f"{compiled.path} is not the state of a DSPy program"
    try:
        written, demos = state["signature"], state["demos"]
        sound = _KEYS.issuperset(state) and isinstance(demos, list) and all(isinstance(demo, dict) for demo in demos)
        sound = sound and all(isinstance(entry["prefix"], str) and "description" in entry for entry in written["fields"])
        says_what_to_do = isinstance(written["instructions"], str)
        if sound and says_what_to_do:
            copy.copy(predictor).load_state(_without_model(copy.deepcopy(state)))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{no_state}: {error!r:.100}") from None
    if not says_what_to_do:
        raise ConfigurationError(f"{no_state}: its instructions are no text")
    if not sound:
        raise ConfigurationError(f"{no_state}; {_WRITTEN_BY}")
    demonstrated = {key for demo in demos for key in demo} - {"augmented"}
    present, wanted = _prefixes(written), _prefixes(predictor.signature.dump_state())
    # an optimiser may rewrite the prefix of the last field (COPRO does), but of no other
    if wanted[:-1] != present[:-1] or len(wanted) != len(present) or not demonstrated <= set(predictor.signature.fields):
        raise ConfigurationError(
            f"{compiled.path} was compiled for another signature: the fields of {name!r} there are {present} (in "
            f"demonstrations {sorted(demonstrated)}), here {wanted}"
        )


def _without_model(state: dict[str, Any]) -> dict[str, Any]:
    return state | {"lm": None, "traces": [], "train": []}


def _prefixes(signature: dict[str, Any]) -> list[str]:
    return [entry["prefix"] for entry in signature["fields"]]


def _json_path(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix != ".json":
        raise ConfigurationError(f"{file} does not end in .json; compiled programs are kept as JSON only")
    return file
