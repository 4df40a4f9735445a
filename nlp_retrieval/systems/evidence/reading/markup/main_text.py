"""Which lines of a page belong to its main text.

trafilatura says where the main text is; of the element that holds it, and of all that stands between its first and last line,
everything is kept but what is navigation by its tag, its role, its class or its links, and what trafilatura did not take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from nlp_retrieval.systems.evidence.reading.markup.blocks import Line, block_text

__all__ = ["main_lines"]

_LEAST_MAIN_TEXT = 250
"""Characters; with less, it is not clear that the main text was found. Trafilatura's own default for the same question."""

_LEAST_PART = 0.5
"""Of the words that are no navigation; where the main text has fewer, they are all read."""

_MOST_OF_IT = 0.9
_FEWEST_WORDS = 6
_FEWEST_LINKS = 3
_NAVIGATION = frozenset("nav aside footer form menu search button".split())
_ROLES = frozenset("navigation complementary search banner contentinfo menu menubar toolbar tablist dialog alertdialog".split())


def main_lines(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Return which lines belong to the main text.

    Args:
        page: the root of the page, without its hidden parts; it is not changed.
        lines: of its body, in order.
    """
    taken = _taken(page, lines)
    if sum(len(line.text) for line, one in zip(lines, taken, strict=True) if one) < _LEAST_MAIN_TEXT:
        return [True] * len(lines)
    navigation = _navigation(page, lines)
    first, last = taken.index(True), len(taken) - 1 - taken[::-1].index(True)
    inside = _inside(lines, taken)
    kept = [
        one or (not aside and (first <= place <= last or within))
        for place, (one, aside, within) in enumerate(zip(taken, navigation, inside, strict=True))
    ]
    counts = [len(line.text.split()) or 1 for line in lines]
    held = sum(count for count, keep in zip(counts, kept, strict=True) if keep)
    besides = sum(count for count, aside in zip(counts, navigation, strict=True) if not aside)
    if held < _LEAST_PART * besides:
        return [keep or not aside for keep, aside in zip(kept, navigation, strict=True)]
    return kept


def _taken(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Which lines trafilatura takes for the main text."""
    from trafilatura import bare_extraction

    found: Any = bare_extraction(page, include_comments=False, include_tables=True, deduplicate=False)
    if found is None or found.body is None:
        return [False] * len(lines)
    text = block_text(found.body)
    whole = {_plain(line) for line in text.split("\n")} - {""}
    there = set(text.casefold().split())
    return [_plain(line.text) in whole or _is_among(line.text, there) for line in lines]


def _plain(line: str) -> str:
    return "".join(char for char in line if char.isalnum()).casefold()


def _is_among(line: str, there: set[str]) -> bool:
    """Whether the words of a long line are there, as where two lines were joined."""
    words = line.casefold().split()
    return len(words) >= _FEWEST_WORDS and sum(word in there for word in words) >= _MOST_OF_IT * len(words)


def _inside(lines: Sequence[Line], taken: Sequence[bool]) -> list[bool]:
    """Which lines stand in the innermost element that holds most of the main text."""
    weights: Counter[Any] = Counter()
    for line, one in zip(lines, taken, strict=True):
        if one:
            for around in _around(line.element):
                weights[around] += len(line.text)
    most = _MOST_OF_IT * max(weights.values())
    holding = {around for around, weight in weights.items() if weight >= most}
    innermost = max(holding, key=lambda one: sum(1 for _ in one.iterancestors()))
    return [any(around is innermost for around in _around(line.element)) for line in lines]


def _around(element: Any) -> list[Any]:
    return [element, *element.iterancestors()]


def _navigation(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Which lines are navigation, comments of readers or advertisements."""
    from trafilatura.xpaths import OVERALL_DISCARD_XPATH, REMOVE_COMMENTS_XPATH

    aside = {one for path in (*OVERALL_DISCARD_XPATH, *REMOVE_COMMENTS_XPATH) for one in path(page)}
    for one in page.iter():
        role = one.get("role", "").strip().lower() if isinstance(one.tag, str) else ""
        header = one.tag == "header" and not any(around.tag in ("article", "main") for around in one.iterancestors())
        if one.tag in _NAVIGATION or role in _ROLES or (header and one.find(".//h1") is None):
            aside.add(one)
    aside |= _link_lists(page)
    # what holds most of the page is no navigation, whatever it is called
    length = sum(len(line.text) for line in lines)
    weights: Counter[Any] = Counter()
    for line in lines:
        for around in _around(line.element):
            if around in aside:
                weights[around] += len(line.text)
    aside = {one for one in aside if weights[one] <= length / 2}
    return [any(around in aside for around in _around(line.element)) for line in lines]


def _link_lists(page: Any) -> set[Any]:
    """Lists and other boxes whose text is links."""
    lengths: dict[Any, list[int]] = {}
    for link in page.iter("a"):
        size = sum(len(text.strip()) for text in link.itertext())
        for around in link.iterancestors():
            entry = lengths.setdefault(around, [0, 0])
            entry[0] += size
            entry[1] += 1
    found = set()
    for one, (size, count) in lengths.items():
        if count >= _FEWEST_LINKS and one.tag in ("ul", "ol", "div", "p", "td", "section", "table", "tr"):
            total = sum(len(text.strip()) for text in one.itertext())
            if size >= _MOST_OF_IT * total:
                found.add(one)
    return found
