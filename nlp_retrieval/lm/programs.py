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

from pydantic import BaseModel, TypeAdapter, ValidationError

from nlp_retrieval.core.components.component import digest_of_key
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError
from nlp_retrieval.lm.endpoint import first_fault


class _Field(BaseModel):
    prefix: str
    description: str


class _Signature(BaseModel):
    instructions: str
    fields: list[_Field]


class _Predictor(BaseModel):
    """What is read of a predictor's state; DSPy would set whatever else stands in a file."""

    signature: _Signature
    demos: list[dict[str, Any]]


_PREDICTORS = TypeAdapter(dict[str, _Predictor])
_EMPTY: dict[str, Any] = {"lm": None, "traces": [], "train": []}


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program as read from its file, or what an optimiser made of a program.

    Args:
        path: path of the file.
        state: state of each predictor by its name.
        fingerprint: SHA-256 of the file, or of the program.

    Raises:
        SourceError: the file is missing or not JSON.
        ConfigurationError: it does not end in ``.json``, or holds the state of another program, or of none.
        OutputError: it cannot be written.

    Examples:
        >>> import dspy
        >>> CompiledProgram.of(dspy.Predict("question -> answer")).write("answer.json")
        >>> CompiledProgram.read("answer.json").load_into(dspy.Predict("question -> answer"))
    """

    path: Path
    state: dict[str, Any]
    fingerprint: str

    @classmethod
    def of(cls, program: Any) -> CompiledProgram:
        """Return the state of a program, without its model."""
        state = {name: predictor.dump_state() | _EMPTY for name, predictor in program.named_predictors()}
        return cls(Path(type(program).__name__), state, fingerprint_of_program(program))

    @classmethod
    def read(cls, path: str | Path) -> CompiledProgram:
        """Read a file that :meth:`write` or ``dspy.Module.save`` wrote."""
        file = _json_path(path)
        try:
            content = file.read_bytes()
            state = parse_json(content)
        except FileNotFoundError:
            raise SourceError(f"there is no compiled program at {file}") from None
        except (OSError, ValueError) as error:
            raise SourceError(f"{file} is not a compiled program: {error}") from None
        if isinstance(state, dict):
            state.pop("metadata", None)
        try:
            state = {name: predictor.model_dump() | _EMPTY for name, predictor in _PREDICTORS.validate_python(state).items()}
        except ValidationError as error:
            raise ConfigurationError(
                f"{file} is not the state of a DSPy program ({first_fault(error)}); pass a file that optimize or "
                "dspy.Module.save wrote"
            ) from None
        return cls(file, state, f"sha256:{hashlib.sha256(content).hexdigest()}")

    def write(self, path: str | Path) -> None:
        """Write it as JSON, atomically, in the form that ``dspy.Module.load`` reads too."""
        from dspy.utils.saving import get_dependency_versions

        file = _json_path(path)
        content = self.state | {"metadata": {"dependency_versions": get_dependency_versions()}}
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())
        except OSError as error:
            raise OutputError(f"the program cannot be written to {file}: {error}") from error

    def load_into(self, program: Any) -> None:
        """Load the state into a program that it fits; the model that the program calls stays unchanged."""
        predictors = dict(program.named_predictors())
        if set(self.state) != set(predictors):
            raise ConfigurationError(
                f"{self.path} was compiled for another program: it has {sorted(self.state)}, not {sorted(predictors)}"
            )
        for name, predictor in predictors.items():
            state, fields = self.state[name], predictor.signature.dump_state()["fields"]
            there, here = ([each["prefix"] for each in some] for some in (state["signature"]["fields"], fields))
            demonstrated = {key for demo in state["demos"] for key in demo} - {"augmented"}
            # an optimiser may rewrite the prefix of the last field (COPRO does), but of no other
            if here[:-1] != there[:-1] or len(here) != len(there) or not demonstrated <= set(predictor.signature.fields):
                raise ConfigurationError(
                    f"{self.path} was compiled for another signature: the fields of {name!r} there are {there} (in "
                    f"demonstrations {sorted(demonstrated)}), here {here}"
                )
        for name, predictor in predictors.items():
            predictor.load_state(copy.deepcopy(self.state[name]))


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
    return digest_of_key(state).hex()


def _json_path(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix != ".json":
        raise ConfigurationError(f"{file} does not end in .json; compiled programs are kept as JSON only")
    return file
