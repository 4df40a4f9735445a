"""The base of all kinds of links: finding the links in a corpus, and showing one of them to a reader.

An extractor decides which passages point to which, and how strongly; storing and walking links are not its concern.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Component, Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, Links, merged_links, open_graph
from nlp_retrieval.retrievers.link_graph.tables import HashedRows, Hashes, PassageTerms, Placed, TitleTable, hash_of
from nlp_retrieval.text.mentions import RULES, EntityFinder, EntityRule
from nlp_retrieval.text.surfaces import Surface, first_mention, grouped, words_of

# Input of an extractor when items join an index: the items, and the stored data of the earlier segments.


class Extracted(NamedTuple):
    """Result of an extractor.

    Args:
        links: the links of its kind.
        tables: data to look up when items join, by name; rows count from 0 in the items that it read.

    Examples:
        >>> Extracted(Links(np.array([0]), np.array([2]), np.ones(1, np.float32))).links.targets.tolist()
        [2]
    """

    links: Links
    tables: Mapping[str, HashedRows] = {}


@dataclass(frozen=True, eq=False)
class JoiningItems:
    """Items that join an index.

    Args:
        items: the joining items.
        everything: the items of the whole index; the joining ones come last.
        segments: the segments before them.
        kind: kind of the links to find.
        prefix: of the names of this kind's stored tables.
        titles: the titles of all items, if the extractor uses the same titles that are found in queries; else None.
        scratch: the folder of the segment being written, which holds the terms of the joining items; also for temporary files.

    Examples:
        >>> from dataclasses import fields
        >>> [field.name for field in fields(JoiningItems)][:3]
        ['items', 'everything', 'segments']
    """

    items: ItemTable
    everything: ItemTable
    segments: Sequence[SegmentFolder]
    kind: str
    prefix: str
    titles: TitleTable | None
    scratch: Path

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
        """The terms of the passages of the earlier segments."""
        return PassageTerms.open_all(self.segments)

    @cached_property
    def all_terms(self) -> PassageTerms:
        """The terms of all passages; those of the joining items are in the scratch folder, which is their segment's."""
        joined = SegmentFolder(self.scratch, self.first_row, len(self.everything))
        return PassageTerms.open_all([*self.segments, joined])

    def known(self, name: str, hashes: Hashes) -> HashedRows:
        """Look keys up in a table that this kind has stored.

        Args:
            name: name of the table.
            hashes: hashes of the keys, distinct.

        Returns:
            The keys that items of the earlier segments have, with the rows of those items in the index.
        """
        return HashedRows.joined(kept_tables(self.segments, self.prefix + name), hashes)

    def with_new(self, known: HashedRows, new: HashedRows) -> HashedRows:
        """Join the result of :meth:`known` and a table of the joining items."""
        return HashedRows.joined([Placed(known, 0), Placed(new, self.first_row)])

    def of_all(self, extract: Callable[[ItemTable], Links]) -> Links:
        """All links of the index, extracted again; deleted items have none.

        Args:
            extract: finds the links of items, none of which is deleted.
        """
        live = self.everything.live
        if live is None:
            return extract(self.everything)
        with TemporaryDirectory(dir=self.scratch) as folder:
            write_items(self.everything.stream_live(), Path(folder))
            links = extract(ItemTable(Path(folder) / ITEMS_FILE))
        rows = np.flatnonzero(live)
        return Links(rows[links.sources], rows[links.targets], links.weights)

    def touching(self, links: Links) -> Links:
        """Keep the links with a joining item at either end."""
        return links.where(np.maximum(links.sources, links.targets) >= self.first_row)


def kept_tables(segments: Sequence[SegmentFolder], name: str) -> list[Placed]:
    """Open the table of a name that each of some segments stores."""
    return [
        Placed(HashedRows.open(segment.folder, name, len(segment)), segment.first_row, segment.live) for segment in segments
    ]


