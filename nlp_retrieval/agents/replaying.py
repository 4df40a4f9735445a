"""Replay: the searches of recorded trajectories asked of another searcher, filter or k.

A replay shows what the same queries would have found. An agent that had seen other results would have asked otherwise, so it
says less the more of them changed; how much changed is a part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import methodcaller
from typing import Any

from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.agents.transcripts import NO_IDS
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import QueryError
from nlp_retrieval.text.printing import counted

_USUAL_K = 10  # results of a search that does not say how many it asked for, and got none


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Trajectories with the results of another searcher, and how far they can be trusted.

    Args:
        trajectories: with the queries of the recorded ones; without answers, which the agent did not give to these results.
        searches: how many searches were asked.
        same: share of them that returned exactly the recorded results.
        undisturbed: share of them before the first of their trajectory that returned other results: what the agent would
            have done in any case.
        lost_reads: reads of items that did not come back, and are left out.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> replay(trajectories, searcher)
        <replay of one: 1 search replayed, 0% with the same results, 100% before the first change>
    """

    trajectories: list[Trajectory]
    searches: int
    same: float
    undisturbed: float
    lost_reads: int

    def __repr__(self) -> str:
        named = sorted({trajectory.agent for trajectory in self.trajectories})
        shares = f"{self.same:.0%} with the same results, {self.undisturbed:.0%} before the first change"
        return f"<{', '.join(named)}: {counted(self.searches, 'search', 'searches')} replayed, {shares}>"


def replay(trajectories: Sequence[Trajectory], searcher: Any, *, k: int | None = None, where: Where | None = None) -> Replay:
    """Ask the searches of trajectories of a searcher.

    Args:
        trajectories: as they were recorded.
        searcher: with an opened index.
        k: number of results; None for as many as each search asked for, or got if that is not known.
        where: a filter in place of the recorded ones; None for the recorded ones.

    Raises:
        QueryError: the trajectories have no searches.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> replayed = replay(trajectories, searcher, k=1)
        >>> replayed.trajectories[0].agent, replayed.trajectories[0].seen()
        ('replay of one', ['whale'])
    """
    if k is not None:
        check_k(k, "k")

    def asked(step: AgentStep) -> AgentStep:
        """A search as it is asked again."""
        wanted = k or step.k or len(step.results) or _USUAL_K
        return AgentStep(kind="search", query=step.query, k=wanted, where=step.where if where is None else None)

    answers = _search([asked(step) for each in trajectories for step in each.searches if _can_be_asked(step)], searcher, where)
    if not answers:
        raise QueryError("the trajectories have no searches with a query, so there is nothing to replay")
    replayed, searches, same, undisturbed, lost = [], 0, 0, 0, 0
    for trajectory in trajectories:
        steps: list[AgentStep] = []
        lacking, changed = set(trajectory.seen()), False
        for step in trajectory.steps:
            if _can_be_asked(step):
                again = asked(step)
                results = answers[again.model_dump_json()]
                searches, undisturbed, same = searches + 1, undisturbed + (not changed), same + (results == step.results)
                changed |= results != step.results
                lacking -= set(results)
                steps.append(step.model_copy(update={"results": results, "k": again.k, "error": "", "seconds": None}))
            elif step.kind == "open" and step.item_id in lacking:
                lost += 1
            else:
                steps.append(step)
        changes: dict[str, object] = {
            "agent": f"replay of {trajectory.agent}",
            "steps": tuple(steps),
            "answer": "",
            "citations": None,
            "metadata": trajectory.metadata | {"replay_of": trajectory.agent},
        }
        replayed.append(trajectory.model_copy(update=changes))
    return Replay(replayed, searches, same / searches, undisturbed / searches, lost)


def _can_be_asked(step: AgentStep) -> bool:
    """Whether a step is a search that can be asked again: one that failed is kept as it was."""
    return step.kind == "search" and bool(step.query) and step.error in ("", NO_IDS)


def _search(asked: Sequence[AgentStep], searcher: Any, where: Where | None) -> dict[str, tuple[str, ...]]:
    """Return the results of every different search; those of one k and filter are asked together."""
    together = methodcaller("model_dump_json", include={"k", "where"})
    answers: dict[str, tuple[str, ...]] = {}
    different = {step.model_dump_json(): step for step in asked}.values()
    for _, group in groupby(sorted(different, key=together), key=together):
        steps = list(group)
        lists = searcher.search([step.query for step in steps], steps[0].k, where=where or steps[0].where)
        for step, results in zip(steps, lists, strict=True):
            answers[step.model_dump_json()] = tuple(result.item.item_id for result in results)
    return answers
