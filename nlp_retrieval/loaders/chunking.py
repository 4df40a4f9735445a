"""Cutting long items into overlapping passages that record their origin.

For every passage, ``parent.content[start:end] == passage.content``; the passages of an item come in order and together cover
everything in it except white space; none is longer than ``size`` words. A text without spaces (Chinese, base64) is cut like
any other. The work is linear in the length of the text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from typing import Annotated

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ConfigurationError, ItemError
from nlp_retrieval.text.sentences import CLOSERS, ENDS
from nlp_retrieval.text.words import marks

_LONGEST_WORD = 50
_PIECE = 10
"""Characters that count as one word in long runs, such as links or encoded data."""

_UNSPACED = (
    "\u2e80-\u312f\u31a0-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\uff00-\uff9f"
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
)
"""Scripts whose characters count as one word each: Han, kana, Bopomofo, Yi, Tangut and their punctuation."""

_LETTERS = "\u0e01-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aad\u1b00-\u1b59\ua980-\ua9ff\uaa60-\uaadd"
"""Scripts of letters that put no space between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai, Balinese, Javanese."""

_LETTERS_PER_WORD = 6
_VOWELS = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"
"""Letters of Thai and Lao that follow theirs as marks do."""
_JOINING = "\u0e40-\u0e44\u0ec0-\u0ec4\u1039\u17d2\u1a60"
"""Vowels of Thai and Lao that are written before their consonant, and signs that stack the next consonant."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}{_LETTERS}]")
_KEYS = ("parent_id", "chunk", "start", "end", "page")
_PAGES = "page_starts"


class ChunkingLoader(BaseLoader):
    """Cuts the items of another loader into overlapping passages.

    A passage's id is ``<id of the item>#<n>``, n from 0; a short item becomes one passage, ``#0``, so that the form of an id
    does not depend on the length of a text. A passage keeps the item's metadata, including its title, and adds ``parent_id``,
    ``chunk`` (n) and the span of characters ``start`` and ``end``: ``item.content[start:end] == passage.content``. A passage
    ends with a sentence if one ends in the last part of the allowed length, otherwise with a word; an overlap starts with a
    sentence if one starts near its beginning. Where an item's metadata have ``page_starts``, the number of each page and where
    it begins, a passage has its ``page``, on which it begins, and ``page_starts`` of its own if it goes on to others.

    A Chinese or Japanese character counts as a word, and so do six of Thai, Lao, Burmese and other scripts without spaces, and
    each piece of 10 characters of anything longer than 50, such as a link.

    Args:
        source: the loader of the items.
        size: the greatest length of a passage, in words.
        overlap: greatest length of the end of a passage that the next one repeats, in words; less than ``size``.

    Examples:
        >>> _ = Path("book.jsonl").write_text(json.dumps({"id": "1", "content": "one two three four five six"}))
        >>> [item.content for item in ChunkingLoader(JsonlLoader("book.jsonl"), size=4, overlap=1).stream()]
        ['one two three four', 'four five six']
    """

    name = "chunker"
    manifest_may_set = may_set("source", "size", "overlap")

    def __init__(
        self,
        source: BaseLoader | ByName,
        size: Annotated[int, Field(ge=1)] = 200,
        overlap: Annotated[int, Field(ge=0)] = 50,
    ) -> None:
        if overlap >= size:
            raise ConfigurationError(f"ChunkingLoader: overlap={overlap} must be less than size={size}")
        self.source: BaseLoader = resolve_components(self, ChunkingLoader, source=source)["source"]
        self.size = size
        self.overlap = overlap

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the passages of each item, in the order of the source.

        Raises:
            SourceError: raised by the source.
            ItemError: the metadata of an item has a key that passages need.
        """
        for item in self.source.stream():
            pages = _pages_of(item)
            reserved = [key for key in _KEYS if key in item.metadata and (key != "page" or pages)]
            if reserved:
                raise ItemError(
                    f'item "{item.item_id}": its metadata has "{reserved[0]}", which ChunkingLoader writes; '
                    "rename it in the source, or leave it out (metadata_fields)"
                )
            for number, (start, end) in enumerate(self._spans(item.content)):
                metadata = {**item.metadata, "parent_id": item.item_id, "chunk": number, "start": start, "end": end}
                if pages:
                    del metadata[_PAGES]
                    first = max(0, bisect_right(pages, start, key=itemgetter(1)) - 1)
                    own: list[JsonValue] = [[page, max(0, begin - start)] for page, begin in pages[first:] if begin < end]
                    metadata["page"] = pages[first][0]
                    if len(own) > 1:
                        metadata[_PAGES] = own
                yield SearchableItem.trusted(f"{item.item_id}#{number}", item.content[start:end], metadata)

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of the passages; one empty span for a text of white space, whose title can still be found."""
        if self._fits(text):
            start = len(text) - len(text.lstrip()) if text.strip() else 0
            yield start, start + len(text.strip())
            return
        words = _Words(text)
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
        """Return whether a text certainly fits whole, as most do; much cheaper than reading its words one by one."""
        # an upper bound: long words and long white space count more than once
        words = text.split()
        most = len(words) + len(text) // (_LONGEST_WORD if max(map(len, words), default=0) <= _LONGEST_WORD else _PIECE)
        return most <= self.size and not _HAS_UNSPACED.search(text)


def _pages_of(item: SearchableItem) -> list[tuple[int, int]]:
    """Return the number of each page and where it begins, in order; empty if the item does not say."""
    pages = item.metadata.get(_PAGES)
    if not isinstance(pages, list):
        return []
    pairs = [tuple(page) for page in pages if isinstance(page, list) and len(page) == 2]
    whole = len(pairs) == len(pages) and all(type(value) is int for pair in pairs for value in pair)
    return sorted(pairs, key=itemgetter(1)) if whole else []  # type: ignore[arg-type]


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a word, or of white space as long as the longest word."""
    mark, apart = f"[{marks()}{_VOWELS}]{{0,8}}", _UNSPACED + _LETTERS
    parts = [
        f"[{_UNSPACED}]",
        f"[{_LETTERS}]{{1,{_LETTERS_PER_WORD}}}{mark}(?:(?<=[{_JOINING}])[{_LETTERS}]{mark}){{0,2}}",
        rf"[^\s{apart}]{{1,{_LONGEST_WORD}}}+(?![^\s{apart}])",
        rf"[^\s{apart}]{{1,{_PIECE}}}",
        rf"\s{{{_LONGEST_WORD}}}",
    ]
    return re.compile("|".join(parts))


class _Words:
    """The words of a text as spans. Boundary i lies before word i."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begins, self.ends = array("q"), array("q")
        for match in _pattern().finditer(text):
            self.begins.append(match.start())
            self.ends.append(match.end())

    def windows(self, size: int, overlap: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last word of each passage."""
        count = len(self.begins)
        # a passage may end early, with a sentence, but must advance at least half as far as it would otherwise
        least = overlap + (size - overlap + 1) // 2
        first = 0
        while first < count:
            if first + size >= count:
                yield first, count - 1
                return
            end = self.best(range(first + size, first + least - 1, -1), first + size)
            yield first, end - 1
            back = max(first + 1, end - overlap)
            first = self.best(range(back, min(end, end - overlap // 2 + 1) + 1), back)

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
