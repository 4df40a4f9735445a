"""The base of all kinds of links: finding the links in a corpus, and showing one of them to a reader.

An extractor decides which passages point to which, and how strongly; storing and walking links are not its concern.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, Links, live_among, merged_links, open_graph
from nlp_retrieval.retrievers.link_graph.tables import HashedRows, Hashes, PassageTerms, TitleTable, hash_of
from nlp_retrieval.text.mentions import RULES, EntityFinder, EntityRule
from nlp_retrieval.text.sentences import sentences_of
from nlp_retrieval.text.surfaces import Surface, first_mention, grouped, words_of


class Extracted(NamedTuple):
    """Result of an extractor.

    Args:
        links: the links of its kind.
        tables: data to look up when items join, by name; rows count from 0 in the items that joined.

    Examples:
        >>> Extracted(Links(np.array([0]), np.array([2]), np.ones(1, np.float32))).links.targets.tolist()
        [2]
    """

    links: Links
    tables: Mapping[str, HashedRows] = {}


@dataclass(frozen=True, eq=False)
class JoiningItems:
    """Items that join an index, or all items of a new one.

    Args:
        items: the joining items.
        everything: the items of the whole index; the joining ones come last.
        segments: the segments before them; none of a new index.
        kind: kind of the links to find.
        prefix: of the names of this kind's stored tables.
        titles: the titles of all items, if the extractor uses the same titles that are found in queries; else None.
        folder: the folder of the segment being written, which holds the terms of the joining items; None without one.

    Examples:
        >>> from dataclasses import fields
        >>> [field.name for field in fields(JoiningItems)][:3]
        ['items', 'everything', 'segments']
    """

    items: ItemTable
    everything: ItemTable
    segments: Sequence[SegmentFolder] = ()
    kind: str = ""
    prefix: str = ""
    titles: TitleTable | None = None
    folder: Path | None = None

    @property
    def first_row(self) -> int:
        """Row in the index of the first item that joins."""
        return len(self.everything) - len(self.items)

    @cached_property
    def graph(self) -> LinkGraph:
        """The links of the earlier segments."""
        return open_graph(self.segments)

    @cached_property
    def terms(self) -> PassageTerms:
        """The terms of all passages."""
        if self.folder is None:
            return PassageTerms.of(self.items)
        joining = SegmentFolder(self.folder, self.first_row, len(self.everything))
        return PassageTerms.open_all([*self.segments, joining])

    def known(self, name: str, hashes: Hashes, new: HashedRows) -> HashedRows:
        """Look keys up in a table that this kind has stored, and in that of the joining items.

        Args:
            name: name of the table.
            hashes: hashes of the keys, distinct.
            new: the table of the joining items.

        Returns:
            The keys, with the rows of their items in the index.
        """
        before = [(HashedRows.open(one.folder, self.prefix + name, len(one)), one.first_row, one.live) for one in self.segments]
        return HashedRows.joined([*before, (new, self.first_row, None)], hashes) if before else new

    def touching(self, links: Links) -> Links:
        """Keep the links with a joining item at either end."""
        return links.where(np.maximum(links.sources, links.targets) >= self.first_row) if self.first_row else links


WalkWeight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Weight of walking links of one kind in one direction, relative to the others; 0 for never."""


@dataclass(frozen=True)
class LinkSentence:
    """The reason why one passage links to another.

    Args:
        text: the sentence that says so, of about 300 characters at most; "…" marks a cut.
        start: where in ``text`` the mention begins, in characters.
        end: where it ends.

    Examples:
        >>> sentence = LinkSentence("It eats tons of Krill a day.", 16, 21)
        >>> sentence.text[sentence.start : sentence.end]
        'Krill'
    """

    text: str
    start: int
    end: int


