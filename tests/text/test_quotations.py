"""A quotation is found in the text word for word, or not at all."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.printing import fenced
from nlp_retrieval.text.quotations import located, sentences_around
from nlp_retrieval.text.sentences import sentences_of

TEXT = unicodedata.normalize(
    "NFC",
    "The tram carried 12.4 million passengers in 2019. It is not true that\nthe line\tcost 40 million crowns.\n\n"
    "Temperatures fell to -15 degrees [1] in <b>January</b>.  橋は一九三二年に開通した。誰も渡らなかった。Zoe\u0308 paid.",
)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("The tram carried 12.4 million passengers in 2019.", "The tram carried 12.4 million passengers in 2019."),
        ("the line cost  40\nmillion crowns", "the line\tcost 40 million crowns"),
        ("degrees [1] in <b>January</b>", "degrees [1] in <b>January</b>"),
        ("degrees \uff3b1\uff3d in \uff1cb\uff1eJanuary", "degrees [1] in <b>January"),
        ("九三二年に開通した。誰も渡らな", "九三二年に開通した。誰も渡らな"),
        ("渡らなかった。Zoe\u0308 paid.", "渡らなかった。Zoë paid."),
        ("\u201cThe tram carried 12.4 million passengers\u2026\u201d", "The tram carried 12.4 million passengers"),
        ("The tram car\u200bried 12.4 million", "The tram carried 12.4 million"),
        ("fell to \u221215 degrees", "fell to -15 degrees"),
    ],
)
def test_what_stands_there_is_found_as_it_stands_there(quote: str, found: str) -> None:
    span = located(quote, TEXT)
    assert span is not None
    assert TEXT[slice(*span)] == found


@pytest.mark.parametrize(
    "quote",
    [
        "The tram carried 14.2 million passengers in 2019.", "the tram carried 12.4 million passengers",
        "The tram carried ... passengers in 2019.", "2.4 million passengers in 2019",
        "The tram carried 12.4 million passengers in 201", "15 degrees [1] in",
        "", "tram",
    ],
)  # fmt: skip
def test_what_does_not_stand_there_or_says_too_little_is_not_found(quote: str) -> None:
    assert located(quote, TEXT) is None


def test_the_sentences_around_a_quotation_show_what_turns_its_meaning() -> None:
    span = located("the line cost 40 million crowns", TEXT)
    assert span is not None
    assert TEXT[slice(*sentences_around(span, TEXT))] == "It is not true that\nthe line\tcost 40 million crowns."


@given(st.text(max_size=80), st.text(max_size=30))
def test_whatever_is_found_stands_there(text: str, quote: str) -> None:
    span = located(quote, text)
    if span is not None:
        again = located(text[slice(*span)], text)
        assert again is None or text[slice(*again)].split() == text[slice(*span)].split()
        letters = [char for char in unicodedata.normalize("NFC", text[slice(*span)]) if char.isalnum()]
        assert letters == [char for char in unicodedata.normalize("NFC", quote) if char.isalnum()]


def test_a_whole_sentence_may_be_short_and_another_quotation_as_the_caller_says() -> None:
    assert located("Yes.", "Is it so? Yes. It is.") == (10, 14)
    assert located("It", "Is it so? Yes. It is.") is None
    assert located("It", "Is it so? Yes. It is.", shortest=1) == (15, 17)


@given(st.text())
def test_a_fence_leaves_one_line_without_brackets(text: str) -> None:
    shown = fenced(text)
    assert len(shown.splitlines()) <= 1
    assert not set(shown) & set("[]<>\n\r\x00\u200b\u202e\ufe0f\U000e0041")
    assert fenced(shown) == shown


@given(st.text(alphabet="ab9 [<\n\u200b\u2019.-", max_size=80))
def test_every_sentence_is_found_by_what_is_shown_of_it(text: str) -> None:
    for begin, end in sentences_of(text):
        if text[begin:end].strip(AROUND):
            assert located(fenced(text[begin:end]), text) is not None


AROUND = " \n\u200b\"'`\u2019\u00ab\u00bb\u2026."
