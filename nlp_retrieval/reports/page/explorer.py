"""The part of the page that shows why rankings differ: which configuration finds the gold, and any two lists of a query.

The lists are in a block of data that the page's own script opens. The content of the block is shown as text, never as markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.ranking_difference import measured
from nlp_retrieval.evaluation.rankings import LONGEST_TEXT, Listing, RunLists
from nlp_retrieval.reports.page.templating import rendered
from nlp_retrieval.reports.snippets import common_words
from nlp_retrieval.text.printing import printable, visible

_DIGITS = 4
_SAMPLE = 200  # queries
_FEWEST = 20  # queries
_MARGIN = 0.7  # items and words shared by queries take relatively less space with many queries
_DEPTH = 10
_LEAST_DEPTH = 5

_LARGEST = 1.797e308  # largest float64 value with four digits
_WHOLE = 2.0**53  # below it float64 holds every whole number
_EXACT = 22  # 10 to this is the largest power that float64 holds exactly
Values = Mapping[str, Mapping[str, Scores]]
"""``[queries]`` by configuration and measure."""

_Columns = tuple[list[int], list[int], list[list[float | None]]]
"""Start of each query's hits, and the items, scores and signals of all hits, cut to a depth."""


@dataclass(frozen=True)
class Block:
    """The data of the explorer.

    Args:
        text: base64 of the deflated JSON.
        depth: number of hits stored of each list.
        has_signals: whether it holds their signals.
        queries: number of queries stored.
        items: the ids of the items in it, in its order.
    """

    text: str
    depth: int
    has_signals: bool
    queries: int
    items: Sequence[str] = ()


def explorer_depth(k_values: Sequence[int]) -> int:
    """Return the depth of the lists shown: the smallest cutoff of at least 10, or the largest there is."""
    return min((k for k in k_values if k >= _DEPTH), default=max(k_values, default=_DEPTH))


def explorer_measures(measures: Sequence[str], main: str = "") -> list[str]:
    """Return the measures shown for every query: recall at each cutoff, three more at the largest, and the main one."""
    parsed = list(map(Measure.parse, measures))
    cuts = [measure.cutoff for measure in parsed if measure.cutoff is not None]
    largest = [str(Measure(family, max(cuts, default=0))) for family in ("perfect_recall", "ndcg", "mrr")]
    recalls = sorted(measure.cutoff for measure in parsed if measure.family == "recall" and measure.cutoff is not None)
    return list(dict.fromkeys([*(str(Measure("recall", k)) for k in recalls), *(k for k in [*largest, main] if k in measures)]))


def explorer_block(lists: RunLists, values: Values, k_values: Sequence[int], limit: int, main: str = "") -> Block | None:
    """Return as much of the data as fits; None if the lists of twenty queries do not.

    Args:
        lists: lists of a run.
        values: ``[queries]`` by configuration and measure.
        k_values: the cutoffs of the run.
        limit: maximum characters of the block.
        main: the measure by which queries are chosen if not all fit; by default recall at the largest cutoff.
    """
    wanted, n_queries = explorer_depth(k_values), len(lists.query_ids)
    least = min(_LEAST_DEPTH, wanted)
    sample = np.linspace(0, n_queries - 1, min(_SAMPLE, n_queries)).astype(np.int64)
    few = _only(lists, values, sample)
    choices = [(depth, True) for depth in range(wanted, least - 1, -1)]
    choices += [(depth, False) for depth in sorted({wanted, least}, reverse=True)]
    for depth, signals in choices:
        # the size of a sample of queries shows at once whether all of them are far too many
        sampled = len(few[0].query_ids)
        if sampled < n_queries and _size(few, k_values, depth, main, signals=signals) * n_queries > limit / _MARGIN:
            continue
        text, items = _packed(lists, values, k_values, depth, main, signals=signals)
        if len(text) <= limit:
            return Block(text, depth, signals, n_queries, items)
    kept = min(n_queries, int(limit / _size(few, k_values, wanted, main, signals=True)))
    order = _most_different(values, main or f"recall@{max(k_values)}")
    while kept >= _FEWEST:
        text, items = _packed(*_only(lists, values, np.sort(order[:kept])), k_values, wanted, main, signals=True)
        if len(text) <= limit:
            return Block(text, wanted, has_signals=True, queries=kept, items=items)
        kept = kept * 9 // 10
    return None


