"""Auditing what an agent's notes and answer cite: did it retrieve the source, did it read it, and does the source say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nlp_retrieval.agents import Trajectory, TrajectoryCitation, trajectory_citations
from nlp_retrieval.systems.evidence.verdict.deciding import Decider, Question
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

TrajectoryStatus = Literal["supported", "weak", "contradicted", "not found", "no text"]

_MOST_CALLS = (2, 5, 10, 20, 50, 100)
"""Largest numbers of calls of the rows of :func:`accuracy_by_calls`; the last row is for more."""


@dataclass(frozen=True)
class JudgedCitation:
    """A citation of an agent, and what its source says.

    Args:
        citation: the sentence, and when its source came back and was opened.
        status: what the source does to the sentence; "no text" if the corpus does not have it.
        support: the probability that it supports it; 0 without a text.
        detail: why it does not support it.

    Examples:
        >>> read = Trajectory(question_id="q", steps=(AgentStep(kind="open", item_id="b1"),), answer="It has six arches [b1].")
        >>> (row,) = audit_trajectories([read], {"b1": "The bridge has six arches."}, LexicalVerifier())
        >>> row.passes, row.citation.opened
        (True, 1)
    """

    citation: TrajectoryCitation
    status: TrajectoryStatus
    support: float
    detail: str

    @property
    def passes(self) -> bool:
        """Return whether the agent had retrieved the source, and it supports the sentence."""
        return self.citation.came is not None and self.status == "supported"


@dataclass(frozen=True)
class CallsRow:
    """Citations after ``least`` to ``most`` calls, and the shares whose source came, was opened, supports, and both."""

    least: int
    most: int | None
    citations: int
    came: float
    opened: float
    supported: float
    passed: float
    interval: tuple[float, float] | None


def audit_trajectories(
    trajectories: Iterable[Trajectory], texts: Mapping[str, str], verifier: BaseVerifier, threshold: float | None = None
) -> list[JudgedCitation]:
    """Judge every citation of agents' notes and answers by the text of its source.

    Args:
        trajectories: of one or several agents.
        texts: of items, by id.
        verifier: judges what cannot be looked up.
        threshold: the least probability of support of a weak verdict; by default that of the verifier.

    Raises:
        ConfigurationError: the threshold is not between 0 and 1.

    Examples:
        >>> step = AgentStep(kind="search", query="bridge", results=("b1",))
        >>> found = Trajectory(question_id="q", steps=(step,), answer="The Long Bridge was opened in 1935 [b1].")
        >>> (row,) = audit_trajectories([found], {"b1": "The Long Bridge was opened in 1932."}, LexicalVerifier())
        >>> row.status, row.detail, row.citation.came
        ('contradicted', 'the source does not have 1935', 1)
    """
    cited = [citation for trajectory in trajectories for citation in trajectory_citations(trajectory)]
    known = [citation for citation in cited if citation.item_id in texts]
    decider = Decider(verifier, threshold)
    asked = dict.fromkeys((citation.claim, citation.item_id) for citation in known)
    decisions = decider.decide([Question(claim, texts[item_id], texts[item_id]) for claim, item_id in asked])
    by_question = dict(zip(asked, decisions, strict=True))
    rows = []
    for citation in cited:
        decision = by_question.get((citation.claim, citation.item_id))
        if decision is None:
            rows.append(JudgedCitation(citation, "no text", 0.0, "the corpus has no such item"))
            continue
        support = 0.0 if decision.reason else decision.judgement.support
        rows.append(JudgedCitation(citation, decision.verdict, support, decision.detail))
    return rows


def accuracy_by_calls(rows: Sequence[JudgedCitation]) -> list[CallsRow]:
    """Return how good citations are by the number of calls before them (0 to 2, 3 to 5, ... above 100), without empty rows.

    Args:
        rows: of :func:`audit_trajectories`.

    Examples:
        >>> read = Trajectory(question_id="q", steps=(AgentStep(kind="open", item_id="b1"),), answer="It has six arches [b1].")
        >>> rows = audit_trajectories([read], {"b1": "The bridge has six arches."}, LexicalVerifier())
        >>> [(row.least, row.most, row.citations, row.passed) for row in accuracy_by_calls(rows)]
        [(0, 2, 1, 1.0)]
    """
    table = []
    for least, end in zip((0, *(number + 1 for number in _MOST_CALLS)), (*_MOST_CALLS, None), strict=True):
        own = [row for row in rows if least <= row.citation.calls and (end is None or row.citation.calls <= end)]
        if own:
            table.append(
                CallsRow(
                    least,
                    end,
                    len(own),
                    came=float(np.mean([row.citation.came is not None for row in own])),
                    opened=float(np.mean([row.citation.opened is not None for row in own])),
                    supported=float(np.mean([row.status == "supported" for row in own])),
                    passed=float(np.mean([row.passes for row in own])),
                    interval=_interval(own),
                )
            )
    return table


def _interval(rows: Sequence[JudgedCitation]) -> tuple[float, float] | None:
    """Interval of the share of citations that pass, by resampling whole questions."""
    questions: dict[str, list[bool]] = {}
    for row in rows:
        questions.setdefault(row.citation.question_id, []).append(row.passes)
    if len(questions) < 2:
        return None
    passed = np.array([sum(of_question) for of_question in questions.values()], np.float64)
    sizes = np.array([len(of_question) for of_question in questions.values()], np.float64)
    weights = np.random.default_rng(0).standard_exponential((10_000, len(sizes)))
    low, high = np.quantile((weights @ passed) / (weights @ sizes), [0.025, 0.975]).tolist()
    return low, high
