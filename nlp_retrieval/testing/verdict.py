"""Reports of a broken rule: the rule, the component, and the values that broke it; and the comparison of results."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.errors import RetrievalWarning

_SHOWN = 600
_THREADS = 8
_ROUNDS = 4

ResultT = TypeVar("ResultT")


class BrokenRuleError(AssertionError):
    """A component broke a rule; the message names the rule, the component and the values."""


def broken(rule: str, component: object, seen: str) -> NoReturn:
    """Report a broken rule.

    Args:
        rule: the expected behaviour, as one sentence.
        component: the component that broke it.
        seen: the actual behaviour, with the values.

    Raises:
        BrokenRuleError: always.
    """
    __tracebackhide__ = True
    raise BrokenRuleError(f"rule broken: {rule}\n  component: {component!r}\n  found: {seen}")


def shown(value: object) -> str:
    """Return a value's ``repr``, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"


def ids_of(results: Sequence[RetrievalResult]) -> list[str]:
    """Return the item ids of results, in order."""
    return [result.item.item_id for result in results]


def pairs_of(results: Sequence[RetrievalResult]) -> list[tuple[str, float]]:
    """Return item id and score of results, in order."""
    return [(result.item.item_id, result.score) for result in results]


def close(first: float, second: float, tolerance: float) -> bool:
    """Return whether two scores are equal within a tolerance: relative if they are above 1, absolute below."""
    return first == second or abs(first - second) <= tolerance * max(1.0, abs(first), abs(second))


def difference(first: Sequence[RetrievalResult], second: Sequence[RetrievalResult], tolerance: float) -> str | None:
    """Return how two lists differ; None if they do not.

    The items are the same, their scores differ by at most the tolerance, and the order differs only where scores are that
    close.
    """
    mine, its = dict(pairs_of(first)), dict(pairs_of(second))
    if mine.keys() != its.keys() or len(first) != len(second):
        return f"{shown(pairs_of(first))} against {shown(pairs_of(second))}"
    for item_id, score in mine.items():
        if not close(score, its[item_id], tolerance):
            return f"{item_id!r} scored {score!r} against {its[item_id]!r} (tolerance {tolerance:g})"
    for left, right in zip(ids_of(first), ids_of(second), strict=True):
        if left != right and not (tolerance and close(mine[left], mine[right], 2 * tolerance)):
            return f"{left!r} stands where {right!r} stood: {shown(pairs_of(first))} against {shown(pairs_of(second))}"
    return None


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings about skipped texts and items: these have their own rules.

    Warning filters are global to the process, so threads other than the main one leave them unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        yield


def in_threads(calls: Sequence[Callable[[], ResultT]]) -> Iterator[tuple[int, ResultT]]:
    """Make different calls in eight threads that run at once, each call several times.

    Yields:
        The number of a call, and its result.
    """
    with without_warnings(), ThreadPoolExecutor(_THREADS) as pool:
        runs = [(number, pool.submit(call)) for _ in range(_ROUNDS) for number, call in enumerate(calls)]
        for number, run in runs:
            yield number, run.result()


# The kit's own corpus, queries and filters: small, and with difficult cases for engines.


_WORD = re.compile(r"\w+")
_STEM = 4

Predicate = Callable[[Mapping[str, Any]], bool]


def _item(item_id: str, content: str, title: str = "", **metadata: object) -> SearchableItem:
    title_if_any = {"title": title} if title else {}
    return SearchableItem.model_validate({"item_id": item_id, "content": content, "metadata": {**title_if_any, **metadata}})


_TWIN = "A copper lantern hangs over the narrow gate."

