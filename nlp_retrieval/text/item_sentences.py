"""The sentences of an item: those counted by its source, if its metadata give them, or else those found in the text.

A supporting fact is a title and the number of a sentence, so the numbers must be those of the data set. The metadata are
untrusted: starts out of order, or outside the text, are ignored.
"""

from __future__ import annotations

from itertools import pairwise

from pydantic import JsonValue

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.sentences import sentence_spans

__all__ = ["SENTENCE_STARTS", "item_sentence_spans"]

SENTENCE_STARTS = "sentence_starts"
"""The metadata key with the start of each sentence of the content, in characters."""


def item_sentence_spans(item: SearchableItem) -> list[tuple[int, int]]:
    """Return where each sentence of an item's content begins and ends, in characters; an empty sentence keeps its number.

    Args:
        item: with its sentences in ``metadata["sentence_starts"]``, or without.
    """
    starts = _believable(item.metadata.get(SENTENCE_STARTS), len(item.content))
    return sentence_spans(item.content) if starts is None else list(pairwise([*starts, len(item.content)]))


def _believable(told: JsonValue, length: int) -> list[int] | None:
    if not isinstance(told, list) or not told:
        return None
    starts = [start for start in told if isinstance(start, int) and not isinstance(start, bool)]
    in_order = len(starts) == len(told) and starts[0] == 0 and starts[-1] <= length
    return starts if in_order and all(one <= other for one, other in pairwise(starts)) else None
