"""The texts in the page's explorer, in a separate block next to its lists: each once, and opened after them.

If they exceed the size limit of the page, all are cut to a shorter beginning; if even short ones do not fit, only gold
and the highest-ranked hits keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.evaluation.rankings import LONGEST_TEXT, RunLists
from nlp_retrieval.reports.page.explorer_data import packed
from nlp_retrieval.reports.snippets import common_words
from nlp_retrieval.text.printing import visible

MOST = 2_500_000
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
    """Return the texts, as long as they fit; None if none are known, or not one fits.

    Args:
        lists: lists of a run.
        items: the ids of the items shown, in order.
        room: number of characters left on the page.
    """
    whole = [visible(lists.passages.get(item, "")).strip() for item in items]
    if not any(whole):
        return None
    common = sorted(common_words([text for text in whole if text], lists.texts))
    room, order = min(room, MOST), _highest_first(lists, items)
    kept = len(order)
    for longest in _LENGTHS:
        block = _packed(whole, order, common, longest)
        if len(block) <= room:
            return PassageBlock(block, longest, len(order), len(order))
    while (kept := min(kept - 1, int(kept * 0.95 * room / len(block)))) > 0:
        block = _packed(whole, order[:kept], common, longest)
        if len(block) <= room:
            return PassageBlock(block, longest, kept, len(order))
    return None


def _packed(whole: Sequence[str], kept: Sequence[int], common: Sequence[str], longest: int) -> str:
    texts = [""] * len(whole)
    for place in kept:
        text = whole[place]
        texts[place] = text if len(text) <= longest else f"{text[: longest - 2]} …"
    return packed({"texts": texts, "common": common, "longest": longest})


def _highest_first(lists: RunLists, items: Sequence[str]) -> list[int]:
    """The positions of the items with known texts, by the best rank in any list; gold first."""
    best = np.full(len(lists.item_ids), np.iinfo(np.int64).max)
    for one in lists.listings.values():
        rank = np.arange(len(one.items)) - np.repeat(one.offsets[:-1], np.diff(one.offsets))
        np.minimum.at(best, one.items, rank)
    best[lists.gold_items] = -1
    rank_of = dict(zip(lists.item_ids, best.tolist(), strict=True))
    known = [place for place, item in enumerate(items) if lists.passages.get(item)]
    return sorted(known, key=lambda place: rank_of[items[place]])
