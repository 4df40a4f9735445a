"""The entities of a passage, sentence by sentence.

Every sentence is read by itself, so that a name never runs over the end of a sentence. The entities of the title are the
subject of all sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.entities import EntityFinder
from nlp_retrieval.text.item_sentences import SENTENCE_STARTS, item_sentence_spans

__all__ = ["READ_KEYS", "PassageEntities", "entities_by_sentence"]

READ_KEYS = frozenset({"title", SENTENCE_STARTS})
"""Metadata keys that decide the sentences and entities of an item."""

_MOST_WORDS = 16
_STEP = 256


@dataclass(frozen=True, slots=True)
class PassageEntities:
    """Entities of one passage.

    Args:
        about: the entities of its title.
        spans: where each sentence of its content begins and ends, in characters; sentences without text are left out.
        sentences: the entities of each.
    """

    about: frozenset[str]
    spans: tuple[tuple[int, int], ...]
    sentences: tuple[frozenset[str], ...]

    @property
    def all(self) -> frozenset[str]:
        """The entities of the passage."""
        return self.about.union(*self.sentences)


def entities_by_sentence(items: Iterable[SearchableItem], finder: EntityFinder) -> Iterator[PassageEntities]:
    """Yield the entities of each item, in time linear in its text.

    Args:
        items: with the metadata of :data:`READ_KEYS`.
        finder: finds the entities of a text; names of more than 16 words are left out.
    """
    stream = iter(items)
    while part := list(islice(stream, _STEP)):
        spans = [_spans(item) for item in part]
        texts = [text for item, of in zip(part, spans, strict=True) for text in (item.title, *_cut(item.content, of))]
        found = (frozenset(name for name in names if name.count(" ") < _MOST_WORDS) for names in finder.find(texts))
        for of in spans:
            about, *named = islice(found, len(of) + 1)
            yield PassageEntities(about, tuple(of), tuple(named))


def _spans(item: SearchableItem) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends, except those of white space."""
    return [(start, end) for start, end in item_sentence_spans(item) if item.content[start:end].strip()]


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    return (text[start:end] for start, end in spans)
