"""Optimising finds the instruction that finds the documents, saves it as JSON, and says what was spent."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import dspy
import pytest
from chat_server import asked, fields

from nlp_retrieval.errors import ConfigurationError, ModelError, RetrievalWarning
from nlp_retrieval.lm.programs import fingerprint_of_program
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.systems.hover.compiling import hover_examples, optimize
from nlp_retrieval.systems.hover.programs import HoverMultiHop, HoverMultiHopPipeline

from .conftest import DEMO, plays

EXAMPLES = hover_examples(DEMO / "claims.json", hops=3)[:12]
TITLES = {one.claim: one.gold_titles for one in EXAMPLES}
WISE = "Name the titles of the pages."


def improves(body: dict[str, Any]) -> str:
    """Knows the gold titles when it is told to name them, says nothing of use before, and proposes to be told so."""
    system = body["messages"][0]["content"]
    text = body["messages"][-1]["content"]
    if "`phrases` (" in system and "`program_code`" not in system:
        return fields(phrases=TITLES[asked(body, "claim")] if WISE in system else ["velvet copper lantern"])
    form = text.rpartition("Respond with")[2]
    names = [name for name in re.findall(r"`(?:\[\[ ## )?(\w+)(?: ## \]\])?`", form) if name != "completed"]
    return json.dumps(dict.fromkeys(names, WISE)) if "JSON" in form else fields(**dict.fromkeys(names, WISE))


@pytest.fixture
def program(server, model, index):
    """A pipeline that finds nothing of use until it is told how."""
    server.answer = improves
    return HoverMultiHopPipeline([Bm25Retriever()], model(), keep_query=False).open(index)


def learns(body: dict[str, Any]) -> str:
    """Knows every other claim's titles, and all of them once it was shown how."""
    claim = asked(body, "claim")
    knows = len(body["messages"]) > 2 or list(TITLES).index(claim) % 2 == 0
    return fields(phrases=TITLES[claim] if knows else ["an island"])


def test_demonstrations_are_what_led_to_full_marks(server, model, index, tmp_path):
    server.answer = learns
    program = HoverMultiHopPipeline([Bm25Retriever()], model()).open(index)
    report = optimize(program, EXAMPLES, optimizer="BootstrapFewShot", output=tmp_path / "best.json", budget=5)
    assert 0.0 < report.before < report.after
    demonstrations = json.loads((tmp_path / "best.json").read_text())["decompose"]["demos"]
    assert 0 < len(demonstrations) <= 4
    assert all(one["phrases"] == TITLES[one["claim"]] for one in demonstrations)
    assert all(one["augmented"] for one in demonstrations)
    assert report.runs <= 5 + 2 * report.n_validation


@pytest.mark.parametrize("optimizer", ["miprov2", "gepa"])
def test_a_better_instruction_is_found_saved_and_used(program, server, model, index, tmp_path, optimizer):
    told: list[str] = []
    before = fingerprint_of_program(program)
    lm = program.language_model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        report = optimize(
            program, EXAMPLES, optimizer=optimizer, budget=60, output=tmp_path / "best.json", on_progress=told.append
        )
    assert report.before == 0.0
    assert report.after > 0.5
    assert report.n_train + report.n_validation == 12
    assert fingerprint_of_program(program) == before, "the program itself is left as it was"
    assert WISE in json.loads((tmp_path / "best.json").read_text())["decompose"]["signature"]["instructions"]
    compiled = HoverMultiHopPipeline([Bm25Retriever()], model(), keep_query=False, program=tmp_path / "best.json").open(index)
    assert set(TITLES[EXAMPLES[0].claim]) <= {hit.item.title for hit in compiled(claim=EXAMPLES[0].claim).results}
    assert told[0].startswith("before: ")
    assert told[-1] == f"done: {report.runs} runs of the program; {report.counts}"
    assert report.counts.calls == lm.counts.calls > 0


def test_several_steps_are_optimised_together(server, model, index, tmp_path):
    server.answer = lambda body: (
        plays(body) if "claim, context" in str(body) or "`claim` (str)" in str(body) else improves(body)
    )
    program = HoverMultiHop([Bm25Retriever()], model(), hops=2).open(index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        report = optimize(program, EXAMPLES[:6], optimizer="gepa", budget=20, output=tmp_path / "p.json")
    assert report.before <= report.after <= 1
    assert set(json.loads((tmp_path / "p.json").read_text())) == {"summarize[0]", "ask[0]", "metadata"}
    HoverMultiHop([Bm25Retriever()], model(), hops=2, program=tmp_path / "p.json")


def test_a_dead_endpoint_is_an_error_before_the_search_begins(server, model, index, tmp_path):
    server.answer = lambda body: 500
    program = HoverMultiHopPipeline([Bm25Retriever()], model(retries=0, calls_at_once=1), keep_query=False).open(index)
    with pytest.warns(RetrievalWarning), pytest.raises(ModelError, match="no usable answer"):
        optimize(program, EXAMPLES, output=tmp_path / "best.json")
    assert not (tmp_path / "best.json").exists()


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"validation": []}, {"optimizer": "mipro"}])
def test_nothing_to_optimise_on_is_refused(program, wrong):
    with pytest.raises(ConfigurationError):
        optimize(program, EXAMPLES, **wrong)
    with pytest.raises(ConfigurationError, match="cannot be split"):
        optimize(program, EXAMPLES[:1])


@pytest.mark.parametrize("made", [HoverMultiHopPipeline, HoverMultiHop])
def test_a_model_that_is_given_is_asked_in_place_of_the_program_s_own(server, model, index, made):
    server.answer = improves
    own, other = model(), model(max_tokens=300)
    program = made([Bm25Retriever()], own).open(index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        report = optimize(program, EXAMPLES[:4], other, optimizer="bootstrap_few_shot")
    assert (own.counts.calls, report.counts.calls) == (0, other.counts.calls)
    assert other.counts.calls > 0
    assert (report.program.language_model, program.language_model) == (other, own)


def test_a_program_whose_language_model_is_something_else_is_given_one(model, tmp_path):
    class Named(dspy.Module):
        language_model, runs = "the name of one", 0

        def __init__(self):
            super().__init__()
            self.predict = dspy.Predict("claim -> query")

        def forward(self, claim):
            Named.runs += 1  # what is compiled finds nothing
            return dspy.Prediction(retrieved_docs=TITLES[claim] if Named.runs <= 4 else [])

    given = {"validation": EXAMPLES[:4], "optimizer": "bootstrap_few_shot", "output": tmp_path / "best.json"}
    report = optimize(Named(), EXAMPLES, model(), **given)
    assert (report.before, report.after, report.program.predict.lm) == (1.0, 1.0, None)
