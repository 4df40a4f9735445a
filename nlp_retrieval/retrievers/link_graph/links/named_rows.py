"""Links made from names: a name that several passages carry is shared among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of
from nlp_retrieval.retrievers.link_graph.store.links import Links


@dataclass(frozen=True)
class Meant:
    """Likelihoods that tell the rows with the same name apart.

    Args:
        likely: returns, for sources and rows that carry a name they mention, the likelihood that they mean these rows; above 0.
        bearers: ``[rows]``, equal for rows that are parts of one bearer of the name: one document, one title.
    """

    likely: Callable[[Rows, Rows], Scores]
    bearers: Rows


_MENTIONS_AT_ONCE = 1 << 14  # a name may have a hundred carriers
_LEAST = 0.1


class NamedRows(Protocol):
    """Numbered names and the rows that carry them."""

    @property
    def offsets(self) -> Rows:
        """``[names + 1]``; name n is carried by ``rows[offsets[n]:offsets[n + 1]]``."""

    @property
    def rows(self) -> Rows:
        """Ascending within a name."""


def names_itself(table: NamedRows, sources: Rows, names: NDArray[np.int64], n_items: int) -> NDArray[np.bool_]:
    """Return whether each source carries the name that it gives, so that the name may mean the source itself."""
    carried = np.repeat(np.arange(len(table.offsets) - 1), np.diff(table.offsets)) * n_items + table.rows
    wanted = names * n_items + sources
    places = np.searchsorted(carried, wanted)
    found = np.zeros(len(wanted), bool)
    inside = places < len(carried)
    found[inside] = carried[places[inside]] == wanted[inside]
    return found


def shared_links(table: NamedRows, sources: Rows, names: NDArray[np.int64], n_items: int, meant: Meant | None = None) -> Links:
    """Link each source to the rows that carry its name, with a share of the name for each.

    Args:
        table: the names; one that m rows carry has shares of 1/m, unless ``meant`` tells its carriers apart.
        sources: rows.
        names: number of the name that each source gives. If a source names a row more than once, the largest share counts.
        n_items: how many rows there are.
        meant: the likelihood that a source means a row by a name. A bearer of the name has a share in proportion to the
            likeliest of its rows, divided equally among them; a bearer less than a tenth as likely as the likeliest is not
            linked.
    """
    keys: list[Rows] = [np.zeros(0, np.int64)]
    shares: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
    carried = np.diff(table.offsets)[names] > 0
    sources, names = sources[carried], names[carried]
    order = np.argsort(sources, kind="stable")
    for begin in range(0, len(order), _MENTIONS_AT_ONCE):
        part = order[begin : begin + _MENTIONS_AT_ONCE]
        linking, linked, share = _carried(table, sources[part], names[part], meant)
        keys.append(linking * n_items + linked)
        shares.append(share.astype(np.float32))
    key, weights = np.concatenate(keys), np.concatenate(shares)
    order = np.lexsort((-weights, key))
    key, weights = key[order], weights[order]
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    linking, linked = np.divmod(key[first], max(n_items, 1))
    return Links(linking, linked, weights[first])


def _carried(table: NamedRows, sources: Rows, names: NDArray[np.int64], meant: Meant | None) -> tuple[Rows, Rows, Scores]:
    """For some mentions, the source and each row that carries the name, with its share."""
    places, counts = entries_of(table.offsets, names)
    linking, linked, several = np.repeat(sources, counts), table.rows[places], np.repeat(counts, counts)
    if meant is None or not (several > 1).any():
        return linking, linked, 1.0 / several
    mention = np.repeat(np.arange(len(counts)), counts)
    likely = np.ones(len(linking))
    likely[several > 1] = meant.likely(linking[several > 1], linked[several > 1])
    likely, parts = of_bearers(mention, meant.bearers[linked], likely)
    begins = np.cumsum(counts) - counts
    kept = likely >= _LEAST * np.repeat(np.maximum.reduceat(likely, begins), counts)
    weighed = np.where(kept, likely / parts, 0.0)
    shares = weighed / np.repeat(np.add.reduceat(weighed, begins), counts)
    return linking[kept], linked[kept], shares[kept]


def of_bearers(mention: Rows, bearers: Rows, likely: Scores) -> tuple[Scores, Rows]:
    """Return for each row of each mention the greatest likelihood among its bearer's parts, and the number of these parts.

    Args:
        mention: numbers of the mentions.
        bearers: of the rows of the mentions.
        likely: likelihood of each row.
    """
    order = np.lexsort((bearers, mention))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(mention[order]) != 0) | (np.diff(bearers[order]) != 0)
    begins = np.flatnonzero(first)
    sizes = np.diff(begins, append=len(order))
    best, parts = np.empty(len(order)), np.empty(len(order), np.int64)
    best[order] = np.repeat(np.maximum.reduceat(likely[order], begins), sizes)
    parts[order] = np.repeat(sizes, sizes)
    return best, parts
