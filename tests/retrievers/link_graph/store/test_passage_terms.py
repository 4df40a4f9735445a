"""The terms of passages: stems in the words of texts, without accents and stop words, and what each is worth."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.retrievers.link_graph.mentions import closeness
from nlp_retrieval.retrievers.link_graph.tables import PassageTerms
from retrievers.link_graph.corpora import passage, table_of

STEM = Stemmer.Stemmer("porter").stemWord
WORDS = "running runs runner lighthouse lighthouses Zürich zurich the what U2 1990 o'Neill café".split()


def opened(folder: Path, n_passages: int) -> PassageTerms:
    """The terms of an index of one segment."""
    return PassageTerms.open_all([SegmentFolder(folder, 0, n_passages)])


def terms_of(texts: list[str], folder: Path) -> PassageTerms:
    """The terms of passages with these contents, through files."""
    PassageTerms.of(table_of([passage(None, text, f"p{row}") for row, text in enumerate(texts)], folder)).write(folder)
    return opened(folder, len(texts))


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=6),
    query=st.lists(st.sampled_from([*WORDS, "elephant"]), max_size=5).map(" ".join),
    data=st.data(),
)
def test_coverage_and_information_are_those_of_sets(texts: list[str], query: str, data: st.DataObject) -> None:
    def plain(text: str) -> set[str]:
        words = text.lower().replace("ü", "u").replace("é", "e").replace("o'neill", "o neill").split()
        return {STEM(word) for word in words}

    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    with TemporaryDirectory() as folder:
        terms = terms_of(texts, Path(folder))
        found, shares = terms.of_query(query)
        covered = terms.covered(found, np.array(rows, np.int64))
    having = [plain(text) for text in texts]
    wanted = {term for term in plain(query) - {"the", "what"} if any(term in text for text in having)}
    counts = {term: sum(term in text for text in having) for term in wanted}
    information = {term: math.log1p((len(texts) - n + 0.5) / (n + 0.5)) for term, n in counts.items()}
    whole = sum(information.values())
    assert len(found) == len(wanted)
    assert sorted(shares.tolist()) == pytest.approx(sorted(one / whole for one in information.values()))
    by_hand = [sum(information[term] for term in having[row] & wanted) / (whole or 1) for row in rows]
    assert (covered @ shares).tolist() == pytest.approx(by_hand)
    assert covered.sum(axis=1).tolist() == [len(having[row] & wanted) for row in rows]


def test_closeness_is_the_cosine_of_what_two_passages_say(tmp_path: Path) -> None:
    texts = ["copper walnut ribbon", "copper walnut", "ribbon quill", "", "copper copper copper"]
    terms = terms_of(texts, tmp_path)
    sets = [set(text.split()) for text in texts]
    square = {
        word: math.log1p((len(texts) - n + 0.5) / (n + 0.5)) ** 2
        for word in set().union(*sets)
        for n in [sum(word in one for one in sets)]
    }

    def weight(words: set[str]) -> float:
        return sum(square[word] for word in words)

    ones, others = (column.ravel() for column in np.meshgrid(np.arange(5), np.arange(5)))
    expected = [
        weight(sets[one] & sets[other]) / (math.sqrt(weight(sets[one]) * weight(sets[other])) or 1.0)
        for one, other in zip(ones, others, strict=True)
    ]
    assert closeness(terms, ones, others).tolist() == pytest.approx(expected)
    assert closeness(terms, np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