def _size(few: tuple[RunLists, Values], k_values: Sequence[int], depth: int, main: str, *, signals: bool) -> float:
    """Characters per query, for a few queries."""
    return len(_packed(*few, k_values, depth, main, signals=signals)[0]) / max(1, len(few[0].query_ids))


def _most_different(values: Values, main: str) -> Rows:
    """The numbers of the queries, sorted by how much the main measure differs."""
    columns = np.stack([measures[main if main in measures else next(iter(measures))] for measures in values.values()])
    return np.argsort(-np.nan_to_num(columns.max(axis=0) - columns.min(axis=0)), kind="stable")


def _only(lists: RunLists, values: Values, queries: Rows) -> tuple[RunLists, Values]:
    """Some queries of a run, with their lists and measures."""
    listings = {}
    for name, one in lists.listings.items():
        kept, lengths = entries_of(one.offsets, queries)
        signals = {key: column[kept] for key, column in one.signals.items()}
        listings[name] = Listing(offsets_of(lengths), one.items[kept], one.scores[kept], signals)
    gold, lengths = entries_of(lists.gold_offsets, queries)
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


def rounded(values: Scores) -> list[float | None]:
    """Return values to four significant digits, integers without a decimal point; values that are not finite become None.

    Args:
        values: ``[any]``.
    """
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    size = np.abs(known)
    digits = _DIGITS - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    power = 10.0 ** np.clip(np.abs(digits), 0, _EXACT)
    with np.errstate(over="ignore"):  # in the branch not used
        short = np.where(digits >= 0, np.rint(known * power) / power, np.rint(known / power) * power)
    if (short == np.rint(short)).all() and (size < _WHOLE).all():
        short = short.astype(np.int64)
    numbers: list[float | None] = short.tolist()
    for position in np.flatnonzero(np.abs(digits) > _EXACT).tolist():
        numbers[position] = float(f"{max(-_LARGEST, min(known[position], _LARGEST)):.{_DIGITS}g}")
    for position in np.flatnonzero(~finite).tolist():
        numbers[position] = None
    return numbers


def _packed(
    lists: RunLists, values: Values, k_values: Sequence[int], depth: int, main: str, *, signals: bool
) -> tuple[str, list[str]]:
    names = list(lists.listings)
    measures = explorer_measures([key for key in values[names[0]] if all(key in values[name] for name in names)], main)
    keys = list(dict.fromkeys(key for listing in lists.listings.values() for key in listing.signals)) if signals else []
    places: dict[int, int] = {}
    columns = [_columns(listing, keys, depth) for listing in lists.listings.values()]
    hits, gold = [], []
    for query in range(len(lists.query_ids)):
        grades = lists.gold_of(query)
        hits.append([_hits(listing, query, places) for listing in columns])
        gold.append([[places.setdefault(item, len(places)) for item in grades], list(grades.values())])
    content = {
        "depth": depth,
        "cutoffs": sorted({k for k in k_values if k < depth} | {depth}),
        "configurations": list(map(printable, names)),
        "signals": list(map(printable, keys)),
        "has": [[position for position, key in enumerate(keys) if key in lists.listings[name].signals] for name in names],
        "queries": list(map(printable, lists.query_ids)),
        "texts": list(map(printable, lists.texts)),
        "groups": [None if group is None else printable(group) for group in lists.groups],
        "measures": measures,
        "values": [[rounded(values[name][key]) for name in names] for key in measures],
        "lists": hits,
        "gold": gold,
        "ids": [printable(lists.item_ids[item]) for item in places],
        "titles": [_title(lists, item) for item in places],
    }
    return packed(content), [lists.item_ids[item] for item in places]


def packed(content: object) -> str:
    """Return plain values as JSON, deflated, in base64."""
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(zlib.compress(written)).decode()


def _title(lists: RunLists, item: int) -> str:
    return "" if lists.titles[item] == lists.item_ids[item] else printable(lists.titles[item])


def _columns(listing: Listing, keys: Sequence[str], depth: int) -> _Columns:
    lengths = np.diff(listing.offsets)
    kept = np.arange(len(listing.items)) - np.repeat(listing.offsets[:-1], lengths) < depth
    figures = [listing.scores, *(listing.signals[key] for key in keys if key in listing.signals)]
    offsets = offsets_of(np.minimum(lengths, depth))
    return offsets.tolist(), listing.items[kept].tolist(), [rounded(column[kept]) for column in figures]


