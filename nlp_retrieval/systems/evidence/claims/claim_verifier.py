"""Verifying a claim against the index: what supports it, what contradicts it, from how many independent origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nlp_retrieval.errors import ConfigurationError, QueryError, nearest
from nlp_retrieval.systems.evidence.claims.independence import Origin, origins_of
from nlp_retrieval.systems.evidence.claims.judged import JudgedPassage, judge_passages
from nlp_retrieval.systems.evidence.claims.status import ClaimStatus, status_of
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.urls import registrable_domain
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.signals.figures import missing_figures

__all__ = ["ClaimVerdict", "ClaimVerifier"]

_QUALITY = {"C1": "B", "C2": "C"}


@dataclass(frozen=True)
class ClaimVerdict:
    """What the index says about a claim.

    Args:
        claim: the statement.
        claim_type: "C1" or "C2".
        min_quality: the lowest grade of the sources that were read.
        supporting_evidence: passages that support it, most likely ones first.
        contradicting_evidence: passages that contradict it, most likely ones first.
        neutral_evidence: passages that were read and do neither, or not clearly enough; least neutral ones first.
        supporting_origins: the independent origins of the former, as numbers of passages in that list.
        contradicting_origins: those of the contradicting passages.
        verification_status: follows from the numbers of origins alone.
        rule: which rule gave it, in words, and how many passages the verifier did not judge, or were not counted because their
            source lacks a number of the claim, where there are any.
        not_judged: how many passages that is: the claim is longer than it reads, or it gave no usable answer. They are among
            the neutral ones.
    """

    claim: str
    claim_type: str
    min_quality: str
    supporting_evidence: list[JudgedPassage]
    contradicting_evidence: list[JudgedPassage]
    neutral_evidence: list[JudgedPassage]
    supporting_origins: list[Origin]
    contradicting_origins: list[Origin]
    verification_status: ClaimStatus
    rule: str
    not_judged: int = 0

    @property
    def independence_count(self) -> int:
        """How many independent origins support the claim."""
        return len(self.supporting_origins)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for JSON."""
        return {
            "claim": self.claim,
            "claim_type": self.claim_type,
            "min_quality": self.min_quality,
            "supporting_evidence": [_plain(one) for one in self.supporting_evidence],
            "contradicting_evidence": [_plain(one) for one in self.contradicting_evidence],
            "neutral_evidence": [_plain(one) for one in self.neutral_evidence],
            "independence_count": self.independence_count,
            "contradicting_independence_count": len(self.contradicting_origins),
            "supporting_origins": [asdict(one) for one in self.supporting_origins],
            "contradicting_origins": [asdict(one) for one in self.contradicting_origins],
            "verification_status": self.verification_status,
            "rule": self.rule,
            "not_judged": self.not_judged,
        }


