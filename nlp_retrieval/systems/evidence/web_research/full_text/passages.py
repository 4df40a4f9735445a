"""Whole text as numbered passages, in parts that a language model can read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans
from nlp_retrieval.text import fenced, words_of

__all__ = ["NumberedText", "TextPart", "TextPassage"]


@dataclass(frozen=True)
class TextPassage:
    """A passage of a text.

    Args:
        start: of the passage in the text's stored form
            (:func:`~nlp_retrieval.systems.evidence.index.passages.normal_text`), in characters.
        end: of the passage.
        content: the exact text of the span.
    """

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class TextPart:
    """Passages that are shown together.

    Args:
        shown: a line for each, with its number.
        numbers: of the passages, from 1 in the whole text.
    """

    shown: str
    numbers: tuple[int, ...]


class NumberedText:
    """A text and its passages, those of the index (:mod:`nlp_retrieval.systems.evidence.index.passages`).

    Args:
        text: the whole text.

    Raises:
        ItemError: it is not a string, or empty.
    """

    def __init__(self, text: str) -> None:
        self.text = normal_text(text)
        self.spans = passage_spans(self.text)

    def passage(self, number: int) -> TextPassage:
        """Return a passage.

        Args:
            number: from 1.
        """
        start, end = self.spans[number - 1]
        return TextPassage(start, end, self.text[start:end])

    def part(self, numbers: Sequence[int]) -> TextPart:
        """Return passages as a part to show.

        Args:
            numbers: from 1.
        """
        lines = [f"[{number}] {fenced(self.passage(number).content)}" for number in numbers]
        return TextPart("\n".join(lines), tuple(numbers))

    def parts(self, query: str, characters: int, most: int) -> list[TextPart]:
        """Return the parts of the text, in order; of a longer text those that share most words with a query.

        Args:
            query: a question, or a claim.
            characters: the most characters of a part; a passage is never divided.
            most: the most parts.
        """
        groups: list[list[int]] = []
        size = 0
        for number, (start, end) in enumerate(self.spans, start=1):
            size += end - start
            if not groups or size > characters:
                groups.append([])
                size = end - start
            groups[-1].append(number)
        if len(groups) > most:
            wanted = set(words_of(query))
            shared = [len(wanted & set(words_of(self._content(group)))) for group in groups]
            best = sorted(range(len(groups)), key=lambda place: (-shared[place], place))[:most]
            groups = [groups[place] for place in sorted(best)]
        return [self.part(group) for group in groups]

    def _content(self, numbers: Sequence[int]) -> str:
        return self.text[self.spans[numbers[0] - 1][0] : self.spans[numbers[-1] - 1][1]]
