"""Links from passages to the passages whose titles they mention."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight, sentence_at
from nlp_retrieval.retrievers.link_graph.links.earlier_mentions import mentions_before
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.retrievers.link_graph.links.named_rows import Meant, NamedRows, names_itself, shared_links
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.link_graph.store.title_table import TitleTable
from nlp_retrieval.text.surfaces import Surface, SurfaceMatcher, first_mention, surfaces_of

# Closeness of two passages by their words: the cosine of their terms, weighted by inverse document frequency squared.

_PAIRS_AT_ONCE = 1 << 14


class TermCloseness:
    """The closeness of pairs of passages.

    A pair has the cosine of two vectors that hold, for each term of a passage, its inverse document frequency. Titles are part
    of a passage. Stop words count like other terms: they are so common that they weigh next to nothing.

    Args:
        terms: those of all passages.
    """

    def __init__(self, terms: PassageTerms) -> None:
        self._terms = terms

    def of_pairs(self, ones: Rows, others: Rows) -> Scores:
        """Return the cosine of each pair, 0 to 1; memory is bounded by some thousands of pairs.

        Args:
            ones: rows; equal ones should be adjacent.
            others: rows.
        """
        cosines = np.zeros(len(ones))
        for begin in range(0, len(ones), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            cosines[part] = self._of_some(ones[part], others[part])
        return cosines

    def _of_some(self, ones: Rows, others: Rows) -> Scores:
        one, one_number = np.unique(ones, return_inverse=True)
        other, other_number = np.unique(others, return_inverse=True)
        rows, rows_number = np.unique(np.concatenate([one, other]), return_inverse=True)
        terms, counts = self._terms.of_rows(rows)
        begins = np.cumsum(counts) - counts
        vocabulary, number = np.unique(terms, return_inverse=True)
        squares = (self._terms.information_of(vocabulary) ** 2)[number]
        lengths = np.bincount(np.repeat(np.arange(len(rows)), counts), squares, len(rows))
        one_rows, other_rows = rows_number[: len(one)][one_number], rows_number[len(one) :][other_number]
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


_STEP = 1024
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
        own = names_itself(titles, sources, mentioned, len(items))
        sources, mentioned = sources[~own], mentioned[~own]
        too_common = np.diff(titles.offsets)[mentioned] > self.max_shared
        if too_common.any():
            self._warn(items, titles, mentioned[too_common])
        sources, mentioned = sources[~too_common], mentioned[~too_common]
        is_ambiguous = self.context > 0 and (np.diff(titles.offsets)[mentioned] > 1).any()
        meant = self._meant(terms()) if is_ambiguous else None
        return shared_links(titles, sources, mentioned, len(items), meant)

    def _meant(self, terms: PassageTerms) -> Meant:
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
            f"{len(left_out)} mentions of {len(surfaces)} titles link nothing, because more than max_shared={self.max_shared} "
            f"passages carry each; the most common is that of item {carrier.item_id!r} ({carrier.title!r}), carried by "
            f"{counts.max()}: give passages titles of their own, or raise max_shared",
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
