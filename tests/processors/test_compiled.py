"""A compiled program is checked when a processor is made, and told from another one by its content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.programs import CompiledProgram
from nlp_retrieval.processors.signatures import Decomposer, PassageWriter
from nlp_retrieval.processors.with_model import ClaimPhrases, CompiledProcessor, HyDE
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

KINDS: dict[type[CompiledProcessor], type] = {ClaimPhrases: Decomposer, HyDE: PassageWriter}


def written(kind: type[CompiledProcessor], path: Path, instructions: str) -> Path:
    """A program of a processor with these instructions, as a file."""
    program: Any = KINDS[kind]()
    ((_, predictor),) = program.named_predictors()
    predictor.signature = predictor.signature.with_instructions(instructions)
    CompiledProgram.of(program).write(path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_searchers_whose_program_has_another_content_have_other_fingerprints(model, tmp_path, kind):
    def searcher(path):
        return Searcher([Bm25Retriever()], processor=kind(model(), program=path))

    path = tmp_path / "program.json"
    one = searcher(written(kind, path, "One."))
    before = one.fingerprint
    two = searcher(written(kind, path, "Two."))
    assert one.config == two.config
    assert one.fingerprint == before, "what was read stays what it was"
    assert two.fingerprint != before
    assert searcher(written(kind, path, "One.")).fingerprint == before
    assert Searcher([Bm25Retriever()], processor=kind(model())).fingerprint not in {before, two.fingerprint}
