"""Passages that were judged for a claim, each with a quote that stands in the stored text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.systems.evidence.index.records import EvidencePassage
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement

__all__ = ["JudgedPassage", "judge_passages"]


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
    """Judge a claim by each of some passages; titles are not evidence: a headline may say what its page does not.

    Args:
        verifier: any.
        claim: a statement.
        passages: of any sources.
    """
    judgements = verifier.judge([claim] * len(passages), [passage.content for passage in passages])
    return [
        JudgedPassage(passage, judgement, passage.content[slice(*judgement.sentence)])
        for passage, judgement in zip(passages, judgements, strict=True)
    ]
