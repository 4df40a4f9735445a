"""Every claim gets its phrases or stays as it is, whatever the endpoint does; nothing ends a sweep."""

from __future__ import annotations

import json

import dspy
import pytest
from chat_server import asked, fields

from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.lm.programs import CompiledProgram
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter
from nlp_retrieval.processors.with_model import ClaimPhrases

CLAIMS = [f"red fox number {n} of blue whale" for n in range(8)]
HALVES = [[f"red fox number {n}"[: len("red fox number")], f"{n} of blue whale"] for n in range(8)]


def test_a_claim_becomes_the_phrases_of_the_answer(model):
    assert ClaimPhrases(model(), keep_query=False).process(CLAIMS) == HALVES


def test_no_more_phrases_than_asked_for_and_none_too_long(server, model):
    server.answer = lambda body: fields(phrases=[f"one two three {n}" for n in range(9)])
    assert ClaimPhrases(model(), keep_query=False, max_phrases=2, max_words=3).process(["a claim"]) == [["one two three"]]
    assert ClaimPhrases(model(), keep_query=False, max_phrases=2).process(["a claim"]) == [
        ["one two three 0", "one two three 1"]
    ]


UNUSABLE = ["", "[[ ## phrases ## ]]\n\n", fields(phrases=[]), fields(phrases=["a claim"]), "[[ ## completed ## ]]"]


@pytest.mark.parametrize("answer", UNUSABLE)
def test_an_answer_that_cannot_be_used_leaves_the_claim_with_one_warning_that_counts(server, model, answer):
    server.answer = lambda body: fields(phrases=["x y"]) if asked(body, "claim").startswith("good") else answer
    lm = model()
    with pytest.warns(RetrievalWarning, match=r"claim_phrases: no usable answer.*2 of 3 queries.*2 times") as caught:
        found = ClaimPhrases(lm, keep_query=False).process(["a claim", "good claim", "A CLAIM"])
    assert found == [["a claim"], ["x y"], ["A CLAIM"]]
    assert len(caught) == 1
    assert lm.counts.degraded == 2


# compiled programs


def compiled(instructions: str) -> Decomposer:
    program = Decomposer()
    program.decompose.signature = program.decompose.signature.with_instructions(instructions)
    program.decompose.demos = [dspy.Example(claim="A and B", phrases=["A", "B"])]
    return program


def test_a_compiled_program_asks_with_its_instructions_and_demonstrations(server, model, tmp_path):
    CompiledProgram.of(compiled("Name what is to be looked up.")).write(tmp_path / "program.json")
    plain, processor = (
        ClaimPhrases(model(), keep_query=False),
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "program.json"),
    )
    assert plain.process(["red fox"]) == processor.process(["red fox"]) == [["red", "fox"]]
    first, second = server.bodies
    assert "Name what is to be looked up." not in json.dumps(first)
    assert "Name what is to be looked up." in second["messages"][0]["content"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]


def test_a_program_that_is_missing_or_of_another_signature_is_an_error_before_any_call(server, model, tmp_path):
    with pytest.raises(SourceError, match="no compiled program"):
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "none.json")
    CompiledProgram.of(PassageWriter()).write(tmp_path / "writer.json")
    with pytest.raises(ConfigurationError, match="another program"):
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "writer.json")
    assert server.calls == 0
