"""Compiled programs are JSON, fit the program they were made for, and bring no model with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.lm.programs import fingerprint_of_program, load_program, read_program, save_program
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter


def compiled() -> Decomposer:
    program = Decomposer()
    program.decompose.signature = program.decompose.signature.with_instructions("Name what is to be looked up. Ünïcödé.")
    program.decompose.demos = [dspy.Example(augmented=True, claim="A and B", phrases=["A", "B"])]
    return program


def test_a_program_comes_back_as_it_was(tmp_path):
    saved, loaded = compiled(), Decomposer()
    save_program(saved, tmp_path / "deep" / "program.json")
    load_program(loaded, tmp_path / "deep" / "program.json")
    assert loaded.decompose.signature.instructions == saved.decompose.signature.instructions
    assert [dict(demo) for demo in loaded.decompose.demos] == [dict(demo) for demo in saved.decompose.demos]
    assert fingerprint_of_program(loaded) == fingerprint_of_program(saved) != fingerprint_of_program(Decomposer())


def test_the_model_in_a_file_is_not_taken_up(tmp_path):
    program = compiled()
    program.decompose.lm = dspy.LM("openai/other", api_base="http://elsewhere/v1", api_key="sk-" + "x" * 30)
    program.save(tmp_path / "theirs.json")
    save_program(program, tmp_path / "ours.json")
    assert "elsewhere" not in (tmp_path / "ours.json").read_text()
    for name in ("ours.json", "theirs.json"):
        loaded = Decomposer()
        load_program(loaded, tmp_path / name)
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
        read_program(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"decompose"')
    with pytest.raises(SourceError, match=r"half\.json is not a compiled program"):
        read_program(tmp_path / "half.json")


def test_the_program_of_another_is_refused(tmp_path):
    save_program(compiled(), tmp_path / "program.json")
    Other().save(tmp_path / "other.json")
    with pytest.raises(ConfigurationError, match=r"another signature.*'Context:'.*here \['Claim:', 'Phrases:'\]"):
        load_program(Decomposer(), tmp_path / "other.json")
    PassageWriter().save(tmp_path / "writer.json")
    with pytest.raises(ConfigurationError, match=r"another program: it has \['write'\], not \['decompose'\]"):
        load_program(Decomposer(), tmp_path / "writer.json")
    edit(tmp_path / "program.json", lambda state: state["demos"].append({"question": "?"}))
    with pytest.raises(ConfigurationError, match=r"in demonstrations \['claim', 'phrases', 'question'\]"):
        load_program(Decomposer(), tmp_path / "program.json")


def test_instructions_that_are_no_text_are_refused(tmp_path):
    save_program(compiled(), tmp_path / "program.json")
    edit(tmp_path / "program.json", lambda state: state["signature"].update(instructions=7))
    with pytest.raises(ConfigurationError, match=r"not the state of a DSPy program: its instructions are no text"):
        load_program(Decomposer(), tmp_path / "program.json")


def test_what_is_no_state_of_a_predictor_is_refused_before_any_is_loaded(tmp_path, subtests: pytest.Subtests):
    save_program(two := Two(), tmp_path / "program.json")
    (tmp_path / "five.json").write_text('{"a": 5}')
    with pytest.raises(ConfigurationError, match=r"five\.json is not the state of a DSPy program; pass a file that"):
        read_program(tmp_path / "five.json")
    sound = read_program(tmp_path / "program.json")
    sound.state["decompose"]["signature"]["instructions"] = "Loaded."
    writes = sound.state["write"]
    for change in [
        {"config": {"n": 2}, "forward": "x"},
        {"demos": 7},
        {"demos": ["x"]},
        {"fields": 7},
        {"signature": writes["signature"] | {"instructions": 7}},
        {"signature": writes["signature"] | {"fields": []}},
    ]:
        with subtests.test(change=change):
            with pytest.raises(ConfigurationError, match=r"not the state of a DSPy program|another signature"):
                load_program(two, replace(sound, state=sound.state | {"write": writes | change}))
            assert fingerprint_of_program(two) == fingerprint_of_program(Two())
            assert two.write.config == {}
    load_program(two, sound)
    assert two.decompose.signature.instructions == "Loaded."


def test_a_pickle_is_refused_by_its_name_unread(tmp_path):
    (tmp_path / "program.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(ConfigurationError, match="JSON only"):
        load_program(Decomposer(), tmp_path / "program.pkl")
    with pytest.raises(ConfigurationError, match="JSON only"):
        save_program(Decomposer(), tmp_path / "program.pkl")
