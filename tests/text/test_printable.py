from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.printing import visible


def test_what_turns_text_around_is_named():
    assert visible("pay \u202e001$ now") == "pay [U+202E]001$ now"


def test_what_nobody_sees_is_named():
    assert visible("4\u200b2 \ufeffx a\u200db") == "4[U+200B]2 [U+FEFF]x a[U+200D]b"
    assert visible("\u3164 An\ufe0fn Jos\u00e9\u200d") == "[U+3164] An[U+FE0F]n Jos\u00e9[U+200D]"


def test_joiners_between_letters_that_join_stay():
    persian, emoji = "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f52c \u2764\ufe0f"
    assert visible(persian) == persian
    assert visible(emoji) == emoji


def test_lines_become_spaces_and_commands_become_signs():
    assert visible("a\nb\x1b[31m\ud800") == "a b\ufffd[31m\ufffd"


@given(st.text())
def test_nothing_is_left_that_a_terminal_obeys(text):
    assert not {unicodedata.category(char) for char in visible(text)} & {"Cc", "Cs", "Zl", "Zp"}
