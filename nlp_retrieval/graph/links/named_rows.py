"""Links made from names: a name that several passages carry is shared among them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, entries_of
from nlp_retrieval.graph.store.links import Links


class NamedRows(Protocol):
    """Numbered names and the rows that carry them."""

    @property
    def offsets(self) -> Rows:
        """``[names + 1]``; name n is carried by ``rows[offsets[n]:offsets[n + 1]]``."""

    @property
    def rows(self) -> Rows:
        """Ascending within a name."""


def names_itself(table: NamedRows, sources: Rows, names: NDArray[np.int64], n_items: int) -> NDArray[np.bool_]:
    """Whether each source is among the rows that carry the name beside it, so that the name may mean the source itself."""
    carried = np.repeat(np.arange(len(table.offsets) - 1), np.diff(table.offsets)) * n_items + table.rows
    wanted = names * n_items + sources
    places = np.searchsorted(carried, wanted)
    found = np.zeros(len(wanted), bool)
    inside = places < len(carried)
    found[inside] = carried[places[inside]] == wanted[inside]
    return found


def shared_links(table: NamedRows, sources: Rows, names: NDArray[np.int64], n_items: int) -> Links:
    """Link each source to every row that carries the name beside it, with one share of the name.

    Args:
        table: the names; a name that m rows carry has shares of 1/m.
        sources: rows.
        names: number of the name that each source gives. Where a source names a row more than once, the largest share counts.
        n_items: how many rows there are.
    """
    places, counts = entries_of(table.offsets, names)
    keys = np.repeat(sources, counts) * n_items + table.rows[places]
    shares = 1.0 / np.repeat(counts, counts)
    order = np.lexsort((-shares, keys))
    keys, shares = keys[order], shares[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    linking, linked = np.divmod(keys[first], max(n_items, 1))
    return Links(linking, linked, shares[first].astype(np.float32))