class ClaimVerifier:
    """Looks up a claim in an index of sources, and judges what it finds.

    Args:
        index: of sources.
        verifier: judges passages.
        k: how many passages are read for a claim.
        threshold: a passage supports or contradicts the claim where the verifier gives that at least this probability;
            below it, the verifier abstains and the passage counts as neutral. So does a passage whose source lacks a number
            or a date of the claim, whatever the verifier says.

    Raises:
        ConfigurationError: ``k`` is less than 1, or the threshold is not above 0.33 and at most 1.
    """

    def __init__(self, index: EvidenceIndex, verifier: BaseVerifier, k: int = 20, threshold: float = 0.6) -> None:
        if k < 1:
            raise ConfigurationError(f"k={k}; read at least one passage")
        if not 1 / 3 < threshold <= 1:
            raise ConfigurationError(
                f"threshold={threshold}; it must be above 0.33, where three labels are equal, and at most 1"
            )
        self.index, self.verifier, self.k, self.threshold = index, verifier, k, threshold

    def verify(self, claim: str, claim_type: Literal["C1", "C2"] = "C2") -> ClaimVerdict:
        """Verify a claim.

        Args:
            claim: one statement.
            claim_type: "C1" for a claim that must rest on sources of grade B or better, "C2" for one of C or better.

        Raises:
            ConfigurationError: the type is another.
            QueryError: the claim is not a text.
        """
        if claim_type not in _QUALITY:
            raise ConfigurationError(f"claim_type={claim_type!r}; {nearest(str(claim_type), _QUALITY)}")
        passages = self.index.search(claim, self.k, min_quality=_QUALITY[claim_type])
        judged = judge_passages(self.verifier, claim, passages)
        texts = {key: self._text(key) for key in {one.passage.key for one in judged}}
        judged = [one for one in judged if _stands(one, texts[one.passage.key])]
        doubtful = [one for one in judged if self._is_doubtful(one)]
        sure = [one for one in judged if one not in doubtful]
        likely = [one for one in sure if one.judgement.support >= self.threshold]
        lacking = [_lacking(claim, one, texts[one.passage.key]) for one in likely]
        supporting = [one for one, lacks in zip(likely, lacking, strict=True) if not lacks]
        contradicting = [one for one in sure if one.judgement.contradict >= self.threshold]
        neutral = [one for one in judged if one not in supporting and one not in contradicting]
        neutral.sort(key=lambda one: one.judgement.neutral)
        supporting.sort(key=lambda one: -one.judgement.support)
        contradicting.sort(key=lambda one: -one.judgement.contradict)
        for_it, against_it = (_origins(self.index, found, texts) for found in (supporting, contradicting))
        status, rule = status_of(len(for_it), len(against_it))
        if doubtful:
            rule += f"; {len(doubtful)} of {len(judged)} passages do not count, since readers of their page may not see them"
        silent = [one.judgement for one in judged if not one.judgement.was_judged]
        if silent:
            why = "the claim is longer than it reads" if silent[0].unread else "there was no usable answer"
            rule += f"; {len(silent)} of {len(judged)} passages were not judged by {self.verifier.name}: {why}"
        if lacks := [figures for figures in lacking if figures]:
            rule += f"; {len(lacks)} of {len(judged)} passages do not support it, as their source lacks {lacks[0]}"
        return ClaimVerdict(
            claim,
            claim_type,
            _QUALITY[claim_type],
            supporting,
            contradicting,
            neutral,
            for_it,
            against_it,
            status,
            rule,
            len(silent),
        )

    def _is_doubtful(self, judged: JudgedPassage) -> bool:
        """Whether a passage holds text of which it is not known that readers of its page see it."""
        try:
            spans = self.index.doubtful(judged.passage.key)
        except QueryError:
            return False
        return any(start < judged.passage.end and judged.passage.start < stop for start, stop in spans)

    def _text(self, key: str) -> str:
        """A stored text; empty where another process deleted it since it was searched."""
        try:
            return self.index.text(key)
        except QueryError:
            return ""


def _stands(judged: JudgedPassage, text: str) -> bool:
    """Whether the passage and its quote stand in the stored text, character by character."""
    passage = judged.passage
    stored = text[passage.start : passage.end]
    return bool(stored) and stored == passage.content and judged.quote in stored


def _lacking(claim: str, judged: JudgedPassage, text: str) -> str:
    """The numbers and dates of a claim that neither a passage nor its source has, in words; empty where there are none."""
    if not any(missing_figures(claim, judged.passage.content)[:2]):
        return ""
    missing = missing_figures(claim, f"{judged.passage.title}\n\n{text}")
    return ", ".join(missing.dates + missing.numbers)


def _origins(index: EvidenceIndex, judged: Sequence[JudgedPassage], texts: Mapping[str, str]) -> list[Origin]:
    passages = [one.passage for one in judged]
    domains = [set(map(registrable_domain, [passage.url, *index.urls(passage.key)])) for passage in passages]
    return origins_of(domains, [texts[passage.key] for passage in passages], [passage.content for passage in passages])


def _plain(judged: JudgedPassage) -> dict[str, Any]:
    passage, judgement = judged.passage, judged.judgement
    return {
        "content": passage.content,
        "quote": judged.quote,
        "url": passage.url,
        "title": passage.title,
        "quality": passage.quality,
        "fetch_date": passage.fetch_date,
        "source": passage.key,
        "start": passage.start,
        "end": passage.end,
        "support": judgement.support,
        "contradict": judgement.contradict,
        "neutral": judgement.neutral,
    }
