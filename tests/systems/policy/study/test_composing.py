"""Relations are followed as far as a profile says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.systems.policy.config import _limited
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever


@pytest.mark.parametrize(("said", "expected"), [("max_hops: 1", 1), ("max_hops: 3", 3), ("", 2)])
def test_the_hops_of_a_profile_are_those_that_are_followed(tmp_path: Path, said: str, expected: int) -> None:
    (tmp_path / "mine.yaml").write_text(f"name: mine\nsubject: country\n{said}\n", "utf-8")
    hop = HopRetriever(Bm25Retriever(), encoder=HashedWords(), max_hops=2, decay=0.5)
    limited = _limited(hop, str(tmp_path / "mine.yaml"))
    assert (limited.max_hops, limited.decay) == (expected, 0.5)
    assert limited.identity == hop.identity
