"""What all kinds of links have in common, and the sentences that show them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.extractors import sentence_at
from nlp_retrieval.retrievers.link_graph.graph import Links


def sentence(text: str, word: str) -> str:
    start = text.index(word)
    shown = sentence_at(text, start, start + len(word))
    assert shown.text[shown.start : shown.end] == word
    return shown.text


def test_the_sentence_of_a_mention_is_shown() -> None:
    assert sentence("One. Two HERE three. Four.", "HERE") == "Two HERE three."


def test_a_long_sentence_is_cut_at_words_around_the_mention() -> None:
    shown = sentence("Begin. " + "word " * 200 + "HERE" + " other" * 200 + ". End.", "HERE")
    assert shown.startswith("…word word")
    assert shown.endswith("other other…")
    assert 250 < len(shown) <= 302
    assert sentence("HERE" + " other" * 200, "HERE").startswith("HERE other")
    assert sentence("word " * 200 + "HERE", "HERE").endswith("word HERE")


@given(st.text(st.sampled_from('Aa. \n?。…"J\u3000'), max_size=700), st.integers(0, 700), st.integers(1, 40))
def test_a_sentence_always_holds_its_mention(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    shown = sentence_at(text, start, end)
    assert shown.text[shown.start : shown.end] == text[start:end]
    assert len(shown.text) <= 302
    assert shown.text.strip("…") in text


def test_links_that_are_sorted_already_are_widened_as_any_others() -> None:
    narrow = Links(np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([1, 2], np.float32))
    for links in (narrow, Links(narrow.sources[::-1], narrow.targets[::-1], narrow.weights[::-1])):
        merged = links.merged("own", 3)
        assert (merged.sources.dtype, merged.targets.dtype) == (np.int64, np.int64)
        assert (merged.sources.tolist(), merged.targets.tolist(), merged.weights.tolist()) == ([0, 1], [1, 2], [1.0, 2.0])
