"""Vectors that cannot be searched are refused before they reach an index: each kind with an error that says what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, MultiSignalReranker, Searcher
from nlp_retrieval.encoders.base import checked_tokens, checked_vectors
from nlp_retrieval.errors import ConfigurationError, ModelError

TEXTS = ["red fox", "blue whale"]
ENCODER = HashedWords()


def test_what_is_no_vector_of_real_numbers_that_can_be_compared_is_a_model_error(subtests: pytest.Subtests) -> None:
    for vectors, said in [
        (np.zeros((2, 0), np.float32), r"returned an array \(2, 0\); an array \(2, dimension\) was expected"),
        (np.ones((2, 4)) + 1j, "an array of complex128; vectors are made of real numbers"),
        (np.array([[1, None], [2, 3]]), "an array of object; vectors"),
        (np.array([[1.0, 2.0], [1e300, 0.0]]), r"NaN, infinity .* for 1 of 2 texts \(the first: 'blue whale'\)"),
        (np.array([[1.0, 2.0], [1e20, 0.0]]), r"vectors longer than 1e\+18 for 1 of 2 texts \(the first: 'blue whale'\)"),
    ]:
        with subtests.test(vectors=vectors, said=said), pytest.raises(ModelError, match=said):
            checked_vectors(vectors, TEXTS, ENCODER, None)


def test_tokens_are_held_to_the_same(subtests: pytest.Subtests) -> None:
    for matrix, said in [
        (np.eye(24)[:2] + 1j, "an array of complex128; vectors are made of real numbers"),
        (None, r"returned NoneType for 'red fox'; an array \[tokens, 24\]"),
        (np.array(1.0), r"returned \(\) for 'red fox'; an array \[tokens, 24\]"),
        (np.full((1, 24), 1e300), "a vector of length inf, not 1, for a token of 'red fox'"),
    ]:
        with subtests.test(matrix=matrix, said=said), pytest.raises(ModelError, match=said):
            checked_tokens([matrix], TEXTS[:1], HashedTokens(24))


class Letters:
    """No encoder of ours: one method and a dimension."""

    dimension = 26

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts]


def test_an_object_with_encode_and_a_dimension_is_an_encoder_wherever_one_is_asked_for(tmp_path: Path) -> None:
    letters = Letters()
    retriever = FaissRetriever(letters)  # type: ignore[arg-type]
    assert retriever == FaissRetriever(letters) != FaissRetriever(Letters())  # type: ignore[arg-type]
    searcher = Searcher([retriever])
    searcher.index({"a": "zebra", "b": "krill"}, tmp_path / "index")
    again = Searcher([FaissRetriever(Letters())])  # type: ignore[arg-type]
    again.open(tmp_path / "index")
    assert again.search("krill", 1)[0][0].item.item_id == searcher.search("krill", 1)[0][0].item.item_id == "b"
    signals = MultiSignalReranker(encoder=letters, word_vectors_weight=0, patterns_weight=0, fuzzy_weight=0)  # type: ignore[arg-type]
    assert Searcher(["bm25"], reranker=signals).index({"a": "krill"}, tmp_path / "words").n_items == 1
    assert Searcher(["bm25"], reranker=signals).open(tmp_path / "words").search("krill", 1)[0][0].item.item_id == "a"
    for taken in (np.ones((2, 1, 26)), np.ones(52)):
        letters.encode = lambda _, taken=taken: taken  # type: ignore[method-assign,misc]
        assert searcher.index({"a": "x", "b": "y"}, tmp_path / f"{taken.ndim}").n_items == 2
    for returned, said in [
        (None, r"Letters\.encode returned NoneType, no array \[texts, dimension\] for 2"),
        (np.ones((26, 2)), r"returned an array \(26, 2\); an array \(2, dimension\) was expected"),
        (np.ones((1, 26)), r"returned an array \(1, 26\); an array \(2, dimension\) was expected"),
        ([["a"]] * 2, r"Letters\.encode returned list, no array \[texts, dimension\] for 2 texts: could not convert"),
    ]:
        letters.encode = lambda _, returned=returned: returned  # type: ignore[method-assign,misc]
        with pytest.raises(ModelError, match=said):
            searcher.index({"c": "x", "d": "y"}, tmp_path / "other")
    with pytest.raises(ConfigurationError, match="is an object of this program"):
        searcher.to_config()
    with pytest.raises(ConfigurationError, match=r"an object with encode\(texts\) and dimension"):
        FaissRetriever(object())  # type: ignore[arg-type]
