"""Passages that were judged for a claim, each with a quote that stands in the stored text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.core.models import join_title
from nlp_retrieval.evidence.index.records import EvidencePassage
from nlp_retrieval.evidence.verifiers.base import BaseVerifier, Judgement
from nlp_retrieval.evidence.verifiers.signals.checks import check

__all__ = ["JudgedPassage", "judge_passages", "sentence_in"]


@dataclass(frozen=True)
class JudgedPassage:
    """A passage and what a verifier says of it.

    Args:
        passage: of a source.
        judgement: its probabilities and signals; ``sentence`` is a span of ``passage.content``.
        quote: the deciding sentence, exactly as it stands in the stored text of the source.
    """

    passage: EvidencePassage
    judgement: Judgement
    quote: str


def judge_passages(verifier: BaseVerifier, claim: str, passages: Sequence[EvidencePassage]) -> list[JudgedPassage]:
    """Judge a claim by each of some passages; a verifier reads a passage with the title of its source before it.

    Args:
        verifier: any.
        claim: a statement.
        passages: of any sources.
    """
    texts = [join_title(passage.title, passage.content) for passage in passages]
    judged = []
    for passage, text, judgement in zip(passages, texts, verifier.judge([claim] * len(texts), texts), strict=True):
        begin, end = sentence_in(claim, passage.content, judgement.sentence, len(text) - len(passage.content))
        moved = Judgement(judgement.support, judgement.contradict, judgement.neutral, (begin, end), judgement.signals)
        judged.append(JudgedPassage(passage, moved, passage.content[begin:end]))
    return judged


def sentence_in(claim: str, content: str, sentence: tuple[int, int], before: int) -> tuple[int, int]:
    """Return a sentence of a longer text as a span of the content that ends it.

    Args:
        claim: a statement; where the sentence lies before the content, the one nearest to it in the content is taken.
        content: the end of the text.
        sentence: a span of the whole text.
        before: how many characters of the text stand before the content.
    """
    begin, end = max(0, sentence[0] - before), sentence[1] - before
    return (begin, end) if end > begin else check(claim, content).sentence
