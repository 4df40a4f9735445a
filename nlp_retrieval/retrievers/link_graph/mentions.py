"""Links from passages to the passages whose titles they mention."""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of
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
    sentence_at,
)
from nlp_retrieval.retrievers.link_graph.graph import Links
from nlp_retrieval.retrievers.link_graph.tables import HashedRows, PassageTerms, TitleTable, hash_of
from nlp_retrieval.text.surfaces import (
    Surface,
    SurfaceMatcher,
    first_mention,
    grouped,
    is_unspaced,
    plain_part,
    surface_of,
    surfaces_of,
    words_of,
)

# Links made from names: a name that several passages carry is shared among them.


@dataclass(frozen=True)
class Meant:
    """Likelihoods that distinguish rows with the same name.

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
    is_own_name = np.zeros(len(wanted), bool)
    inside = places < len(carried)
    is_own_name[inside] = carried[places[inside]] == wanted[inside]
    return is_own_name


def shared_links(table: NamedRows, sources: Rows, names: NDArray[np.int64], n_items: int, meant: Meant | None = None) -> Links:
    """Link each source to the rows that carry its name, with a share of the name for each."""
    keys: list[Rows] = [np.zeros(0, np.int64)]
    shares: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
    carried = np.diff(table.offsets)[names] > 0
    sources, names = sources[carried], names[carried]
    order = np.argsort(sources, kind="stable")
    for begin in range(0, len(order), _MENTIONS_AT_ONCE):
        part = order[begin : begin + _MENTIONS_AT_ONCE]
        linking, linked, share = _rows_of_names(table, sources[part], names[part], meant)
        keys.append(linking * n_items + linked)
        shares.append(share.astype(np.float32))
    key, weights = np.concatenate(keys), np.concatenate(shares)
    order = np.lexsort((-weights, key))
    key, weights = key[order], weights[order]
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    linking, linked = np.divmod(key[first], max(n_items, 1))
    return Links(linking, linked, weights[first])


def _rows_of_names(table: NamedRows, sources: Rows, names: NDArray[np.int64], meant: Meant | None) -> tuple[Rows, Rows, Scores]:
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
    likely_enough = likely >= _LEAST * np.repeat(np.maximum.reduceat(likely, begins), counts)
    weighed = np.where(likely_enough, likely / parts, 0.0)
    shares = weighed / np.repeat(np.add.reduceat(weighed, begins), counts)
    return linking[likely_enough], linked[likely_enough], shares[likely_enough]


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


# Finding earlier passages of an index that mention the titles of joining items, without reading every passage.
#
# The stored terms of a passage tell whether it can contain the words of a new title. Only such passages are read: first to
# check whether the words are adjacent, and if so, to find every title that the passage mentions. A title whose words occur in
# too many passages waits for the next ``compact``; otherwise each addition would reread a part of the collection.


_STEP = 1024
MOST_READ, ONE_IN = 1000, 500
"""A title is searched for in at most MOST_READ passages, or in one of ONE_IN of the collection, whichever is more."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def mentions_before(
    joining: JoiningItems, surfaces: Sequence[tuple[int, Surface]], is_new: Mask
) -> tuple[Rows, NDArray[np.int64]]:
    """Return the mentions of new titles in earlier passages: rows of the passages and numbers of the titles, each pair once."""
    sources, mentioned = array("q"), array("q")
    titles = joining.titles
    if titles is not None:
        for rows, texts in _read(joining, list(dict.fromkeys(surface for _, surface in surfaces))):
            for row, named in zip(rows, titles.named_in(texts), strict=True):
                new = [number for number in named if is_new[number]]
                mentioned.extend(new)
                sources.extend([row] * len(new))
    return np.array(sources, np.int64), np.array(mentioned, np.int64)


