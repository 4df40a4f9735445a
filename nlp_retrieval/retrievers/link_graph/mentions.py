"""Links made from names: those of the titles that a text mentions, and those that metadata give."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import ItemError, RetrievalWarning
from nlp_retrieval.retrievers.link_graph.extractors import (
    BaseLinkExtractor,
    Extracted,
    JoiningItems,
    LinkSentence,
    WalkWeight,
    mention_of,
)
from nlp_retrieval.retrievers.link_graph.graph import Links, live_among
from nlp_retrieval.retrievers.link_graph.tables import HashedRows, Hashes, PassageTerms, TitleTable, hash_of, places_in
from nlp_retrieval.text.surfaces import Surface, surface_of, surfaces_of, words_of

_MENTIONS_AT_ONCE = 1 << 14  # a name may have a hundred carriers
_LEAST = 0.1
_STEP = 1024

Likely = Callable[[Rows, Rows], Scores]
"""Returns, for sources and rows that carry a name they mention, the likelihood that they mean these rows; above 0."""


def links_by_name(
    table: HashedRows,
    sources: Rows,
    names: Rows,
    items: ItemTable,
    max_shared: int,
    likely: tuple[Likely, Rows] | None = None,
) -> Links:
    """Link each source to the rows that carry its name, with a share of the name for each."""
    n_items = max(len(items), 1)
    carried = np.repeat(np.arange(len(table.hashes)), np.diff(table.offsets)) * n_items + table.rows
    foreign = ~np.isin(names * n_items + sources, carried)
    sources, names = sources[foreign], names[foreign]
    counts = np.diff(table.offsets)[names]
    too_common = counts > max_shared
    if too_common.any():
        worst = int(counts.argmax())
        (carrier,) = items.items(table.rows_of(int(names[worst]))[:1])
        warnings.warn(
            f"{too_common.sum()} mentions of {len(np.unique(names[too_common]))} names give no links, because more than "
            f"max_shared={max_shared} passages share each; the most common is that of item {carrier.item_id!r} "
            f"({carrier.title!r}), shared by {counts[worst]}: give passages distinct titles, or raise max_shared",
            RetrievalWarning,
            stacklevel=4,
        )
    sources, names = sources[~too_common], names[~too_common]
    order = np.argsort(sources, kind="stable")
    keys, shares = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for begin in range(0, len(order), _MENTIONS_AT_ONCE):
        part = order[begin : begin + _MENTIONS_AT_ONCE]
        linking, linked, share = _shares(table, sources[part], names[part], likely)
        keys.append(linking * n_items + linked)
        shares.append(share.astype(np.float32))
    key, weights = np.concatenate(keys), np.concatenate(shares)
    order = np.lexsort((-weights, key))
    order = order[np.diff(key[order], prepend=-1) > 0]  # the greatest share of each pair
    return Links(*np.divmod(key[order], n_items), weights[order])


def _shares(table: HashedRows, sources: Rows, names: Rows, likely: tuple[Likely, Rows] | None) -> tuple[Rows, Rows, Scores]:
    """For some mentions, the source and each row that carries the name, with its share."""
    places, counts = entries_of(table.offsets, names)
    linking, linked, several = np.repeat(sources, counts), table.rows[places], np.repeat(counts, counts)
    if likely is None or not (several > 1).any():
        return linking, linked, 1.0 / several
    likelihood, bearers = likely
    values = np.ones(len(linking))
    values[several > 1] = likelihood(linking[several > 1], linked[several > 1])
    values, parts = of_bearers(np.repeat(np.arange(len(counts)), counts), bearers[linked], values)
    begins = np.cumsum(counts) - counts
    enough = values >= _LEAST * np.repeat(np.maximum.reduceat(values, begins), counts)
    weighed = np.where(enough, values / parts, 0.0)
    shares = weighed / np.repeat(np.add.reduceat(weighed, begins), counts)
    return linking[enough], linked[enough], shares[enough]


def of_bearers(mention: Rows, bearers: Rows, likely: Scores) -> tuple[Scores, Rows]:
    """Return for each row of each mention the greatest likelihood among its bearer's parts, and the number of these parts."""
    order = np.lexsort((bearers, mention))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(mention[order]) != 0) | (np.diff(bearers[order]) != 0)
    begins = np.flatnonzero(first)
    sizes = np.diff(begins, append=len(order))
    best, parts = np.empty(len(order)), np.empty(len(order), np.int64)
    best[order] = np.repeat(np.maximum.reduceat(likely[order], begins), sizes)
    parts[order] = np.repeat(sizes, sizes)
    return best, parts


