"""Links that the corpus itself states, as identifiers or titles in the metadata."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ItemError, RetrievalWarning
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight, sentence_at
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.retrievers.link_graph.links.named_rows import names_itself, shared_links
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows, hash_of
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.text.surfaces import first_mention, grouped, surface_of, words_of

_PARENT = "parent_id"
_NAMING = frozenset({"title", _PARENT})
_NAMES, _GIVEN = "names", "given"
_AT_ONCE, _STEP = 1 << 16, 1024


class Hyperlinks(BaseLinkExtractor):
    """Links a passage to the passages that its metadata names.

    A name is read as an item id, else as the id of a document that was cut into passages ("parent_id"), else as a title
    letter by letter, else as a title regardless of case, accents and punctuation; a qualifier in parentheses counts. A name
    that m passages carry links to each with weight 1/m; repeated names count once; one that may mean the passage itself
    links nothing.

    Args:
        links: metadata with the names, a string or a list of strings.
        max_shared: a name that more passages carry links nothing, as each share would be tiny.
        along: weight of walking a link from the naming passage to the named one.
        against: weight of walking it from the named passage to the naming one.
    """

    name = "hyperlinks"
    manifest_may_set = may_set("links", "max_shared", "along", "against")
    search_only = frozenset({"along", "against"})
    tables = (_NAMES, _GIVEN)

    def __init__(
        self,
        links: str = "links",
        max_shared: Annotated[int, Field(ge=1)] = 100,
        along: WalkWeight = 1.0,
        against: WalkWeight = 0.5,
    ) -> None:
        self.links = links
        self.max_shared = max_shared
        self.along = along
        self.against = against

    def extract(self, items: ItemTable) -> Links:
        """Find the links in two passes, over the names that items carry and over the names in their links.

        Raises:
            ItemError: the metadata is neither a string nor a list of strings; the message names the item.

        Warns:
            RetrievalWarning: names that no item carries, or that more than ``max_shared`` items do.
        """
        return self.extracted(items).links

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links, the names that items carry, and which items link to which name."""
        del terms
        names = HashedRows.of(_names(items.stream(_NAMING)))
        links, given = self._links(names, self._given(enumerate(items.stream({self.links}))), items)
        return Extracted(links, {_NAMES: names, _GIVEN: given})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links from and to items that join: the same as when all items are indexed at once.

        Links among earlier items keep their weights until ``compact``, even if a new item carries the same name too, or if the
        name now means only the new item.
        """
        new_names = HashedRows.of(_names(joining.items.stream(_NAMING)))
        called = {_words_key(name) for item in joining.items.stream(_NAMING) for name in _called(item)}
        givers = np.unique(joining.known(_GIVEN, _distinct(called)).rows)
        everything, first_row = joining.everything, joining.first_row
        rows = np.concatenate([givers, np.arange(first_row, len(everything))])
        givers_items = (item for part in _parts(givers) for item in everything.items(part))
        giving = zip(rows.tolist(), chain(givers_items, joining.items.stream({self.links})), strict=True)
        given = [(row, name) for row, name in self._given(giving) if row >= first_row or _words_key(name) in called]
        keys = _distinct(key(name) for _, name in given for key in _KEYS)
        names = joining.with_new(joining.known(_NAMES, keys), new_names)
        links, _ = self._links(names, iter(given), everything)
        by_new = HashedRows.of((_words_key(name), row - first_row) for row, name in given if row >= first_row)
        return Extracted(joining.touching(links), {_NAMES: new_names, _GIVEN: by_new})

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        wanted, own = surface_of(target.title, min_characters=1), surface_of(source.title, min_characters=1)
        if wanted is None:
            return None
        span = first_mention(source.content, [wanted], [own] if own is not None else [])
        return None if span is None else sentence_at(source.content, *span)

    def _links(self, table: HashedRows, given: Iterator[tuple[int, str]], items: ItemTable) -> tuple[Links, HashedRows]:
        """The links that some items state, and the rows of those items by the words of the names."""
        sources, numbers = array("q"), array("q")
        words, givers = array("Q"), array("q")
        unknown: list[tuple[int, str]] = []
        n_given = n_unknown = 0
        while batch := list(islice(given, _AT_ONCE)):
            numbers_of_names = _resolved(table, [name for _, name in batch])
            missing = np.flatnonzero(numbers_of_names < 0)
            n_given, n_unknown = n_given + len(batch), n_unknown + len(missing)
            unknown += [batch[position] for position in missing[: 1 - len(unknown)]]
            sources.extend(row for (row, _), number in zip(batch, numbers_of_names, strict=True) if number >= 0)
            numbers.extend(numbers_of_names[numbers_of_names >= 0].tolist())
            words.extend(hash_of(_words_key(name)) for _, name in batch)
            givers.extend(row for row, _ in batch)
        if unknown:
            row, name = unknown[0]
            self._warn(items, row, f"{n_unknown} of {n_given} links", f"names {name!r}, which no item has as its id or title")
        links = self._shared(items, table, np.array(sources, np.int64), np.array(numbers, np.int64))
        return links, HashedRows(*grouped(np.array(words, np.uint64), np.array(givers, np.int64)))

    def _given(self, items: Iterable[tuple[int, SearchableItem]]) -> Iterator[tuple[int, str]]:
        """Rows and the names that they link to."""
        for row, item in items:
            given = item.metadata.get(self.links)
            for name in given if isinstance(given, list) else [] if given in (None, "") else [given]:
                if not isinstance(name, str):
                    raise ItemError(
                        f"item {item.item_id!r}: its metadata {self.links!r} holds {name!r}, which names no item; "
                        "give an item id or a title, or a list of them"
                    )
                yield row, name

    def _shared(self, items: ItemTable, table: HashedRows, sources: Rows, numbers: NDArray[np.int64]) -> Links:
        own = names_itself(table, sources, numbers, len(items))
        sources, numbers = sources[~own], numbers[~own]
        counts = np.diff(table.offsets)[numbers]
        too_common = counts > self.max_shared
        if too_common.any():
            worst = int(counts.argmax())
            (named,) = items.items(table.rows_of(int(numbers[worst]))[:1])
            example = f"{named.item_id!r} ({named.title!r})"
            why = f"names {counts[worst]} items at once, such as {example}; max_shared={self.max_shared}"
            self._warn(items, int(sources[worst]), f"{np.count_nonzero(too_common)} links", why)
        return shared_links(table, sources[~too_common], numbers[~too_common], len(items))

    def _warn(self, items: ItemTable, row: int, what: str, why: str) -> None:
        (item,) = items.items(np.array([row]))
        message = f"{what} in the metadata {self.links!r} are left out: item {item.item_id!r}, for example, {why}"
        warnings.warn(message, RetrievalWarning, stacklevel=4)


def _names(items: Iterable[SearchableItem]) -> Iterator[tuple[str, int]]:
    """Each name of an item, prefixed with the way it is read, and the item's row."""
    for row, item in enumerate(items):
        yield f"id {item.item_id}", row
        parent = item.metadata.get(_PARENT)
        if isinstance(parent, str):
            yield f"parent {parent}", row
        if item.title:
            yield f"title {item.title}", row
            yield _words_key(item.title), row


def _called(item: SearchableItem) -> list[str]:
    """The names of an item."""
    parent = item.metadata.get(_PARENT)
    return [name for name in (item.item_id, parent, item.title) if isinstance(name, str) and name]


def _distinct(keys: Iterable[str]) -> NDArray[np.uint64]:
    return np.unique(np.fromiter(map(hash_of, keys), np.uint64))


def _parts(rows: Rows) -> Iterator[Rows]:
    return (rows[first : first + _STEP] for first in range(0, len(rows), _STEP))


def _words_key(title: str) -> str:
    # a title without any word, such as "!!!", equals only itself
    return "\0".join(["words", *(words_of(title) or ["", title])])


_KEYS: tuple[Callable[[str], str], ...] = ("id {}".format, "parent {}".format, "title {}".format, _words_key)


def _resolved(table: HashedRows, names: list[str]) -> Rows:
    """The numbers of names in the table, read as an id, a parent, a title and words, in this order; -1 for none."""
    numbers = np.full(len(names), -1, np.int64)
    for key in _KEYS:
        unresolved = np.flatnonzero(numbers < 0)
        hashes = np.array([hash_of(key(names[position])) for position in unresolved], np.uint64)
        numbers[unresolved] = table.find(hashes)
    return numbers
