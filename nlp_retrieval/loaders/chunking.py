"""Cuts long items into overlapping passages that know where they came from.

For every passage, ``parent.content[start:end] == passage.content``; the passages of an item come in order and together
cover everything in it except white space; none is longer than ``size``. A text without spaces (Chinese, base64) is cut
like any other. The work is linear in the length of the text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.components.registry import ByName, with_parts_made
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ConfigurationError, ItemError
from nlp_retrieval.text.sentences import CLOSERS, ENDS

__all__ = ["ChunkingLoader"]

_LONGEST_WORD = 50
_UNSPACED = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff65\U00020000-\U0003ffff"
"""Scripts whose characters count as one word each: Han, kana and their punctuation."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_KEYS = ("parent_id", "chunk", "start", "end")


class ChunkingLoader(BaseLoader):
    """Cuts the items of another loader into overlapping passages.

    A passage's id is ``<id of the item>#<n>``, n from 0; an item that fits whole becomes one passage, ``#0``, so that
    the form of an id does not depend on the length of a text. A passage keeps the item's metadata, including its title,
    and adds ``parent_id``, ``chunk`` (n) and the span of characters ``start`` and ``end``:
    ``item.content[start:end] == passage.content``. A passage ends with a sentence if one ends in the last part of the
    allowed length, otherwise with a word; an overlap starts with a sentence if one starts near its beginning.

    Args:
        source: the loader of the items.
        size: the greatest length of a passage, in ``unit``.
        overlap: the most that a passage repeats of the end of the one before, in ``unit``; less than ``size``.
        unit: what lengths count. In ``words``, a Chinese or Japanese character counts as a word, and so does each piece of
            50 characters of something longer, such as a link or encoded data.
    """

    name = "chunker"

    def __init__(
        self,
        source: BaseLoader | ByName,
        size: Annotated[int, Field(ge=1)] = 200,
        overlap: Annotated[int, Field(ge=0)] = 50,
        unit: Literal["words", "characters"] = "words",
    ) -> None:
        if overlap >= size:
            raise ConfigurationError(f"ChunkingLoader: overlap={overlap} must be less than size={size}")
        self.source: BaseLoader = with_parts_made(self, ChunkingLoader, source=source)["source"]
        self.size = size
        self.overlap = overlap
        self.unit = unit

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the passages of each item, in the order of the source.

        Raises:
            SourceError: what the source raises.
            ItemError: the metadata of an item has a key that passages need.
        """
        for item in self.source.stream():
            taken = [key for key in _KEYS if key in item.metadata]
            if taken:
                raise ItemError(
                    f'item "{item.item_id}": its metadata has "{taken[0]}", which ChunkingLoader writes; '
                    "rename it in the source, or leave it out (metadata_fields)"
                )
            for number, (start, end) in enumerate(self._spans(item.content)):
                metadata = {**item.metadata, "parent_id": item.item_id, "chunk": number, "start": start, "end": end}
                yield SearchableItem.trusted(f"{item.item_id}#{number}", item.content[start:end], metadata)

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of the passages; one empty span for a text of white space, whose title can still be found."""
        if self._fits(text):
            start = len(text) - len(text.lstrip()) if text.strip() else 0
            yield start, start + len(text.strip())
            return
        words = _Words(text, self.size if self.unit == "characters" else None)
        covered = 0
        for first, last in words.windows(self.size, self.overlap):
            start, end = words.begins[first], words.ends[last]
            # long white space counts as words, so that it cannot fill a passage, and is then stripped
            start += len(text[start:end]) - len(text[start:end].lstrip())
            end = start + len(text[start:end].rstrip())
            if end > max(start, covered):
                yield start, end
                covered = end
        if not covered:
            yield 0, 0

    def _fits(self, text: str) -> bool:
        """Whether a text certainly fits whole, as most do; much cheaper than looking at its words one by one."""
        if self.unit == "characters":
            return len(text.strip()) <= self.size
        # an upper bound: long words and long white space count more than once
        most = len(text.split()) + len(text) // _LONGEST_WORD
        return most <= self.size and not _HAS_UNSPACED.search(text)


class _Words:
    """The words of a text as spans, and lengths in words or characters. Boundary i lies before word i."""

    def __init__(self, text: str, characters: int | None) -> None:
        longest = min(_LONGEST_WORD, characters or _LONGEST_WORD)
        pattern = rf"[{_UNSPACED}]|[^\s{_UNSPACED}]{{1,{longest}}}|\s{{{longest}}}"
        self.text = text
        self.begins, self.ends = array("q"), array("q")
        for match in re.finditer(pattern, text):
            begin, end = match.span()
            self.begins.append(begin)
            self.ends.append(end)
        count = len(self.begins)
        # where a word begins and ends, in the unit of sizes
        self.low = array("q", range(count)) if characters is None else self.begins
        self.high = array("q", range(1, count + 1)) if characters is None else self.ends

    def windows(self, size: int, overlap: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last word of each passage."""
        count = len(self.low)
        # a passage may end early, with a sentence, but must advance at least half as far as it would otherwise
        least = overlap + (size - overlap + 1) // 2
        first = 0
        while first < count:
            end = bisect_right(self.high, self.low[first] + size, lo=first)
            if end >= count:
                yield first, count - 1
                return
            earliest = bisect_left(self.high, self.low[first] + least, lo=first) + 1
            end = self.best(range(end, earliest - 1, -1), end)
            yield first, end - 1
            reach = self.high[end - 1]
            back = max(first + 1, bisect_left(self.low, reach - overlap))
            latest = min(end, bisect_right(self.low, reach - overlap // 2))
            first = min(end, self.best(range(back, latest + 1), back))

    def best(self, boundaries: range, otherwise: int) -> int:
        """Return the first of some boundaries that ends a sentence, else the first between words, else ``otherwise``."""
        gap = None
        for boundary in boundaries:
            before, after = self.ends[boundary - 1], self.begins[boundary]
            word = self.text[self.begins[boundary - 1] : before]
            space = word[-1:] if word.isspace() else self.text[before:after]
            ended = word.rstrip(CLOSERS)[-1:] in ENDS and (space or not word.isascii())
            if "\n" in space or (ended and self.text[after] not in CLOSERS):
                return boundary
            if space and gap is None:
                gap = boundary
        return otherwise if gap is None else gap