ITEMS: tuple[SearchableItem, ...] = (
    _item(
        "orrin", "The lighthouse keeper at Cape Orrin wrote a novel about storms.", "Cape Orrin", country="Norway", year=1931
    ),
    _item("twin-c", _TWIN, country="Peru", year=1990, tags=["metal"]),
    _item("velda", "Velda Marsh painted the lighthouse of Cape Orrin twice.", "Velda Marsh", country="Norway", year=1948),
    _item("glacier-1", "A glacier moves slowly; this glacier moved a village.", country="Peru", year=2001, tags=["ice"]),
    _item("empty", "", country="Japan", year=1700),
    _item(
        "tokyo", "東京 has a garden where Velda Marsh once slept. 🦊", "東京", country="Japan", year=2015, tags=["sea", "ice"]
    ),
    _item("twin-a", _TWIN, country="Peru", year=1990, tags=["metal"]),
    _item("lodz", "Łódź kept one weaving mill — Köln kept none.", "Łódź", country="Poland", year=1890, tags=["mill"]),
    _item("titled", "", "Saddle and Thunder", country="Nauru", verified=True),
    _item("glacier-2", "Snow on the glacier.", country="Norway", year=1999, tags=["ice"], verified=False),
    _item("long", "Walnut ribbon marble orchard. " * 150 + "At last a harpsichord.", "An Inventory", year=1650),
    _item("ids/../odd id", "The odd pepper merchant sold saffron.", country="Peru", year=-5, verified=True),
    _item("twin-b", _TWIN, country="Peru", year=1990, tags=["metal"]),
    _item("syntax", 'Write title:"saffron" AND (mill) OR 1=1; -- %s {x} \\ * ~', country="O'Hara", year=1970),
    _item("blank", " \n\t\u3000\u200b", country="Peru"),
    _item("marks", "?! … *** — ___", country="Norway"),
)
"""In the order of their rows."""

QUERIES: Mapping[str, str | None] = {
    "Who kept the lighthouse at Cape Orrin?": "orrin",
    "copper lantern": "twin-c",
    "glacier": "glacier-1",
    "Łódź weaving": "lodz",
    "東京 garden": "tokyo",
    "harpsichord": "long",
    "saddle thunder": "titled",
    'title:"saffron" AND (pepper OR *) ~ \\ % -- \' {x} [1 TO 2]': "ids/../odd id",
    "lighthouse glacier copper mill": None,
}
"""Queries, each with an item that must be among the hits if all items are requested."""

UNKNOWN = "zyzzyva qoxwhutl"
"""A query of words that occur nowhere."""

SILENT = ("", "   ", "?! …", "___")
"""Queries without content: neither a letter nor a digit."""

STOP_WORDS_ALONE = ("the", "Of the AND", "To be, or not to be?")
"""Queries of words that some engines ignore."""

WITHOUT_TEXT = ("empty", "blank", "marks")
"""Items that are never found."""

TWINS = ("twin-c", "twin-a", "twin-b")
"""Items that differ only in their ids, in the order of their rows."""

FILTERS: tuple[tuple[Mapping[str, Any], Predicate], ...] = (
    ({"country": "Norway"}, lambda of: of.get("country") == "Norway"),
    ({"year": {"gte": 1948, "lt": 2001}}, lambda of: 1948 <= of.get("year", 0) < 2001),
    ({"tags": "ice"}, lambda of: "ice" in of.get("tags", [])),
    ({"country": {"in": ["Japan", "O'Hara"]}}, lambda of: of.get("country") in ("Japan", "O'Hara")),
    ({"not": {"country": "Peru"}}, lambda of: of.get("country") != "Peru"),
    (
        {"or": [{"verified": True}, {"year": {"lt": 1700}}]},
        lambda of: of.get("verified") is True or of.get("year", 1700) < 1700,
    ),
    ({"country": "Poland"}, lambda of: of.get("country") == "Poland"),
    ({"verified": {"exists": False}, "tags": {"exists": True}}, lambda of: "verified" not in of and "tags" in of),
    ({"year": {"gt": 9999}}, lambda _: False),
)
"""Filters, and the equivalent test of an item's metadata."""


def shares_a_word(query: str, item: SearchableItem) -> bool:
    """Return whether a query and an item share a word other than stop words; equal beginnings match, as with stemming."""
    return bool(_stems(query) & _stems(item.text))


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS}
