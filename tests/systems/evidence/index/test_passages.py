"""How a text is stored, and that its passages lose nothing."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.index.passages import OVERLAP, SIZE, normal_text, passage_spans

SENTENCE = "The lake in the valley freezes over in January and thaws in March."

pieces = st.sampled_from(
    [
        *(SENTENCE, "Short one.", "a" * 600, "x", "word " * 150, "\n", "\n\n", " ", "Dr. No.", "湖は凍る。", "湖" * 700),
        *("e\u0301", "\u0301" * 600, "- item", "...", "?!", "\t", "\u200b", "\ufeff", "\r\n", "\0", '"Quoted." '),
    ]
)
texts = st.one_of(st.lists(pieces, max_size=20).map("".join), st.text(max_size=60)).filter(
    lambda text: any(char.isalnum() for char in text) and not any("\ud800" <= char <= "\udfff" for char in text)
)


@given(texts)
def test_the_stored_form_is_its_own(text):
    stored = normal_text(text)
    assert normal_text(stored) == stored
    assert unicodedata.is_normalized("NFC", stored)
    assert "\r" not in stored
    assert "\0" not in stored
    assert "\n\n\n" not in stored
    assert all(line == line.rstrip() for line in stored.split("\n"))


@given(texts)
def test_every_character_is_in_a_passage_and_none_is_long(text):
    stored = normal_text(text)
    spans = passage_spans(stored)
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered or char.isspace() for place, char in enumerate(stored))
    assert all(0 < end - start <= SIZE for start, end in spans)
    assert all(stored[start:end] == stored[start:end].strip() for start, end in spans)


@given(texts)
def test_passages_move_on_and_repeat_little(text):
    spans = passage_spans(normal_text(text))
    for (start, end), (following, last) in pairwise(spans):
        assert start < following
        assert end < last
        assert end - following <= OVERLAP


def contents(text):
    return [text[start:end] for start, end in passage_spans(text)]


def test_short_paragraphs_share_a_passage_and_long_ones_end_it():
    short, long = " ".join([SENTENCE] * 2), " ".join([SENTENCE] * 5)
    assert contents(f"{short}\n\n{short}") == [f"{short}\n\n{short}"]
    assert contents(f"{long}\n\n{long}") == [long, long]


def test_a_long_paragraph_ends_with_a_sentence_and_the_next_passage_repeats_short_ones():
    text = " ".join(f"{SENTENCE} It was so in {year}." for year in range(1900, 1920))
    found = contents(text)
    assert all(passage.endswith(".") for passage in found)
    assert all(passage.startswith(("The lake", "It was so")) for passage in found)
    repeated = [one for one, other in pairwise(found) if other.startswith(one[-18:])]
    assert repeated


LONG = ["." * 300_000 + "a", "a" + " " * 300_000 + "b", ("." + ")" * 50) * 6000, "a.\n" * 20_000, "(" * 300_000 + "x"]


def test_no_text_takes_long():
    """Each would take minutes, were the work not linear."""
    for text in LONG:
        stored = normal_text(text)
        assert passage_spans(stored)[-1][1] == len(stored)
