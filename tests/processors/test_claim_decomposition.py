"""Every claim gets its phrases or stays as it is, whatever the endpoint does; nothing ends a sweep."""

from __future__ import annotations

import json
import threading
from typing import Any

import dspy
import pytest
from chat_server import asked, fields

from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.lm.counting import CallCounts
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import save_program
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter
from nlp_retrieval.processors.with_model import ClaimPhrases

CLAIMS = [f"red fox number {n} of blue whale" for n in range(8)]
HALVES = [[f"red fox number {n}"[: len("red fox number")], f"{n} of blue whale"] for n in range(8)]


def test_a_claim_becomes_the_phrases_of_the_answer(model):
    assert ClaimPhrases(model(), keep_query=False).process(CLAIMS) == HALVES


def test_the_claim_itself_comes_first_where_it_is_included(model):
    found = ClaimPhrases(model(), keep_query=True).process(CLAIMS)
    assert found == [[claim, *halves] for claim, halves in zip(CLAIMS, HALVES, strict=True)]


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
    with pytest.warns(RetrievalWarning, match=r"claim_decomposition: no usable answer.*2 of 3 queries.*2 times") as caught:
        found = ClaimPhrases(lm, keep_query=False).process(["a claim", "good claim", "A CLAIM"])
    assert found == [["a claim"], ["x y"], ["A CLAIM"]]
    assert len(caught) == 1
    assert lm.counts.degraded == 2


def test_an_answer_without_its_markers_is_read_all_the_same(server, model):
    server.answer = lambda body: "Sure!\n\n1. Stanley Kubrick\n2. Lolita"
    assert ClaimPhrases(model(), keep_query=False).process(["a claim"]) == [["Sure!", "Stanley Kubrick", "Lolita"]]


def test_an_answer_that_was_cut_off_is_read_as_far_as_it_came(server, model):
    server.answer = lambda body: '[[ ## phrases ## ]]\n["Stanley Kubrick", "Lolita 1962'
    assert ClaimPhrases(model(), keep_query=False).process(["a claim"]) == [["Stanley Kubrick", "Lolita 1962"]]


@pytest.mark.parametrize("unit", ["Stanley Kubrick ", "Stanley Kubrick\n", "1. Stanley Kubrick\n"])
def test_an_answer_that_does_not_stop_becomes_few_and_short_phrases(server, model, unit):
    server.answer = lambda body: f"[[ ## phrases ## ]]\n{unit * 20_000}"
    (phrases,) = ClaimPhrases(model(), keep_query=False, max_words=4).process(["a claim"])
    assert phrases[0].startswith("Stanley Kubrick")
    assert len(phrases) <= 3
    assert all(len(phrase.split()) <= 4 for phrase in phrases)


@pytest.mark.parametrize("unit", ["[", "-", "\\"])
def test_an_answer_that_no_parser_can_take_leaves_the_claim(server, model, unit):
    server.answer = lambda body: f"[[ ## phrases ## ]]\n{unit * 3_000}"
    with pytest.warns(RetrievalWarning, match="1 of 1 queries"):
        assert ClaimPhrases(model(), keep_query=False).process(["a claim"]) == [["a claim"]]


def test_a_claim_that_is_repeated_beside_phrases_is_left_out(server, model):
    server.answer = lambda body: fields(phrases=["A claim!", "x y", "a  CLAIM"])
    assert ClaimPhrases(model(), keep_query=False).process(["a claim"]) == [["x y"]]


def test_claims_without_words_are_not_asked_about(server, model):
    assert ClaimPhrases(model(), keep_query=False).process(["", "red fox", " \t", "?!"]) == [
        [""],
        ["red", "fox"],
        [" \t"],
        ["?!"],
    ]
    assert ClaimPhrases(model(), keep_query=False).process([]) == []
    assert server.calls == 1


@pytest.mark.parametrize("reply", [400, 401, 404, 429, 500, 503, None])
def test_an_endpoint_that_fails_leaves_every_claim_as_it_is(server, model, reply):
    server.answer = lambda body: reply
    lm = model(retries=1)
    with pytest.warns(RetrievalWarning, match=r"8 of 8 queries"):
        assert ClaimPhrases(lm, keep_query=False).process(CLAIMS) == [[claim] for claim in CLAIMS]
    assert lm.counts.degraded == 8
    assert lm.counts.failures == lm.counts.calls == server.calls


def test_an_endpoint_that_refuses_connections_leaves_every_claim_as_it_is(tmp_path):
    lm = LanguageModel("openai/small", "http://127.0.0.1:9/v1", endpoint={"retries": 1, "backoff": 0.001}, cache_dir=tmp_path)
    with pytest.warns(RetrievalWarning, match=r"8 of 8 queries.*refused"):
        assert ClaimPhrases(lm, keep_query=False).process(CLAIMS) == [[claim] for claim in CLAIMS]
    assert lm.counts.degraded == 8


