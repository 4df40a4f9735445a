"""Claims: evidence for and against them, the number of its independent origins, and the status that follows."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from nlp_retrieval.core import ByKey
from nlp_retrieval.documents import clean_text
from nlp_retrieval.errors import ConfigurationError, QueryError, nearest
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.urls import registrable_domain
from nlp_retrieval.systems.evidence.verdict.deciding import Decider, Decision, Question
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier, Judgement
from nlp_retrieval.text import as_latin, counted, words_of

# Independent origins of sources, however many URLs they have.
#
# Sources have one origin if they share a registrable domain, if their texts are near duplicates, or if their relevant passages
# share two dozen words in a row. This is transitive, with one exception: a text at several domains has one origin with
# anything that one of them published, but does not merge these publishers. Invisible characters, and Cyrillic or Greek
# letters that look like Latin ones, do not make a text different.

_SHINGLE = 5
_NEAR = 0.5
"""Share of the runs of words of the shorter of two texts from which they are nearly the same."""
_MOST_WORDS = 20_000
_COPIED = 20
"""Runs of five words that two passages must share to count as copied: a sentence or two may be in many texts."""


@dataclass(frozen=True)
class Origin:
    """Numbers of sources that count as one, and why, for people."""

    members: tuple[int, ...]
    reasons: tuple[str, ...]


def origins_of(domains: Sequence[Set[str]], texts: Sequence[str], passages: Sequence[str] = ()) -> list[Origin]:
    """Return the independent origins of sources, by their domains (none for a file), their texts and passages that count."""
    published = [frozenset(filter(None, names)) for names in domains]
    group = list(range(len(published)))
    reasons: dict[int, list[str]] = {}

    def join(member: int, joining: int, reason: str) -> None:
        first, second = sorted((group[member], group[joining]))
        if first != second:
            group[:] = [first if other == second else other for other in group]
            reasons[first] = [*reasons.get(first, []), *reasons.pop(second, []), reason]

    shingles = [_shingles(text) for text in texts]
    counting = [_shingles(passage) for passage in passages] or [frozenset[int]()] * len(texts)
    for later in range(len(published)):
        for earlier in range(later):
            if len(published[later]) == 1 and published[later] == published[earlier]:
                join(earlier, later, _one_domain(published[later]))
            elif len(shingles[earlier] & shingles[later]) >= _NEAR * max(1, min(len(shingles[earlier]), len(shingles[later]))):
                join(earlier, later, "nearly the same text")
            elif len(counting[earlier] & counting[later]) >= _COPIED:
                join(earlier, later, "one passage copied")
    fewest_first = sorted(range(len(published)), key=lambda number: len(published[number]))
    for several in (number for number in range(len(published)) if len(published[number]) > 1):
        sharing = [other for other in fewest_first if other != several and published[other] & published[several]]
        publishers = [other for other in sharing if len(published[other]) == 1]
        if sharing and group[several] not in [group[other] for other in publishers]:
            join(sharing[0], several, _one_domain(published[sharing[0]] & published[several]))
    return [
        Origin(tuple(number for number, own in enumerate(group) if own == first), tuple(dict.fromkeys(reasons.get(first, []))))
        for first in sorted(set(group))
    ]


def _one_domain(shared: Set[str]) -> str:
    return f"one domain: {min(shared)}"


def _shingles(text: str) -> frozenset[int]:
    visible_text = as_latin(clean_text(text[: _MOST_WORDS * 10])[0]).casefold()
    words = words_of(visible_text)[:_MOST_WORDS]
    runs = (" ".join(words[first : first + _SHINGLE]) for first in range(max(1, len(words) - _SHINGLE + 1)))
    return frozenset(zlib.crc32(run.encode()) for run in runs if run)


# Passages judged for a claim, each with a quote from the stored text.


@dataclass(frozen=True)
class JudgedPassage(ByKey):
    """A passage and what it does to a claim; it is read by key, too, as its passage is: ``judged["content"]``."""

    passage: EvidencePassage
    decision: Decision
    quote: str

    @property
    def page(self) -> str:
        """Return the pages of the quote: ``"p. 12"``; empty if the source has no pages."""
        return self.passage.page_of(*self.judgement.sentence)

    @property
    def judgement(self) -> Judgement:
        """Return the verifier's probabilities and signals; ``sentence`` is a span of ``passage.content``."""
        return self.decision.judgement

    def as_dict(self) -> dict[str, Any]:
        """Return the passage, and what it does to the claim, as plain values for JSON."""
        passage, judgement, decision = self.passage, self.judgement, self.decision
        said = {"quote": self.quote, "page": self.page, "source": passage.key}
        said |= {name: passage[name] for name in ("content", "url", "title", "quality", "fetch_date", "start", "end")}
        said |= {name: getattr(judgement, name) for name in ("support", "contradict", "neutral")}
        return said | {name: getattr(decision, name) for name in ("verdict", "reason", "detail")}

    def __getitem__(self, key: str) -> Any:
        return self.passage[key] if key in self.passage else super().__getitem__(key)

    def _names(self) -> list[str]:
        return [*super()._names(), *self.passage]


