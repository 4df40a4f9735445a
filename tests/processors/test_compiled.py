"""A compiled program is checked when a processor is made, and told from another one by its content."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.programs import save_program
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
