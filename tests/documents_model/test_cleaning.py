"""Characters that nobody sees, and those that look like them and are needed."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval.documents import clean_text, clean_title, web_address
from nlp_retrieval.documents.blocks import LONGEST_TITLE

NEEDED = {
    "Persian": "می\u200cخواهم",  # noqa: RUF001
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ\u180bᠣ",
    "a family": "👨\u200d👩\u200d👧\u200d👦",
    "a key": "1\ufe0f\u20e3",
    "a form of a Chinese character": "葛\U000e0100",
    "accents": "cafe\u0301, Zürich, Ελλάδα, 漢字, עברית",
    "mathematics": "10⁵ ± 3 × 10⁻² µm ≠ ∞",  # noqa: RUF001
}


def test_what_a_script_needs_stays() -> None:
    for text in NEEDED.values():
        assert clean_text(text) == (text, Counter())


USELESS = {
    "a joiner between Latin letters": ("rain\u200dfall", "rainfall", Counter(zero_width=1)),
    "a selector behind a letter": ("a\ufe0f", "a", Counter(zero_width=1)),
    "many selectors behind an emoji": ("😀\ufe0f\U000e0141\U000e0142", "😀\ufe0f", Counter(zero_width=2)),
    "tags behind a flag": ("🏴\U000e0067\U000e0062\U000e007f", "🏴", Counter(tags=3)),
    "an override": ("safe\u202etxt.exe\u202c", "safetxt.exe", Counter(directional=2)),
    "marks of direction": ("\u200fעברית\u200e \u061c", "עברית ", Counter(directional=3)),  # noqa: RUF001
    "half of a surrogate pair": ("a\ud800b", "ab", Counter(controls=1)),
    "an escape sequence": ("\x1b[31mred\x1b[0m", "[31mred[0m", Counter(controls=2)),
}


def test_what_has_no_function_goes_and_is_counted() -> None:
    for text, cleaned, removed in USELESS.values():
        assert clean_text(text) == (cleaned, removed)


def test_no_control_or_format_character_of_unicode_survives_between_latin_letters_but_visible_ones() -> None:
    survivors = {
        char
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(char := chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char in clean_text(f"a{char}b")[0]
    }
    visible = {char for char in survivors if "SIGN" in unicodedata.name(char, "") or "HIEROGLYPH" in unicodedata.name(char, "")}
    visible |= {char for char in survivors if "NUMBER" in unicodedata.name(char, "")}
    assert survivors - visible - set("\t\n") == set("\u0602\u06dd\u070f\u0890\u0891\u08e2"), (
        "marks of Arabic and Syriac that are drawn"
    )


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters() | st.sampled_from("\u200d\u200c\ufe0f\U000e0041\u202e\u00adक❤🔥می")))
def test_cleaning_again_changes_nothing_and_the_counts_add_up(text: str) -> None:
    cleaned, removed = clean_text(text)
    assert clean_text(cleaned) == (cleaned, Counter())
    plain = text.replace("\r\n", "\n").replace("\u2029", "\n\n")
    assert len(plain) - len(cleaned) == removed.total()


def test_a_title_is_one_short_line() -> None:
    assert clean_title("  A\u200b title\n on\ttwo lines ") == "A title on two lines"
    title = clean_title("word " * 10_000)
    assert len(title) <= LONGEST_TITLE
    assert title.endswith("word…")
    assert len(clean_title("x" * 10_000)) == LONGEST_TITLE


def test_an_address_that_another_program_has_wrapped_is_the_one_inside() -> None:
    for written, address in {
        "https://www.google.com/url?q=https://a.example/page&sa=D&ust=17": "https://a.example/page",
        "https://www.google.com/url?q=https%3A%2F%2Fa.example%2Fx%3Fid%3D1&usg=AOv": "https://a.example/x?id=1",
        "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fa.example%2Fx&data=05": "https://a.example/x",
        "https://www.google.com/search?q=krill": "https://www.google.com/search?q=krill",
    }.items():
        assert web_address(written) == address