def judge_passages(
    decider: Decider, texts: Mapping[str, str], claim: str, passages: Sequence[EvidencePassage]
) -> list[JudgedPassage]:
    """Decide what each passage does to a claim, without the title: a headline may say what its page does not."""
    there = [passage for passage in passages if passage.key in texts]
    questions = [Question(claim, one.content, f"{one.title}\n\n{texts[one.key]}") for one in there]
    return [
        JudgedPassage(passage, decision, passage.content[slice(*decision.judgement.sentence)])
        for passage, decision in zip(there, decider.decide(questions), strict=True)
    ]


def stored_texts(index: EvidenceIndex, passages: Sequence[EvidencePassage]) -> dict[str, str]:
    """Return the texts of passages, by their keys, without one that another process deleted after the search."""
    texts = {}
    for key in dict.fromkeys(passage.key for passage in passages):
        with suppress(QueryError):
            texts[key] = index.text(key)
    return texts


# The status of a claim, by rules that are returned with it.

ClaimStatus = Literal["VERIFIED", "SUPPORTED", "WEAK", "DISPUTED", "REFUTED", "UNVERIFIED"]


def status_of(supporting: int, contradicting: int, weak: int = 0) -> tuple[ClaimStatus, str]:
    """Return the status of a claim, by the numbers of independent origins of each kind, and the rule that gave it."""
    for_it, against_it, weakly = (counted(number, "independent origin") for number in (supporting, contradicting, weak))
    if supporting and contradicting:
        return "DISPUTED", f"supported by {for_it}, contradicted by {against_it}"
    if contradicting:
        return "REFUTED", f"contradicted by {against_it}, supported by none"
    if supporting > 1:
        return "VERIFIED", f"supported by {for_it}, contradicted by none"
    if supporting:
        also = f", weakly by {weakly}" if weak else ""
        return "SUPPORTED", f"supported by one independent origin{also}, contradicted by none; VERIFIED needs two"
    if weak:
        return "WEAK", f"weakly supported by {weakly}, contradicted by none; another verifier may be surer"
    return "UNVERIFIED", "neither supported nor contradicted by what is indexed"


# Verifying a claim against the index: the evidence for and against it, and the independent origins of each.

_QUALITY = {"C1": "B", "C2": "C", "C3": "C"}
_SIDES = ("supporting_evidence", "weak_evidence", "contradicting_evidence", "neutral_evidence")