class BaseLinkExtractor(Component, ABC):
    """Base of all kinds of links between passages.

    A subclass sets ``along`` and ``against``, in ``__init__`` or, for links without a direction, both to one ``weight``;
    they change no index and belong in ``search_only``.
    """

    kind = "links"

    directed: ClassVar[bool] = True
    """True if the text of the source says something of the target; links without a direction are given once."""

    finds_again: bool = True
    """False if the links of items that an index has already cannot be found again, because their source is not at hand."""

    along: float
    """Weight of walking a link of this kind from its source to its target; at least 0."""

    against: float
    """Weight of walking it from its target to its source; at least 0."""

    @abstractmethod
    def extract(self, items: ItemTable) -> Links:
        """Find all links of a corpus.

        An implementation streams the items: its memory is bounded by the links and by a table of the titles. No passage
        links to itself, and there is at most one link from one passage to another. Links without a direction are given
        once, from the lower row to the higher.
        """

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links that touch items which join an index; rows are those of the index, and deleted items have no links.

        By default all links are searched again, also among deleted items, which takes as long as building the index.
        """
        live = live_among(joining.everything, joining.segments)
        return Extracted(joining.touching(self.extract(joining.everything).among(live)))

    @abstractmethod
    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        """Return the sentence that links two linked passages, or None if there is none."""


_CAP = 300  # characters of a sentence that are shown


def sentence_at(text: str, start: int, end: int) -> LinkSentence:
    """Return the sentence around a mention, cut to about 300 characters; only the neighbourhood of the mention is read."""
    end = min(end, start + _CAP)
    first, last = max(0, start - _CAP), min(len(text), end + _CAP)
    spans = [(first + a, first + b) for a, b in sentences_of(text[first:last])]
    begin = max((a for a, _ in spans if a <= start), default=start)
    stop = min((b for _, b in spans if b >= end), default=end)
    beside = (_CAP - (end - start)) // 2
    before, after = "", ""
    if begin < start - beside:  # cut between words, unless one word fills all the space
        begin = next((place + 1 for place in range(start - beside, start) if text[place].isspace()), start - beside)
        before = "…"
    if stop > end + beside:
        stop = next((place for place in range(end + beside, end - 1, -1) if text[place].isspace()), end + beside)
        after = "…"
    return LinkSentence(before + text[begin:stop] + after, len(before) + start - begin, len(before) + end - begin)


def mention_of(text: str, surfaces: Iterable[Surface], others: Iterable[Surface] = ()) -> LinkSentence | None:
    """Return the sentence that first mentions one of some surfaces; None if there is none."""
    span = first_mention(text, surfaces, others)
    return None if span is None else sentence_at(text, *span)


# Links between passages that name the same entity.

_ENTITIES = "entities"
_STEP = 1024


class SharedEntities(BaseLinkExtractor):
    """Links two passages whose titles or contents name the same entity; the links have no direction.

    A link weighs the sum over the shared entities of 1 / (number of passages that name the entity). Until ``compact``, links
    among earlier passages keep their weights, and stay even where an entity is now too common.

    Args:
        max_passages: an entity that more passages name says too little about any two of them, and links nothing. An entity
            makes at most ``max_passages`` ** 2 / 2 links.
        mentions: method of finding entities: by "rules" (runs of capitalised words and quoted titles, without any model), or by
            a spaCy pipeline, given as its name or folder.
        weight: of walking a link.

    Examples:
        >>> LinkGraphRetriever(["bm25"], links=[SharedEntities(max_passages=10)])
        LinkGraphRetriever(seeds=[Bm25Retriever()], links=[SharedEntities(max_passages=10)])
    """

    name = "shared_entities"
    manifest_may_set = may_set("max_passages", "weight", mentions=loads_pipeline)
    search_only = frozenset({"weight"})
    directed = False

    def __init__(
        self,
        max_passages: Annotated[int, Field(ge=2, le=1000)] = 20,
        mentions: EntityRule = RULES,
        weight: WalkWeight = 0.5,
    ) -> None:
        self.max_passages = max_passages
        self.mentions = mentions
        self.weight = weight
        self.along = self.against = weight
        self._finder = EntityFinder(mentions)

    def index_identity(self) -> Config:
        return super().index_identity() | self._finder.identity()

    def extract(self, items: ItemTable) -> Links:
        return self.extend(JoiningItems(items, items)).links

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links, with 16 bytes of memory per entity and passage that names it.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        hashes, rows = array("Q"), array("q")
        with progress("finding entities", len(joining.items)) as advance:
            for row, names in enumerate(self.entities_of(joining.items.stream({"title"}))):
                hashes.extend(map(hash_of, names))
                rows.extend([row] * (len(hashes) - len(rows)))
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        new = HashedRows(*grouped(np.array(hashes, np.uint64), np.array(rows, np.int64)))
        table, n_items = joining.known(_ENTITIES, new.hashes, new), len(joining.everything)
        counts = np.diff(table.offsets)
        n_having = np.arange(self.max_passages + 1)
        n_pairs = n_having * (n_having - 1) // 2 * np.bincount(counts[counts <= self.max_passages], minlength=len(n_having))
        keys, weights = np.empty(n_pairs.sum(), np.int64), np.empty(n_pairs.sum(), np.float32)
        ends = np.cumsum(n_pairs)
        for count in range(2, self.max_passages + 1):
            part = slice(ends[count - 1], ends[count])
            starts = table.offsets[:-1][counts == count]
            lower, higher = (table.rows[np.add.outer(starts, members)].ravel() for members in np.triu_indices(count, 1))
            keys[part], weights[part] = lower * n_items + higher, 1 / count
        return Extracted(joining.touching(merged_links(keys, weights, n_items)), {_ENTITIES: new})

    def entities_of(self, items: Iterable[SearchableItem]) -> Iterator[set[str]]:
        """Yield the names of the entities of each item, which has its title and no other metadata."""
        return self._finder.find(item.text for item in items)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        """Return the sentence that first mentions the longest entity that both name."""
        mine, theirs = self._finder.find([source.text, target.text])
        names = sorted(mine & theirs, key=lambda name: (-len(name), name))
        sentences = (mention_of(source.text, [Surface(words_of(name), lower=True)]) for name in names)
        return next((sentence for sentence in sentences if sentence is not None), None)