def _hits(columns: _Columns, query: int, places: dict[int, int]) -> list[object]:
    offsets, items, figures = columns
    here = slice(offsets[query], offsets[query + 1])
    return [[places.setdefault(item, len(places)) for item in items[here]], *(column[here] for column in figures)]


_MOST_TEXT = 2_500_000
"""Maximum characters of the block."""

_LENGTHS = (LONGEST_TEXT, 1200, 600, 300)


@dataclass(frozen=True)
class PassageBlock:
    """The texts.

    Args:
        text: base64 of the deflated JSON: texts in the order of the items, and words too common to highlight.
        longest: maximum characters of each text.
        kept: number of texts included.
        known: number of texts available.
    """

    text: str
    longest: int
    kept: int
    known: int

    @property
    def is_cut(self) -> bool:
        """Return whether texts are shorter than they were stored."""
        return self.longest < LONGEST_TEXT


def passages_block(lists: RunLists, items: Sequence[str], room: int) -> PassageBlock | None:
    """Return the texts, as long as they fit; None if none are known, or not one fits."""
    whole = [visible(lists.passages.get(item, "")).strip() for item in items]
    if not any(whole):
        return None
    common = sorted(common_words([text for text in whole if text], lists.texts))
    room, order = min(room, _MOST_TEXT), _highest_first(lists, items)
    kept = len(order)
    for longest in _LENGTHS:
        block = _packed_texts(whole, order, common, longest)
        if len(block) <= room:
            return PassageBlock(block, longest, len(order), len(order))
    while (kept := min(kept - 1, int(kept * 0.95 * room / len(block)))) > 0:
        block = _packed_texts(whole, order[:kept], common, longest)
        if len(block) <= room:
            return PassageBlock(block, longest, kept, len(order))
    return None


def _packed_texts(whole: Sequence[str], kept: Sequence[int], common: Sequence[str], longest: int) -> str:
    texts = [""] * len(whole)
    for position in kept:
        text = whole[position]
        texts[position] = text if len(text) <= longest else f"{text[: longest - 2]} …"
    return packed({"texts": texts, "common": common, "longest": longest})


def _highest_first(lists: RunLists, items: Sequence[str]) -> list[int]:
    """The positions of the items with known texts, by the best rank in any list; gold first."""
    best = np.full(len(lists.item_ids), np.iinfo(np.int64).max)
    for listing in lists.listings.values():
        rank = np.arange(len(listing.items)) - np.repeat(listing.offsets[:-1], np.diff(listing.offsets))
        np.minimum.at(best, listing.items, rank)
    best[lists.gold_items] = -1
    rank_of = dict(zip(lists.item_ids, best.tolist(), strict=True))
    known = [position for position, item in enumerate(items) if lists.passages.get(item)]
    return sorted(known, key=lambda position: rank_of[items[position]])


DATA = "explorer-data"

_FOR_TEXTS = 800_000
"""Characters reserved for texts, if there are any."""


def explorer_section(
    lists: RunLists,
    first: tuple[str, str, str],
    k_values: list[int],
    per_query: Mapping[str, Mapping[str, Scores]] | None,
    room: int,
) -> Markup:
    """Return the section.

    Args:
        lists: the results of the configurations.
        first: the two configurations that are compared first, and the measure that they are compared by.
        k_values: the cutoffs, ascending.
        per_query: ``[queries]`` by configuration and measure; None to compute it from the lists, with gold counted by items.
        room: maximum size of the section, in bytes.
    """

    def section(block: Block | None, too_many: bool = False, passages: PassageBlock | None = None) -> Markup:
        return rendered(
            "explorer.html",
            block=block,
            passages=passages,
            too_many=too_many,
            baseline=first[0],
            best=first[1],
            measure=first[2],
            depth=max(k_values),
            n_queries=len(lists.query_ids),
            n_configurations=len(lists.listings),
            has_signals=any(listing.signals for listing in lists.listings.values()),
        )

    values = per_query if per_query is not None else measured(lists, lists.listings, k_values)
    without = section(Block("", 0, has_signals=True, queries=0))
    room -= len(without.encode())
    block = explorer_block(lists, values, k_values, max(room // 2, room - _FOR_TEXTS) if lists.passages else room, first[2])
    if block is None:
        return section(None, too_many=True)
    return section(block, passages=passages_block(lists, block.items, room - len(block.text)))