@dataclass(frozen=True)
class ClaimVerdict(ByKey):
    """Verdict of an index on a claim, its evidence by kind, the likeliest first; read by key, too: ``verdict["rule"]``."""

    claim: str
    claim_type: str
    min_quality: str
    supporting_evidence: list[JudgedPassage]
    weak_evidence: list[JudgedPassage]
    contradicting_evidence: list[JudgedPassage]
    neutral_evidence: list[JudgedPassage]
    supporting_origins: list[Origin]
    contradicting_origins: list[Origin]
    verification_status: ClaimStatus
    rule: str
    not_judged: int = 0

    also: ClassVar = ("independence_count",)

    @property
    def independence_count(self) -> int:
        """Return the number of independent origins that support the claim."""
        return len(self.supporting_origins)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for JSON."""
        said = dict(self) | {side: [item.as_dict() for item in self[side]] for side in _SIDES}
        said |= {name: [asdict(origin) for origin in self[name]] for name in ("supporting_origins", "contradicting_origins")}
        return said | {"contradicting_independence_count": len(self.contradicting_origins)}


class ClaimVerifier:
    """Searches an index of sources for a claim, and judges the passages found.

    Args:
        index: of sources.
        verifier: judges passages.
        k: number of passages that are judged for a claim.
        threshold: the least probability of support of a weak verdict; by default that of the verifier. What can be looked up
            overrules the verifier.

    Raises:
        ConfigurationError: ``k`` is less than 1, or the threshold is not between 0 and 1.

    Examples:
        >>> verdict = ClaimVerifier(index, LexicalVerifier()).verify("The blue whale eats krill.")
        >>> verdict.verification_status
        'SUPPORTED'
        >>> [evidence.passage.url for evidence in verdict.supporting_evidence]
        ['https://example.org/whale']
    """

    def __init__(self, index: EvidenceIndex, verifier: BaseVerifier, k: int = 20, threshold: float | None = None) -> None:
        if k < 1:
            raise ConfigurationError(f"k={k}; read at least one passage")
        self.index, self.verifier, self.k = index, verifier, k
        self._decider = Decider(verifier, threshold)

    def verify(self, claim: str, claim_type: Literal["C1", "C2", "C3"] = "C2") -> ClaimVerdict:
        """Verify a claim.

        Args:
            claim: one statement.
            claim_type: "C1" for a claim that needs sources of grade B or better; "C2" or "C3" for one that needs C or better.

        Raises:
            ConfigurationError: the type is unknown.
            QueryError: the claim is not a string.
        """
        if claim_type not in _QUALITY:
            raise ConfigurationError(f"claim_type={claim_type!r}; {nearest(str(claim_type), _QUALITY)}")
        passages = self.index.search(claim, self.k, min_quality=_QUALITY[claim_type])
        texts = stored_texts(self.index, passages)
        judged = judge_passages(self._decider, texts, claim, passages)
        judged.sort(key=lambda item: -item.judgement.support)
        supporting, weak = ([item for item in judged if item.decision.verdict == word] for word in ("supported", "weak"))
        agreeing = {item.passage.key for item in supporting}
        against = (item for item in judged if item.decision.verdict == "contradicted" and item.passage.key not in agreeing)
        contradicting = sorted(against, key=lambda item: -item.judgement.contradict)
        left = (item for item in judged if not item.decision.holds and item not in contradicting)
        neutral = sorted(left, key=lambda item: item.judgement.neutral)
        for_it, against_it, weakly = (_passage_origins(self.index, items, texts) for items in (supporting, contradicting, weak))
        status, rule = status_of(len(for_it), len(against_it), len(weakly))
        if silent := sum(not item.judgement.was_judged for item in judged):
            why = "the claim is too long, or there was no usable answer"
            rule += f"; {silent} of {len(judged)} passages were not judged by {self.verifier.name}: {why}"
        sides = (supporting, weak, contradicting, neutral)
        return ClaimVerdict(claim, claim_type, _QUALITY[claim_type], *sides, for_it, against_it, status, rule, silent)


def _passage_origins(index: EvidenceIndex, judged: Sequence[JudgedPassage], texts: Mapping[str, str]) -> list[Origin]:
    passages = [item.passage for item in judged]
    domains = [set(map(registrable_domain, [passage.url, *index.urls(passage.key)])) for passage in passages]
    return origins_of(domains, [texts[passage.key] for passage in passages], [passage.content for passage in passages])
