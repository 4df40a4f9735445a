"""What all kinds of links have in common, and the sentences that show them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.retrievers.link_graph.extractors import sentence_at


@given(st.text(st.sampled_from('Aa. \n?。…"J\u3000'), max_size=700), st.integers(0, 700), st.integers(1, 40))
def test_a_sentence_always_holds_its_mention(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    shown = sentence_at(text, start, end)
    assert shown.text[shown.start : shown.end] == text[start:end]
    assert len(shown.text) <= 302
    assert shown.text.strip("…") in text
