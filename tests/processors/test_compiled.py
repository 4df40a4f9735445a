"""A compiled program is checked when a processor is made, and told from another one by its content."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_server import fields

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.programs import save_program
from nlp_retrieval.processors import with_model
from nlp_retrieval.processors.rules import Chain, ClauseSplit
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter
from nlp_retrieval.processors.with_model import ClaimPhrases, CompiledProcessor, HyDE
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

KINDS: dict[type[CompiledProcessor], type] = {ClaimPhrases: Decomposer, HyDE: PassageWriter}


def written(kind: type[CompiledProcessor], path: Path, instructions: str) -> Path:
    """A program of a processor with these instructions, as a file."""
    program: Any = KINDS[kind]()
    ((_, predictor),) = program.named_predictors()
    predictor.signature = predictor.signature.with_instructions(instructions)
    save_program(program, path)
    return path


@pytest.mark.parametrize(
    ("program", "asked"),
    [(Decomposer(), with_model.CLAIM_FIELDS), (PassageWriter(), with_model.PASSAGE_FIELDS)],
    ids=["claims", "hyde"],
)
def test_the_fields_that_a_program_is_compared_with_are_those_of_the_signature(program, asked):
    assert {name: tuple(one.signature.fields) for name, one in program.named_predictors()} == asked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chained", [False, True])
def test_searchers_whose_program_has_another_content_have_other_fingerprints(model, tmp_path, kind, chained):
    def searcher(path):
        processor = kind(model(), program=path)
        return Searcher([Bm25Retriever()], processor=Chain([ClauseSplit(), processor]) if chained else processor)

    path = tmp_path / "program.json"
    one = searcher(written(kind, path, "One."))
    before = one.fingerprint
    two = searcher(written(kind, path, "Two."))
    assert one.config == two.config
    assert one.fingerprint == before, "what was read stays what it was"
    assert two.fingerprint != before
    assert searcher(written(kind, path, "One.")).fingerprint == before
    assert Searcher([Bm25Retriever()], processor=kind(model())).fingerprint not in {before, two.fingerprint}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_program_at_another_path_is_the_same_processor_and_another_configuration(model, tmp_path, kind):
    here, there = (kind(model(), program=written(kind, tmp_path / name, "One.")) for name in ("a.json", "b.json"))
    assert here.index_identity() == there.index_identity()
    assert Searcher([Bm25Retriever()], processor=here).fingerprint != Searcher([Bm25Retriever()], processor=there).fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_replaced_changes_no_processor_that_was_made_before(server, model, tmp_path, kind):
    server.answer = lambda body: fields(phrases=["x y"], passage="x y")
    processor = kind(model(), program=written(kind, tmp_path / "program.json", "As it was."))
    written(kind, tmp_path / "program.json", "As it is now.").unlink()
    processor.process(["red fox"])
    assert "As it was." in server.bodies[0]["messages"][0]["content"]


def test_a_program_is_checked_without_dspy_being_imported(tmp_path):
    written(ClaimPhrases, tmp_path / "program.json", "One.")
    program = f"""
import sys
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import ClaimPhrases
from nlp_retrieval.processors.with_model import HyDE
lm = LanguageModel("openai/small", base_url="http://localhost/v1")
ClaimPhrases(lm, program={str(tmp_path / "program.json")!r})
try:
    HyDE(lm, program={str(tmp_path / "program.json")!r})
except ConfigurationError as error:
    assert "another program" in str(error)
else:
    raise AssertionError("the program of another processor was taken")
assert "dspy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
