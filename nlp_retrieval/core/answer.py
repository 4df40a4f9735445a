"""Answers to questions: a short answer, the reasoning, and the citations."""

from __future__ import annotations

from pydantic import Field

from nlp_retrieval.core.models import PlainModel

__all__ = ["Answer", "Fact"]

Fact = tuple[str, int]
"""A sentence: the title of its passage (the item id if there is none) and its number in it, counted from 0 as in HotpotQA."""


class Answer(PlainModel):
    """An answer to one question; it may also say that there is no answer.

    Args:
        text: a few words; empty if there is no answer.
        reasoning: why, in the answerer's words.
        passages: ids of the items that it cites, in order, each once.
        facts: the sentences that it cites, in order, each once.
        dropped: how many citations named a passage or a sentence that the answerer was not given.
        failed: whether there is no answer because the answerer failed, and not because it found none.
    """

    text: str
    reasoning: str = ""
    passages: list[str] = Field(default_factory=list)
    facts: list[Fact] = Field(default_factory=list)
    dropped: int = Field(default=0, ge=0)
    failed: bool = False
