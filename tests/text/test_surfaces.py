"""Surfaces: which titles count, and where a text mentions them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from retrievers.link_graph.corpora import passage

from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.surfaces import (
    Surface,
    SurfaceMatcher,
    first_mention,
    surface_of,
    surfaces_of,
)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Heat (1995 film)", "heat"),
        ("Heat (film (1995))", "heat"),
        ("(Untitled)", "untitled"),
        ("Schindler's List", "schindler list"),
        ("Spider-Man: Far_from Home", "spider man far from home"),
        ("Beyonce\u0301", "beyonce"),
        ("Stra\u00dfe", "strasse"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("iPod", "ipod"),
    ],
)
def test_a_surface_is_the_words_of_a_title_without_its_qualifier(title: str, words: str) -> None:
    surface = surface_of(title)
    assert surface is not None
    assert surface.words == tuple(unicodedata.normalize("NFKD", words).split())


@pytest.mark.parametrize(
    "title",
    ["", "?!", "Up", "1984", "This"],
)
def test_titles_that_would_be_mentioned_by_chance_or_have_no_words_do_not_count(title: str) -> None:
    assert surface_of(title) is None


def test_aliases_are_surfaces_as_titles_are_and_anything_else_is_none() -> None:
    assert [surface.words for surface in surfaces_of(passage("Heat (film)", aliases="Los Angeles Heat"))] == [
        ("heat",),
        ("los", "angeles", "heat"),
    ]
    assert len(surfaces_of(passage("Heat", aliases=["HEAT", "Heat!", "It", "Hitze"]))) == 2
    for wrong in (7, None, {"a": "Heat"}, [1, None, ["Heat"]], "", []):
        assert surfaces_of(passage(wrong, item_id="x", aliases=wrong)) == []


def test_a_first_mention_is_hidden_by_a_longer_title_and_by_an_equal_one() -> None:
    york, city = Surface(("new", "york")), Surface(("new", "york", "city"))
    assert first_mention("New York City, then New York.", [york]) == (0, 8)
    assert first_mention("New York City, then New York.", [york], [city]) == (20, 28)
    assert first_mention("New York.", [york], [york]) is None
    assert first_mention("New York.", []) is None


# an independent reading of the same rules, one surface and one place at a time

WORDS = st.sampled_from(["New", "new", "York", "york", "City", "iPod", "É", "e\u0301", "a", "A", "2", "The", "the", "s"])
TEXT = st.lists(WORDS | st.sampled_from(["-", "'s", "\u2019S", ".", "(", ")", "'", "_", "🦊"]), max_size=14)
TITLES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), max_size=6)


def plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()


def names(word: str) -> bool:
    """Whether a word beside another makes a longer name of it."""
    return (word[0].isupper() or word[0].isdecimal()) and plain(word) not in FUNCTION_WORDS


def naive(text: str, titles: list[str]) -> list[tuple[set[int], int, int]]:
    """Every word of a text tried against every title: the rows, the beginning and the end of the mentions."""
    spans, place = [], 0
    while place < len(text):
        end = place
        while end < len(text) and (text[end].isalnum() or (end > place and unicodedata.combining(text[end]))):
            end += 1
        if end > place:
            spans.append((place, end))
            owned = text[end : end + 2].lower() in ("'s", "\u2019s") and not text[end + 2 : end + 3].isalnum()
            end += 2 * owned
        place = max(end, place + 1)
    words = [plain(text[start:end]) for start, end in spans]
    found, number = [], 0
    while number < len(words):
        best: dict[int, set[int]] = {}
        for row, title in enumerate(titles):
            wanted = plain(title).split()
            if len(wanted) == 1 and (wanted[0].isdecimal() or wanted[0] in FUNCTION_WORDS):
                continue
            fits = words[number : number + len(wanted)] == wanted
            if fits and (title[0].islower() or not text[spans[number][0]].islower()):
                best.setdefault(len(wanted), set()).add(row)
        if best:
            length = max(best)
            start, end = spans[number][0], spans[number + length - 1][1]
            before, after = (
                [text[slice(*span)] for span in spans[:number]],
                [text[slice(*span)] for span in spans[number + 1 :]],
            )
            joined = [
                before and text[spans[number - 1][1] : start] == "-",
                after and text[end : spans[number + length][0]] == "-" if length == 1 else False,
                before and text[spans[number - 1][1] : start] == " " and names(before[-1]),
                after and length == 1 and text[end : spans[number + 1][0]] == " " and names(after[0]),
            ]
            if length > 1 or not any(joined):
                found.append((best[length], start, end))
            number += length
        else:
            number += 1
    return found


@example(["New", "York", "City"], ["New York", "new york city", "York City"], " ")
@example(["e\u0301", "'s", "A"], ["É", "A"], "")
@given(TEXT, TITLES, st.sampled_from([" ", "", "-", ", "]))
def test_mentions_are_those_of_a_naive_reading(parts: list[str], titles: list[str], between: str) -> None:
    text = between.join(parts)
    matcher = SurfaceMatcher((row, surface) for row, title in enumerate(titles) if (surface := surface_of(title, 1)))
    found = [
        (set(matcher.rows[matcher.offsets[number] : matcher.offsets[number + 1]].tolist()), start, end)
        for number, start, end in matcher.mentions(text)
    ]
    assert found == naive(text, titles)
