"""Compiled programs are JSON, fit the program they were made for, and bring no model with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.lm.programs import CompiledProgram, fingerprint_of_program
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter


def compiled() -> Decomposer:
    program = Decomposer()
    program.decompose.signature = program.decompose.signature.with_instructions("Name what is to be looked up. Ünïcödé.")
    program.decompose.demos = [dspy.Example(augmented=True, claim="A and B", phrases=["A", "B"])]
    return program


def test_a_program_comes_back_as_it_was(tmp_path):
    saved, loaded = compiled(), Decomposer()
    CompiledProgram.of(saved).write(tmp_path / "deep" / "program.json")
    CompiledProgram.read(tmp_path / "deep" / "program.json").load_into(loaded)
    assert loaded.decompose.signature.instructions == saved.decompose.signature.instructions
    assert [dict(demo) for demo in loaded.decompose.demos] == [dict(demo) for demo in saved.decompose.demos]
    assert fingerprint_of_program(loaded) == fingerprint_of_program(saved) != fingerprint_of_program(Decomposer())


def test_the_model_in_a_file_is_not_taken_up(tmp_path):
    program = compiled()
    program.decompose.lm = dspy.LM("openai/other", api_base="http://elsewhere/v1", api_key="sk-" + "x" * 30)
    program.save(tmp_path / "theirs.json")
    CompiledProgram.of(program).write(tmp_path / "ours.json")
    assert "elsewhere" not in (tmp_path / "ours.json").read_text()
    for name in ("ours.json", "theirs.json"):
        loaded = Decomposer()
        CompiledProgram.read(tmp_path / name).load_into(loaded)
        assert loaded.decompose.lm is None


class Other(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decompose = dspy.Predict("claim, context -> phrases")


class Two(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decompose, self.write = dspy.Predict("claim -> phrases"), dspy.Predict("query -> passage")


def edit(path: Path, change: Any) -> None:
    state = json.loads(path.read_text())
    change(state["decompose"])
    path.write_text(json.dumps(state))


def test_no_file_and_no_json_are_errors_that_say_so(tmp_path):
    with pytest.raises(SourceError, match="there is no compiled program at"):
        CompiledProgram.read(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"decompose"')
    with pytest.raises(SourceError, match=r"half\.json is not a compiled program"):
        CompiledProgram.read(tmp_path / "half.json")


def test_the_program_of_another_is_refused(tmp_path):
    CompiledProgram.of(compiled()).write(tmp_path / "program.json")
    Other().save(tmp_path / "other.json")
    with pytest.raises(ConfigurationError, match=r"another signature.*'Context:'.*here \['Claim:', 'Phrases:'\]"):
        CompiledProgram.read(tmp_path / "other.json").load_into(Decomposer())
    PassageWriter().save(tmp_path / "writer.json")
    with pytest.raises(ConfigurationError, match=r"another program: it has \['write'\], not \['decompose'\]"):
        CompiledProgram.read(tmp_path / "writer.json").load_into(Decomposer())
    edit(tmp_path / "program.json", lambda state: state["demos"].append({"question": "?"}))
    with pytest.raises(ConfigurationError, match=r"in demonstrations \['claim', 'phrases', 'question'\]"):
        CompiledProgram.read(tmp_path / "program.json").load_into(Decomposer())


def test_what_is_no_state_of_a_predictor_is_refused_before_any_is_loaded(tmp_path, subtests: pytest.Subtests):
    CompiledProgram.of(two := Two()).write(file := tmp_path / "program.json")
    sound = json.loads(file.read_text())
    sound["decompose"]["signature"]["instructions"] = "Loaded."
    signature = sound["write"]["signature"]
    for change in [
        {"demos": 7},
        {"demos": ["x"]},
        {"signature": signature | {"instructions": 7}},
        {"signature": signature | {"fields": []}},
        {"signature": 5},
    ]:
        with subtests.test(change=change):
            file.write_text(json.dumps(sound | {"write": sound["write"] | change}))
            with pytest.raises(ConfigurationError, match=r"not the state of a DSPy program \(write.*; pass|another signature"):
                CompiledProgram.read(file).load_into(two)
            assert fingerprint_of_program(two) == fingerprint_of_program(Two())
    file.write_text(json.dumps(sound | {"write": sound["write"] | {"config": {"n": 2}, "forward": "x"}}))
    CompiledProgram.read(file).load_into(two)
    assert two.decompose.signature.instructions == "Loaded."
    assert (two.write.config, "forward" in vars(two.write)) == ({}, False)


def test_a_pickle_is_refused_by_its_name_unread(tmp_path):
    (tmp_path / "program.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(ConfigurationError, match="JSON only"):
        CompiledProgram.read(tmp_path / "program.pkl").load_into(Decomposer())
    with pytest.raises(ConfigurationError, match="JSON only"):
        CompiledProgram.of(Decomposer()).write(tmp_path / "program.pkl")
