"""The base of all kinds of links: finding the links in a corpus, and showing one of them to a reader.

An extractor decides which passages point to which, and how strongly; storing and walking links are not its concern.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms

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

    Args:
        text: the whole text.
        start: where in it the mention begins.
        end: where it ends; a mention of more than 300 characters is cut there.
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
    whole = begin, stop
    if stop - begin > _CAP:
        begin = max(begin, start - (_CAP - (end - start)) // 2)
        stop = min(stop, begin + _CAP)
        begin = max(whole[0], stop - _CAP)
    cut_before, cut_after = begin != whole[0] or begin == first > 0, stop != whole[1] or stop == last < len(text)
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
