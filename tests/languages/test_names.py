"""Names with punctuation find themselves first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import items_of

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.text.words import Words

PAIRS = [
    ("C++", "Templates of C++ are long.", "Vitamin C, vitamin C and again vitamin C."),
    ("C#", "A class of C# is sealed.", "The key of C is plain; C, C, C."),
    (".NET", "It runs on .NET today.", "Net income is net of tax, net of all."),
    ("node.js", "A server in Node.js listens.", "The js of a node, a node, a js."),
    ("R&D", "Their R&D grew.", "Vitamin D and R; vitamin D, R, R."),
    ("U.S.A.", "Born in the U.S.A. long ago.", "A u and an s, u, s."),
    ("\uff23\uff0b\uff0b", "Templates of C++ are long.", "Vitamin C, vitamin C and again vitamin C."),
    ("C++", "\u4ed6\u7528C++\u7f16\u7a0b", "\u7ef4\u751f\u7d20C\u548cC"),
]


@pytest.mark.parametrize(("query", "named", "other"), PAIRS)
def test_a_name_with_punctuation_finds_its_passage_first(tmp_path: Path, query: str, named: str, other: str) -> None:
    retriever = Bm25Retriever()
    retriever.index(items_of([other, named]), tmp_path)
    (hits,) = retriever.retrieve([[query]], tmp_path, 2)
    assert hits[0].item.content == named


def test_other_punctuation_makes_no_terms() -> None:
    text = "1+1"
    assert all(word.isalnum() for word in Words().split(text))