# Closeness of two passages by their words: the cosine of their terms, weighted by inverse document frequency squared.


def closeness(terms: PassageTerms, ones: Rows, others: Rows) -> Scores:
    """Return the cosine of each pair of passages, 0 to 1; memory is bounded by some thousands of pairs."""
    cosines = np.zeros(len(ones))
    for begin in range(0, len(ones), _MENTIONS_AT_ONCE):
        part = slice(begin, begin + _MENTIONS_AT_ONCE)
        cosines[part] = _cosines(terms, ones[part], others[part])
    return cosines


def _cosines(terms: PassageTerms, ones: Rows, others: Rows) -> Scores:
    rows, number = np.unique(np.concatenate([ones, others]), return_inverse=True)
    one_rows, other_rows = number[: len(ones)], number[len(ones) :]
    hashes, counts = terms.of_rows(rows)
    vocabulary, term = np.unique(hashes, return_inverse=True)
    squares = (terms.information_of(vocabulary) ** 2)[term]
    owner = np.repeat(np.arange(len(rows)), counts)
    lengths = np.bincount(owner, squares, len(rows))
    keys = owner * len(vocabulary) + term  # rising: rows are, and the terms of each
    entries, n_asked = entries_of(offsets_of(counts), other_rows)
    wanted = np.repeat(one_rows, n_asked) * len(vocabulary) + term[entries]
    hit = places_in(keys, wanted) >= 0
    pair = np.repeat(np.arange(len(others)), n_asked)
    shared = np.bincount(pair[hit], squares[entries[hit]], len(others))
    cosines: Scores = shared / np.sqrt(np.maximum(lengths[one_rows] * lengths[other_rows], np.finfo(np.float64).tiny))
    return cosines


FLOOR = 0.05
"""Least evidence for a passage that carries a name: one without any is less likely, not impossible."""

MOST_READ, ONE_IN = 1000, 500
"""A title is searched for in at most MOST_READ passages, or in one of ONE_IN of the collection, whichever is more."""