def _read(joining: JoiningItems, surfaces: list[Surface]) -> Iterator[tuple[list[int], list[str]]]:
    """Rows and contents of the passages in which the words of any surface are adjacent."""
    phrases = [Phrase(surface) for surface in surfaces]
    rows_of_surfaces = joining.terms.holding([surface.words for surface in surfaces])
    most = max(MOST_READ, joining.first_row // ONE_IN)
    rows_of_surfaces = [rows if len(rows) <= most else rows[:0] for rows in rows_of_surfaces]
    owner = np.repeat(np.arange(len(rows_of_surfaces)), [len(rows) for rows in rows_of_surfaces])
    rows = np.concatenate([np.zeros(0, np.int64), *rows_of_surfaces])
    order = np.argsort(rows, kind="stable")
    distinct, begins = np.unique(rows[order], return_index=True)
    bounds = [*begins.tolist(), len(rows)]
    numbers = owner[order]
    for first in range(0, len(distinct), _STEP):
        part = distinct[first : first + _STEP]
        batch: tuple[list[int], list[str]] = ([], [])
        for number, (row, item) in enumerate(zip(part.tolist(), joining.everything.items(part), strict=True), first):
            if holds_one(item.content, phrases, numbers[bounds[number] : bounds[number + 1]].tolist()):
                batch[0].append(row)
                batch[1].append(item.content)
        yield batch


class Phrase:
    """The words of a surface, to be found adjacent in a text without accents and case."""

    __slots__ = ("lower", "search")

    def __init__(self, surface: Surface) -> None:
        self.lower = surface.lower
        self.search = re.compile("".join(_joined(surface.words))).search


def _joined(words: Sequence[str]) -> Iterator[str]:
    """The pattern of each word with its separator, which may be empty beside a character of a script without spaces."""
    for position, word in enumerate(words):
        if position:
            yield r"(?:[\W_]s)?[\W_]" + ("*" if is_unspaced(word) or is_unspaced(words[position - 1]) else "+")
        yield re.escape(word)


def holds_one(text: str, phrases: Sequence[Phrase], numbers: Iterable[int]) -> bool:
    """Return whether a text may mention any of some phrases; only False is certain."""
    plain = text if text.isascii() else _NOT_ASCII.sub(_plain, text)
    folded = plain.casefold()
    aligned = len(folded) == len(plain)
    for number in numbers:
        phrase = phrases[number]
        match = phrase.search(folded)
        while match is not None:
            if phrase.lower or not aligned or not plain[match.start()].islower():
                return True
            match = phrase.search(folded, match.start() + 1)
    return False


def _plain(match: re.Match[str]) -> str:
    return plain_part(match.group())


# Closeness of two passages by their words: the cosine of their terms, weighted by inverse document frequency squared.

_PAIRS_AT_ONCE = 1 << 14


class TermCloseness:
    """The closeness of pairs of passages.

    A pair has the cosine of two vectors that hold, for each term of a passage, its inverse document frequency. Titles are part
    of a passage. Stop words count like other terms: they are so common that they weigh next to nothing.
    """

    def __init__(self, terms: PassageTerms) -> None:
        self._terms = terms

    def of_pairs(self, ones: Rows, others: Rows) -> Scores:
        """Return the cosine of each pair, 0 to 1; memory is bounded by some thousands of pairs."""
        cosines = np.zeros(len(ones))
        for begin in range(0, len(ones), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            cosines[part] = self._closeness(ones[part], others[part])
        return cosines

    def _closeness(self, ones: Rows, others: Rows) -> Scores:
        distinct_ones, one_number = np.unique(ones, return_inverse=True)
        distinct_others, other_number = np.unique(others, return_inverse=True)
        rows, rows_number = np.unique(np.concatenate([distinct_ones, distinct_others]), return_inverse=True)
        terms, counts = self._terms.of_rows(rows)
        begins = np.cumsum(counts) - counts
        vocabulary, number = np.unique(terms, return_inverse=True)
        squares = (self._terms.information_of(vocabulary) ** 2)[number]
        lengths = np.bincount(np.repeat(np.arange(len(rows)), counts), squares, len(rows))
        one_rows, other_rows = rows_number[: len(distinct_ones)][one_number], rows_number[len(distinct_ones) :][other_number]
        shared = _shared(number, squares, counts, begins, one_rows, other_rows, len(vocabulary))
        cosines: Scores = shared / np.sqrt(np.maximum(lengths[one_rows] * lengths[other_rows], np.finfo(np.float64).tiny))
        return cosines


def _shared(
    number: NDArray[np.int64],
    squares: Scores,
    counts: Rows,
    begins: Rows,
    one_rows: Rows,
    other_rows: Rows,
    n_terms: int,
) -> Scores:
    """The weights of the terms that both of a pair have, added up."""
    owner = np.repeat(np.arange(len(counts)), counts)
    keys = owner * n_terms + number  # rising: rows are, and the terms of each
    n_asked = counts[other_rows]
    entries = np.repeat(begins[other_rows] - (np.cumsum(n_asked) - n_asked), n_asked) + np.arange(n_asked.sum())
    wanted = np.repeat(one_rows, n_asked) * n_terms + number[entries]
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hit = keys[places] == wanted if len(keys) else np.zeros(0, bool)
    pair = np.repeat(np.arange(len(other_rows)), n_asked)
    shared: Scores = np.bincount(pair[hit], squares[entries[hit]], len(other_rows)).astype(np.float64)
    return shared


_FLOOR = 0.05  # least evidence for a passage that carries a name: one without any is less likely, not impossible


class TitleMentions(BaseLinkExtractor):
    """Links a passage to every passage whose title or alias its content mentions.

    A title is compared without the qualifier in parentheses at its end, as whole words, regardless of case, accents and
    possessive endings; a mention begins with a lower-case letter only if the title does. Mentions are as long as possible
    and do not overlap. Repeated mentions in one passage count once; a mention that may mean the passage itself links
    nothing. A link weighs its share, divided by the number of passages that mention the target to the power of ``rarity``.

    A title that one passage carries has a share of 1. One that several carry is shared among them by prior and context, as in
    entity linking: a passage counts more if it says its own name, and if its words are close to those of the passage that
    mentions it (:class:`TermCloseness`). Passages with exactly the same title are parts of one document: it counts by its
    likeliest part, and its parts share evenly. Unlikely passages are not linked.

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
        """Yield the rows of the items and the surfaces of each, for a matcher or a title table."""
        for row, item in enumerate(items.stream({"title", self.aliases})):
            for surface in self._surfaces(item):
                yield row, surface

    def extract(self, items: ItemTable) -> Links:
        return self.extracted(items).links

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links in two passes, over the titles and over the contents; a third reads the terms, if none are given.

        Warns:
            RetrievalWarning: mentioned titles that more than ``max_shared`` passages carry.
        """
        matcher = SurfaceMatcher(self.surfaces(items))
        sources, mentioned = _mentions(items, matcher)
        links = self._shared(items, matcher, sources, mentioned, lambda: terms or PassageTerms.read_from(items))
        return Extracted(self._weighed(links, np.bincount(links.targets, minlength=len(items))))

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
        """
        if joining.titles is None:
            return super().extend(joining)
        titles, first_row, n_items = joining.titles.table, joining.first_row, len(joining.everything)
        sources, mentioned = _mentions(joining.items, joining.titles)
        # rows ascend within a title, so a title is carried by a joining row if its last row joins
        is_new = titles.rows[titles.offsets[1:] - 1] >= first_row
        before, mentioned_before = mentions_before(joining, list(self.surfaces(joining.items)), is_new)
        links = self._shared(
            joining.everything,
            titles,
            np.concatenate([sources + first_row, before]),
            np.concatenate([mentioned, mentioned_before]),
            lambda: joining.all_terms,
        )
        links = joining.touching(links)
        times_mentioned = np.bincount(links.targets, minlength=n_items)
        targets = np.unique(links.targets[links.targets < first_row])
        if len(targets):
            times_mentioned[targets] += joining.graph.n_incoming(joining.kind, targets)
        return Extracted(self._weighed(links, times_mentioned))

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        span = first_mention(source.content, self._surfaces(target), self._surfaces(source))
        return None if span is None else sentence_at(source.content, *span)

    def _shared(
        self,
        items: ItemTable,
        titles: NamedRows,
        sources: Rows,
        mentioned: NDArray[np.int64],
        terms: Callable[[], PassageTerms],
    ) -> Links:
        """Links to those that carry the mentioned titles; a link weighs its share."""
        names_own_title = names_itself(titles, sources, mentioned, len(items))
        sources, mentioned = sources[~names_own_title], mentioned[~names_own_title]
        too_common = np.diff(titles.offsets)[mentioned] > self.max_shared
        if too_common.any():
            self._warn(items, titles, mentioned[too_common])
        sources, mentioned = sources[~too_common], mentioned[~too_common]
        is_ambiguous = self.context > 0 and (np.diff(titles.offsets)[mentioned] > 1).any()
        intended = self._disambiguation(terms()) if is_ambiguous else None
        return shared_links(titles, sources, mentioned, len(items), intended)

    def _disambiguation(self, terms: PassageTerms) -> Meant:
        closeness = TermCloseness(terms)

        def likely(sources: Rows, carriers: Rows) -> Scores:
            context = (_FLOOR + closeness.of_pairs(sources, carriers)) ** self.context
            return context * (_FLOOR + terms.named(carriers))

        return Meant(likely, terms.bearers)

    def _weighed(self, links: Links, times_mentioned: Rows) -> Links:
        weights = links.weights / times_mentioned[links.targets] ** self.rarity
        return Links(links.sources, links.targets, weights.astype(np.float32))

    def _surfaces(self, item: SearchableItem) -> list[Surface]:
        return surfaces_of(item, self.aliases, self.min_characters)

    def _warn(self, items: ItemTable, titles: NamedRows, left_out: NDArray[np.int64]) -> None:
        surfaces = np.unique(left_out)
        counts = np.diff(titles.offsets)[surfaces]
        worst = surfaces[counts.argmax()]
        (carrier,) = items.items(titles.rows[titles.offsets[worst] :][:1])
        warnings.warn(
            f"{len(left_out)} mentions of {len(surfaces)} titles give no links, because more than max_shared={self.max_shared} "
            f"passages share each; the most common is that of item {carrier.item_id!r} ({carrier.title!r}), shared by "
            f"{counts.max()}: give passages distinct titles, or raise max_shared",
            RetrievalWarning,
            stacklevel=4,
        )


def _mentions(items: ItemTable, titles: SurfaceMatcher | TitleTable) -> tuple[Rows, NDArray[np.int64]]:
    """Rows and the numbers of the titles that their contents mention, each pair once."""
    sources, mentioned = array("q"), array("q")
    contents = ((row, item.content) for row, item in enumerate(items.stream(())))
    with progress("finding mentioned titles", len(items)) as advance:
        while part := list(islice(contents, _STEP)):
            for (row, _), numbers in zip(part, titles.named_in([content for _, content in part]), strict=True):
                mentioned.extend(numbers)
                sources.extend([row] * len(numbers))
            advance(len(part))
    return np.array(sources, np.int64), np.array(mentioned, np.int64)


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
        links, names_given = self._links(names, self._named_links(enumerate(items.stream({self.links}))), items)
        return Extracted(links, {_NAMES: names, _GIVEN: names_given})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links from and to items that join: the same as when all items are indexed at once.

        Links among earlier items keep their weights until ``compact``, even if a new item carries the same name too, or if the
        name now means only the new item.
        """
        new_names = HashedRows.of(_names(joining.items.stream(_NAMING)))
        called = {_words_key(name) for item in joining.items.stream(_NAMING) for name in _names_of(item)}
        givers = np.unique(joining.known(_GIVEN, _distinct(called)).rows)
        everything, first_row = joining.everything, joining.first_row
        rows = np.concatenate([givers, np.arange(first_row, len(everything))])
        givers_items = (item for part in _parts(givers) for item in everything.items(part))
        giving = zip(rows.tolist(), chain(givers_items, joining.items.stream({self.links})), strict=True)
        names_given = [(row, name) for row, name in self._named_links(giving) if row >= first_row or _words_key(name) in called]
        keys = _distinct(key(name) for _, name in names_given for key in _KEYS)
        names = joining.with_new(joining.known(_NAMES, keys), new_names)
        links, _ = self._links(names, iter(names_given), everything)
        by_new = HashedRows.of((_words_key(name), row - first_row) for row, name in names_given if row >= first_row)
        return Extracted(joining.touching(links), {_NAMES: new_names, _GIVEN: by_new})

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        target_surface, source_surface = surface_of(target.title, min_characters=1), surface_of(source.title, min_characters=1)
        if target_surface is None:
            return None
        span = first_mention(source.content, [target_surface], [source_surface] if source_surface is not None else [])
        return None if span is None else sentence_at(source.content, *span)

    def _links(self, table: HashedRows, names_of_rows: Iterator[tuple[int, str]], items: ItemTable) -> tuple[Links, HashedRows]:
        """The links that some items state, and the rows of those items by the words of the names."""
        sources, numbers = array("q"), array("q")
        words, givers = array("Q"), array("q")
        unknown: list[tuple[int, str]] = []
        n_given = n_unknown = 0
        while batch := list(islice(names_of_rows, _AT_ONCE)):
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

    def _named_links(self, items: Iterable[tuple[int, SearchableItem]]) -> Iterator[tuple[int, str]]:
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

    def _shared(self, items: ItemTable, table: HashedRows, sources: Rows, numbers: NDArray[np.int64]) -> Links:
        is_own_name = names_itself(table, sources, numbers, len(items))
        sources, numbers = sources[~is_own_name], numbers[~is_own_name]
        counts = np.diff(table.offsets)[numbers]
        too_common = counts > self.max_shared
        if too_common.any():
            worst = int(counts.argmax())
            (named,) = items.items(table.rows_of(int(numbers[worst]))[:1])
            example = f"{named.item_id!r} ({named.title!r})"
            why = f"names {counts[worst]} items at once, such as {example}; max_shared={self.max_shared}"
            self._warn(items, int(sources[worst]), f"{np.count_nonzero(too_common)} links", why)
        return shared_links(table, sources[~too_common], numbers[~too_common], len(items))

    def _warn(self, items: ItemTable, row: int, count: str, why: str) -> None:
        (item,) = items.items(np.array([row]))
        message = f"{count} in the metadata {self.links!r} are left out: item {item.item_id!r}, for example, {why}"
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


def _names_of(item: SearchableItem) -> list[str]:
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
