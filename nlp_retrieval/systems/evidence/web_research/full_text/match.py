"""Passages of a whole text that support a claim or contradict it, found by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nlp_retrieval.systems.evidence.web_research.full_text.answers import Stance, read_stances
from nlp_retrieval.systems.evidence.web_research.full_text.asking import FullTextModule, checked_pairs
from nlp_retrieval.systems.evidence.web_research.full_text.passages import NumberedText, TextPart, TextPassage

__all__ = ["Match", "MatchedPassage"]


@dataclass(frozen=True)
class MatchedPassage:
    """A passage, and its stance on a claim.

    Args:
        passage: of the text.
        stance: "supports" or "contradicts", by the model.
    """

    passage: TextPassage
    stance: Stance


class Match(FullTextModule[dict[int, Stance]]):
    """Finds the passages of a text that support a claim, and those that contradict it, without an index.

    The model names passages by their numbers, so that results are always in the text. The stance is the model's opinion,
    without a probability; a verifier (:mod:`nlp_retrieval.systems.evidence.verifiers`) gives one.
    """

    what = "match"
    fields: ClassVar = {"judge": ("claim", "passages", "findings")}

    def match(self, claim: str, text: str) -> list[MatchedPassage]:
        """Return the passages of a text with a stance on a claim, the clearest of each part first.

        Args:
            claim: one statement.
            text: the whole text.

        Raises:
            QueryError: the claim is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.match_all([claim], [text])[0]

    def match_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[list[MatchedPassage]]:
        """Return the passages of each text with a stance on its claim; all are asked in one batch.

        Args:
            claims: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(claims, texts, "claim", "claims")
        parts = [self.parts(claim, text) for claim, text in zip(asked, numbered, strict=True)]
        return [
            [MatchedPassage(text.passage(number), stance) for stances in answers for number, stance in (stances or {}).items()]
            for text, answers in zip(numbered, self.ask(asked, numbered, parts), strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> dict[int, Stance] | None:
        del text
        return read_stances(answer, part.numbers)

    def new_program(self) -> Any:
        from nlp_retrieval.systems.evidence.web_research.full_text.signatures import PassageJudge

        return PassageJudge()
