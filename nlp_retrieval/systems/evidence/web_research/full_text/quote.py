"""Quotation from a whole text that supports a claim: chosen by a language model, and verified in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nlp_retrieval.lm import LONGEST_ANSWER, unwrapped
from nlp_retrieval.systems.evidence.verifiers.windows import Span
from nlp_retrieval.systems.evidence.web_research.full_text.asking import FullTextModule, checked_pairs
from nlp_retrieval.systems.evidence.web_research.full_text.passages import NumberedText, TextPart
from nlp_retrieval.text import located, sentences_around

__all__ = ["Quotation", "Quote"]

_MARKS = " \n\t`\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
_NOTHING = frozenset(("none", "n/a", "null", "nothing"))


@dataclass(frozen=True)
class Quotation:
    """Words of a text.

    Args:
        start: of the words in the text's stored form
            (:func:`~nlp_retrieval.systems.evidence.index.passages.normal_text`), in characters.
        end: of the words.
        content: the exact text of the span.
        sentences: span of the whole sentences around them, which may contain words that reverse the meaning.
    """

    start: int
    end: int
    content: str
    sentences: Span


class Quote(FullTextModule[str]):
    """Quotes the words of a text that support a claim.

    The model's answer is looked up in the text, and returned only if it is there word for word; only white space may differ,
    and the text's own words are returned. That they support the claim is the model's opinion.
    """

    what = "quote"
    fields: ClassVar = {"quote": ("claim", "passages", "quote")}

    def quote(self, claim: str, text: str) -> Quotation | None:
        """Return the words of a text that support a claim; None if the model gives none that are there.

        Args:
            claim: the statement that cites the text.
            text: the whole text.

        Raises:
            QueryError: the claim is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.quote_all([claim], [text])[0]

    def quote_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[Quotation | None]:
        """Return a quotation of each text for its claim; all are asked in one batch.

        Args:
            claims: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(claims, texts, "claim", "claims")
        parts = [self.parts(claim, text) for claim, text in zip(asked, numbered, strict=True)]
        return [
            next((quotation for answer in answers if answer and (quotation := _quotation(answer, text)) is not None), None)
            for text, answers in zip(numbered, self.ask(asked, numbered, parts), strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> str | None:
        """Return the quotation in an answer, empty if it says that there is none; None for one that is not in the text."""
        words = unwrapped(answer)
        if not isinstance(words, str):
            return None
        words = words[:LONGEST_ANSWER].strip()
        if words.strip(_MARKS + ".").lower() in _NOTHING:
            return ""
        begin, end = text.spans[part.numbers[0] - 1][0], text.spans[part.numbers[-1] - 1][1]
        bare = words.strip(_MARKS)
        forms = (words, bare.partition("] ")[2] if bare.startswith("[") else "")
        return next((form for form in forms if located(form, text.text, begin, end) is not None), None)

    def new_program(self) -> Any:
        from nlp_retrieval.systems.evidence.web_research.full_text.signatures import PassageQuoter

        return PassageQuoter()


def _quotation(words: str, text: NumberedText) -> Quotation | None:
    span = located(words, text.text)
    return None if span is None else Quotation(*span, text.text[slice(*span)], sentences_around(span, text.text))
