"""Passages as a language model is shown them: numbered sentences, one a line, in which no text can pass for structure.

The texts come from anybody. None can begin a line, and none has a square or an angle bracket, so it can hold neither DSPy's
markers nor a chat template's, nor the label of a passage. What it says in plain words a model may still believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.core.answer import Fact
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.lm.answering.answerer import title_of
from nlp_retrieval.text.fence import fenced
from nlp_retrieval.text.item_sentences import item_sentence_spans

__all__ = ["ShownPassage", "shown_passage", "written"]

_TITLE_CHARACTERS = 200


@dataclass(frozen=True)
class ShownPassage:
    """A passage as it is shown.

    Args:
        item: the passage.
        sentences: what is shown of each of its sentences; empty where that is nothing.
    """

    item: SearchableItem
    sentences: list[str]

    def fact(self, number: int) -> Fact | None:
        """The sentence of a number from 1, as it is labelled; None where no such sentence is shown."""
        shown = 1 <= number <= len(self.sentences) and bool(self.sentences[number - 1])
        return (title_of(self.item), number - 1) if shown else None


def shown_passage(item: SearchableItem, characters: int) -> ShownPassage:
    """Return what is shown of an item.

    Args:
        item: the passage.
        characters: of its content that are shown; a sentence that goes on beyond them is cut.
    """
    spans = [(begin, min(end, characters)) for begin, end in item_sentence_spans(item) if begin < characters]
    return ShownPassage(item, [fenced(item.content[begin:end]) for begin, end in spans])


def written(passages: Sequence[ShownPassage]) -> str:
    """Return passages as text: ``Passage 1: <title>``, then ``1.1 <sentence>`` and so on, numbers from 1."""
    lines = []
    for number, passage in enumerate(passages, start=1):
        lines.append(f"Passage {number}: {fenced(title_of(passage.item)[:_TITLE_CHARACTERS])}")
        lines += [f"{number}.{place} {text}" for place, text in enumerate(passage.sentences, start=1) if text]
    return "\n".join(lines)
