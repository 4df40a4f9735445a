"""The lists of every query, as a block of data that the page's script opens: any two configurations side by side.

A list is shown to its tenth hit. The content of the block is shown as text, never as markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import Listing, RunLists
from nlp_retrieval.text.printing import printable, visible

DEPTH = 10
LONGEST = 300
"""Characters of a text."""

_FEWEST = 5

Values = Mapping[str, Mapping[str, Scores]]
"""``[queries]`` by configuration and measure."""


@dataclass(frozen=True)
class Block:
    """The data: base64 of deflated JSON, the number of queries in it, and whether signals and texts are."""

    text: str
    queries: int
    signals: bool
    texts: bool


def explorer_block(lists: RunLists, values: Values, main: str, limit: int, least: int) -> Block | None:
    """Return as much of the lists as fits, with gold of ``least`` and above; None if those of five queries do not."""
    shared = [key for key in next(iter(values.values())) if all(key in values[name] for name in lists.listings)]
    main = main if main in shared else shared[0]
    keys = list(dict.fromkeys([main, *(key for key in shared if key in (f"recall@{DEPTH}", f"ndcg@{DEPTH}"))]))
    number = len(lists.query_ids)
    every = np.arange(number)
    text = ""
    for signals, texts in ((True, True), (False, True), (False, False)):
        if len(text := _packed(lists, values, keys, every, least, signals=signals, texts=texts)) <= limit:
            return Block(text, number, signals, texts)
    columns = np.stack([values[name][main] for name in lists.listings])
    by_change = np.argsort(-np.nan_to_num(columns.max(axis=0) - columns.min(axis=0)), kind="stable")
    while (number := min(number - 1, int(0.9 * number * limit / len(text)))) >= _FEWEST:
        text = _packed(lists, values, keys, np.sort(by_change[:number]), least, signals=False, texts=True)
        if len(text) <= limit:
            return Block(text, number, signals=False, texts=True)
    return None


def _packed(lists: RunLists, values: Values, keys: list[str], queries: Rows, least: int, *, signals: bool, texts: bool) -> str:
    names, chosen = list(lists.listings), queries.tolist()
    columns = list(dict.fromkeys(key for listing in lists.listings.values() for key in listing.signals)) if signals else []
    places: dict[int, int] = {}
    gold = [lists.gold_of(query, least) for query in chosen]
    content = {
        "configurations": list(map(printable, names)),
        "signals": list(map(printable, columns)),
        "queries": [printable(lists.query_ids[query]) for query in chosen],
        "texts": [printable(lists.texts[query]) for query in chosen],
        "groups": [printable(lists.groups[query] or "") for query in chosen],
        "measures": [Measure.parse(key).label for key in keys],
        "values": [[rounded(values[name][key][queries]) for name in names] for key in keys],
        "gold": [{places.setdefault(item, len(places)): grade for item, grade in own.items()} for own in gold],
        "lists": [[_hits(listing, query, columns, places) for listing in lists.listings.values()] for query in chosen],
    }
    ids = [lists.item_ids[item] for item in places]
    content["ids"] = list(map(printable, ids))
    content["titles"] = [printable(lists.titles[item]) for item in places]
    content["passages"] = [_cut(visible(lists.passages.get(item_id, "")).strip()) for item_id in ids] if texts else []
    return packed(content)


def packed(content: object) -> str:
    """Return plain values as JSON, deflated, in base64."""
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(zlib.compress(written, 9)).decode()


def _hits(listing: Listing, query: int, columns: Sequence[str], places: dict[int, int]) -> list[object]:
    """The items of a list, and their scores and signals; null for a signal that the configuration does not have."""
    here = listing.of(query)
    here = slice(here.start, min(here.stop, here.start + DEPTH))
    signals = [rounded(listing.signals[key][here]) if key in listing.signals else None for key in columns]
    return [
        [places.setdefault(item, len(places)) for item in listing.items[here].tolist()],
        rounded(listing.scores[here]),
        *signals,
    ]


def rounded(values: Scores) -> list[float | None]:
    """Return values to four significant digits; None for those that are not finite."""
    return [float(f"{value:.4g}") if abs(value) < 1e300 else None for value in values.tolist()]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