WalkWeight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Weight of walking links of one kind in one direction, relative to the others; 0 for never."""

_CAP = 300  # characters of a sentence that are shown
_SENTENCE_END = re.compile('(?<![.!?…])[.!?…]++["\'”’)\\]»]*+(?=\\s)|[。！？]["”’」』)]*|\n')  # noqa: RUF001
_ABBREVIATIONS = frozenset(
    """
    Mr Mrs Ms Mx Dr Prof Rev Hon St Ste Mt Ft Lt Col Gen Capt Cpt Sgt Maj Cmdr Adm Gov Sen Rep Pres Jr Sr Bros Inc Ltd Co Corp
    No Nos Vol Op Fig pp vs ca al cf eg ie approx est Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    """.split()
)


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

    tables: ClassVar[tuple[str, ...]] = ()
    """Names of the tables that it stores with its links."""

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

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find all links of a corpus, and the tables, named in ``tables``, that :meth:`extend` looks up when items join.

        Args:
            items: all items.
            terms: the terms of all items, if they have been read before.
        """
        del terms
        return Extracted(self.extract(items))

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links that touch items which join an index; rows are those of the index, and deleted items have no links.

        By default all links of all items are searched again, which takes as long as building the index.
        """
        links = joining.touching(joining.of_all(self.extract))
        return Extracted(links, self.extracted(joining.items).tables if self.tables else {})

    @abstractmethod
    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        """Return the sentence that links two linked passages, or None if there is none."""


def sentence_at(text: str, start: int, end: int) -> LinkSentence:
    """Return the sentence around a mention, cut to about 300 characters.

    A sentence ends at a full stop, question or exclamation mark before white space, unless a lower-case letter follows or an
    abbreviation or an initial precedes; and at a line break. Only the neighbourhood of the mention is read.
    """
    end = min(end, start + _CAP)
    first, last = max(0, start - _CAP), min(len(text), end + _CAP)
    begin, stop = first, last
    for boundary in _boundaries(text, first, last):
        if boundary <= start:
            begin = boundary
        elif boundary >= end:
            stop = boundary
            break
    sentence = begin, stop
    if stop - begin > _CAP:
        begin = max(begin, start - (_CAP - (end - start)) // 2)
        stop = min(stop, begin + _CAP)
        begin = max(sentence[0], stop - _CAP)
    cut_before, cut_after = begin != sentence[0] or begin == first > 0, stop != sentence[1] or stop == last < len(text)
    if cut_before:  # between words, unless one word fills all the space
        begin = next((position + 1 for position in range(begin, start) if text[position].isspace()), begin)
    if cut_after:
        stop = next((position for position in range(stop - 1, end - 1, -1) if text[position].isspace()), stop)
    begin += len(text[begin:start]) - len(text[begin:start].lstrip())
    stop -= len(text[end:stop]) - len(text[end:stop].rstrip())
    before, after = "…" * cut_before, "…" * cut_after
    return LinkSentence(before + text[begin:stop] + after, len(before) + start - begin, len(before) + end - begin)


def _boundaries(text: str, first: int, last: int) -> Iterator[int]:
    """The positions between two others in a text at which a sentence ends, ascending."""
    for match in _SENTENCE_END.finditer(text, first, last):
        goes_on = text[match.end() : last].lstrip()[:1].islower() and match.group() != "\n"
        if not goes_on and not (match.group() == "." and _is_abbreviated(text, match.start())):
            yield match.end()


def _is_abbreviated(text: str, stop: int) -> bool:
    """Return whether the full stop at a position belongs to an abbreviation ("St.") or an initial ("J.")."""
    begin = stop
    while begin > 0 and stop - begin < 7 and text[begin - 1].isalpha():
        begin -= 1
    return stop - begin == 1 or text[begin:stop] in _ABBREVIATIONS


# Links between passages that name the same entity.

_ENTITY_TABLE = "entities"
_STEP = 1024


class SharedEntities(BaseLinkExtractor):
    """Links two passages whose titles or contents name the same entity; the links have no direction.

    A link weighs the sum over the shared entities of 1 / (number of passages that name the entity).

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
    tables = (_ENTITY_TABLE,)

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
        """Find the links, with 16 bytes of memory per entity and passage that names it.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        return self.extracted(items).links

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links, and which passages name which entity."""
        del terms
        table = self._rows_of_entities(items)
        return Extracted(self._links(table, len(items)), {_ENTITY_TABLE: table})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links of passages that join; they weigh the same as when all passages are indexed at once.

        Until ``compact``, links among earlier passages keep their weights, and stay even where an entity is now too common.
        """
        new = self._rows_of_entities(joining.items)
        table = joining.with_new(joining.known(_ENTITY_TABLE, new.hashes), new)
        return Extracted(joining.touching(self._links(table, len(joining.everything))), {_ENTITY_TABLE: new})

    def entities_of(self, items: Iterable[SearchableItem]) -> Iterator[set[str]]:
        """Yield the names of the entities of each item, which has its title and no other metadata."""
        return self._finder.find(item.text for item in items)

    def _rows_of_entities(self, items: ItemTable) -> HashedRows:
        hashes, rows = array("Q"), array("q")
        with progress("finding entities", len(items)) as advance:
            for row, names in enumerate(self.entities_of(items.stream({"title"}))):
                before = len(hashes)
                hashes.extend(map(hash_of, names))
                rows.extend([row] * (len(hashes) - before))
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        return HashedRows(*grouped(np.array(hashes, np.uint64), np.array(rows, np.int64)))

    def _links(self, table: HashedRows, n_items: int) -> Links:
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
        return merged_links(keys, weights, self.name, n_items)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        mine, theirs = self._finder.find([source.text, target.text])
        return mention_of_longest(source.text, mine & theirs)


def mention_of_longest(text: str, names: Iterable[str]) -> LinkSentence | None:
    """Return the sentence that first mentions the longest of some names that a text mentions; None if it mentions none."""
    for name in sorted(names, key=lambda name: (-len(name), name)):
        span = first_mention(text, [Surface(words_of(name), lower=True)])
        if span is not None:
            return sentence_at(text, *span)
    return None