class TitleMentions(BaseLinkExtractor):
    """Links a passage to every passage whose title or alias its content mentions.

    A title is compared without the qualifier in parentheses at its end, as whole words, regardless of case, accents and
    possessive endings; a mention begins with a lower-case letter only if the title does. Mentions are as long as possible
    and do not overlap. Repeated mentions in one passage count once; a mention that may mean the passage itself links
    nothing. A link weighs its share, divided by the number of passages that mention the target to the power of ``rarity``.

    A title that one passage carries has a share of 1. One that several carry is shared among them by prior and context, as in
    entity linking: a passage counts more if it says its own name, and if its words are close to those of the passage that
    mentions it. Passages with exactly the same title are parts of one document: it counts by its likeliest part, and its parts
    share evenly. Unlikely passages are not linked.

    Args:
        aliases: metadata with other titles of a passage, a string or a list of strings.
        min_characters: length of the shortest title of one word that counts; shorter ones need capitals ("U2", "NASA").
        rarity: discount for links to often mentioned passages; 0 for none.
        max_shared: a title that more passages carry links nothing, as each share would be tiny.
        context: exponent of the closeness of words; 0 shares a title of m passages evenly, 1/m to each.
        along: weight of walking a link from the mentioning passage to the mentioned one.
        against: weight of walking it from the mentioned passage to the mentioning one.

    Examples:
        >>> LinkGraphRetriever(["bm25"], links=[TitleMentions(min_characters=3)])
        LinkGraphRetriever(seeds=[Bm25Retriever()], links=[TitleMentions(min_characters=3)])
    """

    name = "title_mentions"
    manifest_may_set = may_set("aliases", "min_characters", "rarity", "max_shared", "context", "along", "against")
    search_only = frozenset({"along", "against"})

    def __init__(
        self,
        aliases: str = "aliases",
        min_characters: Annotated[int, Field(ge=1)] = 4,
        rarity: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.5,
        max_shared: Annotated[int, Field(ge=1)] = 100,
        context: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 2.0,
        along: WalkWeight = 1.0,
        against: WalkWeight = 0.5,
    ) -> None:
        self.aliases = aliases
        self.min_characters = min_characters
        self.rarity = rarity
        self.max_shared = max_shared
        self.context = context
        self.along = along
        self.against = against

    def surfaces(self, items: ItemTable) -> Iterator[tuple[int, Surface]]:
        """Yield the rows of the items and the surfaces of each, for a title table."""
        for row, item in enumerate(items.stream({"title", self.aliases})):
            for surface in self.surfaces_of(item):
                yield row, surface

    def surfaces_of(self, item: SearchableItem) -> list[Surface]:
        """Return the surfaces of an item's title and aliases that count."""
        return surfaces_of(item, self.aliases, self.min_characters)

    def extract(self, items: ItemTable) -> Links:
        return self.extend(JoiningItems(items, items)).links

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the passages that joining ones mention, and the earlier ones that mention these; deleted passages do not count.

        These are the links that touch the new passages when all are indexed at once, with the same shares. Until
        ``compact`` four things differ:

        - Links among earlier passages keep their shares, even where new passages carry the title too or deleted ones did,
          and where words have become more or less frequent since.
        - Such links stay even if the text now mentions a longer title of a new passage, and are missing if it mentioned a
          longer title of a deleted one.
        - ``rarity`` uses the number of passages that mentioned the target when the link was found.
        - A new title is not looked for in earlier passages if its two rarest words occur together in more than 1,000 of
          them and in more than one of 500.

        Warns:
            RetrievalWarning: mentioned titles that more than ``max_shared`` passages carry.
        """
        titles, first_row, everything = joining.titles or self._titles_of_all(joining), joining.first_row, joining.everything
        sources, mentioned = array("q"), array("q")

        def note(rows: Iterable[int], texts: Sequence[str], counting: Mask | None = None) -> None:
            for row, numbers in zip(rows, titles.named_in(texts), strict=True):
                counted = numbers if counting is None else [number for number in numbers if counting[number]]
                mentioned.extend(counted)
                sources.extend([row] * len(counted))

        contents = (item.content for item in joining.items.stream(()))
        with progress("finding mentioned titles", len(joining.items)) as advance:
            for row in range(first_row, len(everything), _STEP):
                part = list(islice(contents, _STEP))
                note(range(row, row + len(part)), part)
                advance(len(part))
        if joining.segments:
            # rows ascend within a title, so a title is carried by a joining row if its last row joins
            is_new = titles.table.rows[titles.table.offsets[1:] - 1] >= first_row
            for rows, texts in self._earlier(joining):
                note(rows, texts, is_new)
        likely = None
        numbers = np.array(mentioned, np.int64)
        if self.context > 0 and (np.diff(titles.table.offsets)[numbers] > 1).any():
            terms = joining.terms

            def likelihood(ones: Rows, carriers: Rows) -> Scores:
                return (FLOOR + closeness(terms, ones, carriers)) ** self.context * (FLOOR + terms.named(carriers))

            likely = likelihood, terms.bearers
        links = links_by_name(titles.table, np.array(sources, np.int64), numbers, everything, self.max_shared, likely)
        links = joining.touching(links)
        times_mentioned = np.bincount(links.targets, minlength=len(everything))
        targets = np.unique(links.targets[links.targets < first_row])
        if len(targets):
            times_mentioned[targets] += joining.graph.n_incoming(joining.kind, targets)
        weights = links.weights / times_mentioned[links.targets] ** self.rarity
        return Extracted(Links(links.sources, links.targets, weights.astype(np.float32)))

    def _titles_of_all(self, joining: JoiningItems) -> TitleTable:
        live = live_among(joining.everything, joining.segments)
        return TitleTable.of((row, surface) for row, surface in self.surfaces(joining.everything) if live[row])

    def _earlier(self, joining: JoiningItems) -> Iterator[tuple[list[int], list[str]]]:
        """Rows and contents of earlier passages that may mention a new title, by the words that they have."""
        surfaces = list(dict.fromkeys(surface for _, surface in self.surfaces(joining.items)))
        most = max(MOST_READ, joining.first_row // ONE_IN)
        holding = joining.terms.holding([surface.words for surface in surfaces])
        before = [rows[rows < joining.first_row] for rows in holding]
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *(part for part in before if len(part) <= most)]))
        for first in range(0, len(rows), _STEP):
            part = rows[first : first + _STEP]
            yield part.tolist(), [item.content for item in joining.everything.items(part)]

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        return mention_of(source.content, self.surfaces_of(target), self.surfaces_of(source))


# Links that the corpus itself states, as identifiers or titles in the metadata.


_PARENT = "parent_id"
_NAMING = frozenset({"title", _PARENT})
_NAMES, _GIVEN = "names", "given"
_AT_ONCE = 1 << 16


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

    Examples:
        >>> LinkGraphRetriever(["bm25"], links=[Hyperlinks("links")])
        LinkGraphRetriever(seeds=[Bm25Retriever()], links=[Hyperlinks()])
    """

    name = "hyperlinks"
    manifest_may_set = may_set("links", "max_shared", "along", "against")
    search_only = frozenset({"along", "against"})

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
        return self.extend(JoiningItems(items, items)).links

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links from and to items that join: the same as when all items are indexed at once.

        Links among earlier items keep their weights until ``compact``, even if a new item carries the same name too, or if the
        name now means only the new item.

        Raises:
            ItemError: the metadata is neither a string nor a list of strings; the message names the item.

        Warns:
            RetrievalWarning: names that no item carries, or that more than ``max_shared`` items do.
        """
        items, first_row, everything = joining.items, joining.first_row, joining.everything
        new = HashedRows.of((key, row) for row, item in enumerate(items.stream(_NAMING)) for key in _keys_of(item))
        given = HashedRows.of((_by_words(name), row) for row, name in self._named(enumerate(items.stream({self.links}))))
        givers, names = np.zeros(0, np.int64), new
        if joining.segments:
            called = _distinct(_by_words(name) for item in items.stream(_NAMING) for name in _names_of(item))
            givers = np.unique(joining.known(_GIVEN, called, given).rows)
            givers = givers[givers < first_row]

        def named() -> Iterator[tuple[int, str]]:
            for first in range(0, len(givers), _STEP):
                part = givers[first : first + _STEP]
                yield from self._named(zip(part.tolist(), everything.items(part), strict=True))
            yield from self._named(enumerate(items.stream({self.links}), first_row))

        if joining.segments:
            names = joining.known(_NAMES, _distinct(key(name) for _, name in named() for key in _READINGS), new)
        sources, numbers = array("q"), array("q")
        unknown: list[tuple[int, str]] = []
        n_given = n_unknown = 0
        pairs = named()
        while batch := list(islice(pairs, _AT_ONCE)):
            resolved = _resolved(names, [name for _, name in batch]).tolist()
            sources.extend(row for (row, _), number in zip(batch, resolved, strict=True) if number >= 0)
            numbers.extend(number for number in resolved if number >= 0)
            missing = [pair for pair, number in zip(batch, resolved, strict=True) if number < 0 and pair[0] >= first_row]
            unknown += missing[: 1 - len(unknown)]
            n_given, n_unknown = n_given + sum(row >= first_row for row, _ in batch), n_unknown + len(missing)
        for row, name in unknown:
            (item,) = everything.items(np.array([row]))
            warnings.warn(
                f"{n_unknown} of {n_given} links in the metadata {self.links!r} are left out: item {item.item_id!r}, for "
                f"example, names {name!r}, which no item has as its id or title",
                RetrievalWarning,
                stacklevel=3,
            )
        links = links_by_name(names, np.array(sources, np.int64), np.array(numbers, np.int64), everything, self.max_shared)
        return Extracted(joining.touching(links), {_NAMES: new, _GIVEN: given})

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        surfaces = [[surface] if (surface := surface_of(item.title, 1)) else [] for item in (target, source)]
        return mention_of(source.content, *surfaces)

    def _named(self, items: Iterable[tuple[int, SearchableItem]]) -> Iterator[tuple[int, str]]:
        """Rows and the names that they link to."""
        for row, item in items:
            value = item.metadata.get(self.links)
            for name in value if isinstance(value, list) else [] if value in (None, "") else [value]:
                if not isinstance(name, str):
                    raise ItemError(
                        f"item {item.item_id!r}: its metadata {self.links!r} holds {name!r}, which names no item; "
                        "give an item id or a title, or a list of them"
                    )
                yield row, name


def _by_words(title: str) -> str:
    # a title without any word, such as "!!!", equals only itself
    return "\0".join(["words", *(words_of(title) or ["", title])])


_READINGS: tuple[Callable[[str], str], ...] = ("id {}".format, "parent {}".format, "title {}".format, _by_words)
"""The ways to read a name, in their order; each gives a key."""


def _names_of(item: SearchableItem) -> list[str]:
    """The name of an item in each of the ways to read it; empty where it has none."""
    parent = item.metadata.get(_PARENT)
    return [item.item_id, parent if isinstance(parent, str) else "", item.title, item.title]


def _keys_of(item: SearchableItem) -> list[str]:
    return [key(name) for key, name in zip(_READINGS, _names_of(item), strict=True) if name]


def _distinct(keys: Iterable[str]) -> Hashes:
    return np.unique(np.fromiter(map(hash_of, keys), np.uint64))


def _resolved(table: HashedRows, names: list[str]) -> Rows:
    """The numbers of names in the table, each by the first way to read it that finds one; -1 for none."""
    numbers = np.full(len(names), -1, np.int64)
    for key in _READINGS:
        unresolved = np.flatnonzero(numbers < 0)
        numbers[unresolved] = table.find(np.array([hash_of(key(names[position])) for position in unresolved], np.uint64))
    return numbers
