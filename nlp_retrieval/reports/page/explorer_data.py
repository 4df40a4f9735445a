"""What the query explorer of the page shows, in one compact block: JSON and numbers, deflated, in base64.

Lists are cut to a depth, and scores and signals rounded to four significant digits; nothing else is lost. Where the block
would be larger than the page may be, lists are cut shorter first, then signals are left out, and where not even that is
enough, only the queries are kept in which configurations differ most.

The block is the length of the JSON (four bytes, the lowest first), the JSON in UTF-8, and the numbers: the upper bytes of all
exponents, their lower bytes, and the same of the mantissas, both 16 bits and signed. A number is mantissa times 10 to its
exponent, and the exponent :data:`NOTHING` is no number.

Per query, ``pool`` holds the items of its lists and its gold, and all else refers to places in it. The numbers are in
streams, one after another: the first of the scores, then one for each signal; in each stand the queries in order.
Configurations often share a signal, so a query has for each signal in ``shared`` first its value for every item of the
pool, as the first configuration has it that has the item. Then comes, for each configuration in ``own``, a column for each
hit: of the scores always, and of a signal only where it is named there as not the same.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.evaluation.rankings import Listing, RunLists
from nlp_retrieval.reports.columns import split_measure
from nlp_retrieval.text.printable import printable

__all__ = ["Block", "explorer_block", "explorer_depth", "explorer_measures", "packed_numbers", "unpacked"]

FORMAT = 1
DIGITS = 4
NOTHING = -32768
"""The exponent of what is no number."""

_SAMPLE = 200  # queries
_FEWEST = 20  # queries
_MARGIN = 0.7  # items and words that queries share weigh less among many
_DEPTH = 10
_LEAST_DEPTH = 5

_LARGEST = 1.797e308  # of four digits that float64 holds
Values = Mapping[str, Mapping[str, Scores]]
"""``[queries]`` by configuration and measure."""

_BASE = 2**16  # a packed number is its mantissa times this, and its exponent


@dataclass(frozen=True)
class Block:
    """The data of the explorer.

    Args:
        text: base64 of the deflated JSON.
        depth: how many hits of each list it holds.
        has_signals: whether it holds their signals.
        queries: how many it holds.
    """

    text: str
    depth: int
    has_signals: bool
    queries: int


def explorer_depth(k_values: Sequence[int]) -> int:
    """Return how deep lists are shown: the smallest cutoff of at least 10, or the largest there is.

    Args:
        k_values: the cutoffs of the run.
    """
    return min((k for k in k_values if k >= _DEPTH), default=max(k_values, default=_DEPTH))


def explorer_measures(measures: Sequence[str]) -> list[str]:
    """Return which measures are shown of every query: recall at each cutoff, and three more at the largest.

    Args:
        measures: those there are, such as ``"recall@5"``.
    """
    cuts = [int(cutoff) for _, cutoff in map(split_measure, measures) if cutoff.isdecimal()]
    largest = [f"{family}@{max(cuts, default=0)}" for family in ("perfect_recall", "ndcg", "mrr")]
    recalls = sorted((key for key in measures if split_measure(key)[0] == "recall"), key=lambda key: int(split_measure(key)[1]))
    return [*recalls, *(key for key in largest if key in measures)]


def explorer_block(lists: RunLists, values: Values, k_values: Sequence[int], limit: int) -> Block | None:
    """Return the data, as much as fits; None where the lists of twenty queries do not.

    Args:
        lists: of a run.
        values: ``[queries]`` by configuration and measure.
        k_values: the cutoffs of the run.
        limit: the most characters that the block may have.
    """
    wanted, n_queries = explorer_depth(k_values), len(lists.query_ids)
    least = min(_LEAST_DEPTH, wanted)
    sample = np.linspace(0, n_queries - 1, min(_SAMPLE, n_queries)).astype(np.int64)
    few = _only(lists, values, sample)
    choices = [(depth, True) for depth in range(wanted, least - 1, -1)]
    choices += [(depth, False) for depth in sorted({wanted, least}, reverse=True)]
    for depth, signals in choices:
        # what a sample of queries takes tells at once that all of them are far too many
        if len(few[0].query_ids) < n_queries and _size(few, k_values, depth, signals) * n_queries > limit / _MARGIN:
            continue
        text = _packed(lists, values, k_values, depth, signals=signals)
        if len(text) <= limit:
            return Block(text, depth, signals, n_queries)
    kept = min(n_queries, int(limit / _size(few, k_values, wanted, signals=True)))
    order = _most_different(values, k_values)
    while kept >= _FEWEST:
        text = _packed(*_only(lists, values, np.sort(order[:kept])), k_values, wanted, signals=True)
        if len(text) <= limit:
            return Block(text, wanted, has_signals=True, queries=kept)
        kept = kept * 9 // 10
    return None


def _size(few: tuple[RunLists, Values], k_values: Sequence[int], depth: int, signals: bool) -> float:
    """Characters that one of a few queries takes."""
    return len(_packed(*few, k_values, depth, signals=signals)) / max(1, len(few[0].query_ids))


def _most_different(values: Values, k_values: Sequence[int]) -> Rows:
    """The numbers of the queries, those first in which recall at the largest cutoff differs most."""
    recalls = np.stack([one[f"recall@{max(k_values)}"] for one in values.values()])
    return np.argsort(-np.nan_to_num(recalls.max(axis=0) - recalls.min(axis=0)), kind="stable")


def _only(lists: RunLists, values: Values, queries: Rows) -> tuple[RunLists, Values]:
    """Some queries of a run, with their lists and measures."""
    listings = {}
    for name, one in lists.listings.items():
        kept, lengths = _within(one.offsets, queries)
        signals = {key: column[kept] for key, column in one.signals.items()}
        listings[name] = Listing(offsets_of(lengths), one.items[kept], one.scores[kept], signals)
    gold, lengths = _within(lists.gold_offsets, queries)
    some = replace(
        lists,
        query_ids=[lists.query_ids[query] for query in queries.tolist()],
        texts=[lists.texts[query] for query in queries.tolist()],
        families=[lists.families[query] for query in queries.tolist()],
        groups=[lists.groups[query] for query in queries.tolist()],
        gold_offsets=offsets_of(lengths),
        gold_items=lists.gold_items[gold],
        gold_grades=lists.gold_grades[gold],
        listings=listings,
    )
    return some, {name: {key: column[queries] for key, column in one.items()} for name, one in values.items()}


def _within(offsets: Rows, queries: Rows) -> tuple[Rows, Rows]:
    """The places that some queries own, and how many each does."""
    lengths = np.diff(offsets)[queries]
    begins = np.repeat(offsets[queries] - np.cumsum(lengths) + lengths, lengths)
    return begins + np.arange(len(begins)), lengths


def packed_numbers(values: Scores) -> Rows:
    """Return values to four significant digits, each packed into one integer; equal ones into equal integers.

    Args:
        values: ``[any]``; what is not finite becomes nothing.
    """
    finite = np.isfinite(values)
    known = np.clip(np.where(finite, values, 0.0), -_LARGEST, _LARGEST)
    size = np.abs(known)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0))).astype(np.int64) - (DIGITS - 1)
    # a whole number that is short enough stays one: ranks then pack better
    exponent = np.where((known == np.rint(known)) & (size < 10**DIGITS), 0, exponent)
    # by halves, because 10**323 is no number
    half = exponent // 2
    mantissa = np.rint(known / 10.0**half / 10.0 ** (exponent - half)).astype(np.int64)
    return np.where(finite, mantissa * _BASE + exponent - NOTHING, 0)


def unpacked(packed: int) -> float | None:
    """Return a packed number as the float nearest to it, or None.

    Args:
        packed: of :func:`packed_numbers`.
    """
    mantissa, exponent = divmod(packed, _BASE)
    return float(f"{mantissa}e{exponent + NOTHING}") if exponent else None


def _packed(lists: RunLists, values: Values, k_values: Sequence[int], depth: int, *, signals: bool) -> str:
    names = list(lists.listings)
    measures = explorer_measures([key for key in values[names[0]] if all(key in values[name] for name in names)])
    keys = list(dict.fromkeys(key for one in lists.listings.values() for key in one.signals)) if signals else []
    kept = _Kept(lists, keys, depth)
    content = {
        "format": FORMAT,
        "depth": depth,
        "cutoffs": sorted({k for k in k_values if k < depth} | {depth}),
        "configurations": list(map(printable, names)),
        "signals": list(map(printable, keys)),
        "has": [[place for place, key in enumerate(keys) if key in lists.listings[name].signals] for name in names],
        "ids": [printable(lists.item_ids[item]) for item in kept.items],
        "titles": [_title(lists, item) for item in kept.items],
        "queries": list(map(printable, lists.query_ids)),
        "texts": list(map(printable, lists.texts)),
        "groups": [None if group is None else printable(group) for group in lists.groups],
        "measures": measures,
        "values": [[list(map(unpacked, packed_numbers(values[name][key]).tolist())) for name in names] for key in measures],
        "lists": kept.queries,
        "streams": list(map(len, kept.streams)),
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    numbers = np.array(list(chain.from_iterable(kept.streams)), np.int64)
    halves = np.stack([numbers % _BASE + NOTHING, numbers // _BASE]).astype(">i2")
    planes = halves.view(np.uint8).reshape(2, -1, 2).transpose(0, 2, 1).tobytes()
    return base64.b64encode(zlib.compress(len(written).to_bytes(4, "little") + written + planes)).decode()


def _title(lists: RunLists, item: int) -> str:
    return "" if lists.titles[item] == lists.item_ids[item] else printable(lists.titles[item])


class _Kept:
    """The lists of every query, cut to a depth, with the items that stand in them or are gold.

    Args:
        lists: of a run.
        keys: signals to keep.
        depth: how many hits of each list.
    """

    def __init__(self, lists: RunLists, keys: Sequence[str], depth: int) -> None:
        self.items: list[int] = []
        self.streams: list[list[int]] = [[] for _ in range(len(keys) + 1)]
        self._place: dict[int, int] = {}
        self._depth = depth
        self._columns = []
        for listing in lists.listings.values():
            signals = [
                (place, packed_numbers(listing.signals[key]).tolist())
                for place, key in enumerate(keys, start=1)
                if key in listing.signals
            ]
            scores = packed_numbers(listing.scores).tolist()
            self._columns.append((listing.offsets.tolist(), listing.items.tolist(), scores, signals))
        self.queries = [self._query(lists.gold_of(query), query) for query in range(len(lists.query_ids))]

    def _query(self, gold: dict[int, int], query: int) -> dict[str, object]:
        pool: dict[int, int] = {}
        shared: dict[int, dict[int, int]] = {}
        apart: list[tuple[int, list[int]]] = []
        own = []
        for offsets, items, scores, signals in self._columns:
            here = slice(offsets[query], min(offsets[query] + self._depth, offsets[query + 1]))
            places = [pool.setdefault(item, len(pool)) for item in items[here]]
            self.streams[0] += scores[here]
            differing = []
            for position, (stream, column) in enumerate(signals):
                values, first = column[here], shared.setdefault(stream, {})
                if values != [first.setdefault(place, value) for place, value in zip(places, values, strict=True)]:
                    differing.append(position)
                    apart.append((stream, values))
            own.append([places, differing])
        golds = [pool.setdefault(item, len(pool)) for item in gold]
        for stream, first in shared.items():
            self.streams[stream] += [first.get(place, 0) for place in range(len(pool))]
        for stream, values in apart:
            self.streams[stream] += values
        return {
            "pool": [self._at(item) for item in pool],
            "gold": golds,
            "grades": list(gold.values()),
            "shared": [stream - 1 for stream in shared],
            "own": own,
        }

    def _at(self, item: int) -> int:
        place = self._place.setdefault(item, len(self.items))
        if place == len(self.items):
            self.items.append(item)
        return place