def test_an_endpoint_that_never_answers_is_waited_for_as_long_as_was_set(server, model):
    gate = threading.Event()

    def hang(body: dict[str, Any]) -> int:
        gate.wait(300)
        return 500

    server.answer = hang
    lm = model(timeout=0.05, retries=0)
    with pytest.warns(RetrievalWarning, match=r"8 of 8 queries.*timed out"):
        assert ClaimPhrases(lm, keep_query=False).process(CLAIMS) == [[claim] for claim in CLAIMS]
    gate.set()


def test_an_endpoint_that_dies_half_way_leaves_the_rest_as_it_is_and_a_second_run_asks_for_the_rest_alone(server, model):
    answers = server.answer
    server.answer = lambda body: answers(body) if server.calls <= 4 else 500
    lm = model(calls_at_once=1, retries=0)
    with pytest.warns(RetrievalWarning, match="4 of 8 queries"):
        assert ClaimPhrases(lm, keep_query=False).process(CLAIMS) == HALVES[:4] + [[claim] for claim in CLAIMS[4:]]
    server.answer = answers
    again = model()
    assert ClaimPhrases(again, keep_query=False).process(CLAIMS) == HALVES
    kept = CallCounts(cache_hits=4, kept_tokens_in=400, kept_tokens_out=40)
    assert again.counts == CallCounts(calls=4, tokens_in=400, tokens_out=40) + kept


def test_a_second_run_makes_no_call(server, model):
    ClaimPhrases(model(), keep_query=False).process(CLAIMS)
    assert ClaimPhrases(model(), keep_query=False).process(CLAIMS) == HALVES
    assert server.calls == 8


# compiled programs


def compiled(instructions: str) -> Decomposer:
    program = Decomposer()
    program.decompose.signature = program.decompose.signature.with_instructions(instructions)
    program.decompose.demos = [dspy.Example(claim="A and B", phrases=["A", "B"])]
    return program


def test_a_compiled_program_asks_with_its_instructions_and_demonstrations(server, model, tmp_path):
    save_program(compiled("Name what is to be looked up."), tmp_path / "program.json")
    plain, processor = (
        ClaimPhrases(model(), keep_query=False),
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "program.json"),
    )
    assert plain.process(["red fox"]) == processor.process(["red fox"]) == [["red", "fox"]]
    first, second = server.bodies
    assert "Name what is to be looked up." not in json.dumps(first)
    assert "Name what is to be looked up." in second["messages"][0]["content"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]


def test_what_program_ran_is_in_the_provenance(model, tmp_path):
    path = tmp_path / "program.json"
    save_program(compiled("One."), path)
    one = ClaimPhrases(model(), keep_query=False, program=path).provenance()
    save_program(compiled("Two."), path)
    two = ClaimPhrases(model(), keep_query=False, program=path).provenance()
    assert one[str(path)].startswith("sha256:")
    assert one[str(path)] != two[str(path)]
    assert one["openai/small"] == two["openai/small"] == model().base_url


def test_a_program_that_is_missing_or_of_another_signature_is_an_error_before_any_call(server, model, tmp_path):
    with pytest.raises(SourceError, match="no compiled program"):
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "none.json")
    save_program(PassageWriter(), tmp_path / "writer.json")
    with pytest.raises(ConfigurationError, match="another program"):
        ClaimPhrases(model(), keep_query=False, program=tmp_path / "writer.json")
    assert server.calls == 0


# a component like any other


def test_a_processor_shows_its_settings_and_is_made_again_from_them(model, tmp_path):
    save_program(Decomposer(), tmp_path / "program.json")
    processor = ClaimPhrases(model(temperature=0.3), keep_query=False, max_phrases=2, program=tmp_path / "program.json")
    config = json.loads(json.dumps(processor.config))
    assert config["name"] == "claim_decomposition"
    settings = {key: value for key, value in config.items() if key not in ("name", "lm")}
    lm = LanguageModel(**{key: value for key, value in config["lm"].items() if key != "name"})
    assert ClaimPhrases(lm, **settings) == processor
    assert "keep_query=False" in repr(processor)


@pytest.mark.parametrize("wrong", [{"max_phrases": 0}, {"max_words": 0}, {"keep_query": "yes"}])
def test_a_parameter_out_of_range_is_refused(model, wrong):
    with pytest.raises(ConfigurationError, match=f"ClaimPhrases: {next(iter(wrong))}"):
        ClaimPhrases(model(), **wrong)
