"""Both embeddings by default: word vectors are trained on the passages of an index where there are enough, and kept there."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, MultiSignalReranker, Searcher
from nlp_retrieval.systems.policy import vectors
from systems.policy.study.studies import PROFILE, plans


def made() -> MultiSignalReranker:
    return MultiSignalReranker(PROFILE, transformer_weight=0.0, min_similarity=0.0)


def scored(folder: Path) -> Searcher:
    searcher = Searcher([Bm25Retriever()], reranker=made())
    searcher.index(plans(), folder)
    return searcher


def test_they_are_trained_once_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LEAST_WORDS", 20)
    searcher = vectors.with_word_vectors(scored(tmp_path))
    (hits,) = searcher.search(["wind power of Ostland"], 3)
    assert isinstance(searcher, Searcher)
    assert all("multi_signal.word_vectors" in hit.signals for hit in hits)
    (folder,) = (tmp_path / "word_vectors").iterdir()
    written = (folder / "words.json").stat().st_mtime_ns
    again = vectors.with_word_vectors(scored(tmp_path))
    assert (folder / "words.json").stat().st_mtime_ns == written
    assert isinstance(again, Searcher)
    assert again.fingerprint == searcher.fingerprint
    (folder / "vectors.npy").write_bytes(b"")
    (repaired,) = vectors.with_word_vectors(scored(tmp_path)).search(["wind power of Ostland"], 3)
    assert repaired == hits
    grown = Searcher([Bm25Retriever()]).open(tmp_path)
    grown.delete([hits[0].item.item_id])
    vectors.with_word_vectors(Searcher([Bm25Retriever()], reranker=made()).open(tmp_path))
    (other,) = (tmp_path / "word_vectors").iterdir()
    assert other != folder, "those of other passages are trained anew"
