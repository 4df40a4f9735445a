"""Old passages that mention new titles: none is missed by not reading all of them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from text.test_surfaces import TEXT, TITLES

from nlp_retrieval.retrievers.link_graph.mentions import Phrase, holds_one
from nlp_retrieval.text.surfaces import SurfaceMatcher, surface_of
from nlp_retrieval.text.words import unaccented

ODD = st.text(st.sampled_from("aAbß½ﬁİ\u0131é\u0301\u0308™№ガ\u3099й東京서ภน้'\u2019sS -_.5ΣςeE"), max_size=14)


@given(
    st.one_of(TEXT.map("".join), TEXT.map(" ".join), ODD, st.text(max_size=30)), st.one_of(TITLES, st.lists(ODD, max_size=3))
)
@example("x A b A B", ["A b A"])
@example("the heat wave and the heat Heat’s Wave", ["Heat Wave"])  # noqa: RUF001
@example("in Straße", ["STRASSE"])
@example("Heat™ Wave", ["Heat Wave"])
@example("ab a b A b", ["A b"])
@example("Ne\u0301\u0301e-a\u0301", ["Nee A"])
@example("\u0301Heat \u0301 Wave", ["Heat Wave"])
def test_a_text_that_mentions_a_title_may_mention_it(text: str, titles: list[str]) -> None:
    surfaces = [surface for title in titles if (surface := surface_of(title, 1)) is not None]
    for surface in surfaces:
        if SurfaceMatcher([(0, surface)]).mentions(text):
            assert holds_one(text, [Phrase(surface)], [0])


def test_what_is_not_there_or_begins_in_lower_case_is_not_read() -> None:
    phrase = Phrase(surface_of("Heat Wave"))  # type: ignore[arg-type]
    for text in ("Wave of Heat", "the heat wave", "Heatwave", "Hêat", "Heat", ""):
        assert not holds_one(text, [phrase], [0])
    assert holds_one("a Hêat-wave", [phrase], [0])
    assert not holds_one("Heat Wave", [phrase], [])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Cafe\u0301 Ngu\u1ec5n \u00c5", "Cafe Nguen A"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\u304c\u304f", "\u304c\u304f"),
        ("\uc11c\uc6b8", "\uc11c\uc6b8"),
    ],
    ids=["Latin", "Hebrew", "Japanese", "Korean"],
)
def test_accents_and_points_are_left_out_and_what_makes_another_letter_is_kept(text: str, plain: str) -> None:
    assert unaccented(text) == plain


@given(st.text(max_size=30))
def test_no_text_keeps_an_accent(text: str) -> None:
    assert not any("\u0300" <= c <= "\u036f" for c in unicodedata.normalize("NFD", unaccented(text)))
