"""Replay: the searches of recorded trajectories asked of another searcher, filter or k.

A replay shows what the same queries would have found. An agent that had seen other results would have asked otherwise, so it
says less the more of them changed; how much changed is a part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.agents.transcripts import NO_IDS
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import ConfigurationError, QueryError

USUAL_K = 10
"""Number of results of a search that does not say how many it asked for, and got none."""


class Answers(Protocol):
    """A searcher with an opened index."""

    def search(self, queries: Sequence[str], k: int, where: Where | None = None) -> Sequence[Sequence[RetrievalResult]]: ...


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Trajectories with the results of another searcher, and how far they can be trusted.

    Args:
        trajectories: with the queries of the recorded ones; without answers, which the agent did not give to these results.
        searches: how many searches were asked.
        same: share of them that returned exactly the recorded results.
        undisturbed: share of them before the first of their trajectory that returned other results: what the agent would
            have done in any case.
        kept: share of the recorded results that came back.
        lost_reads: reads of items that did not come back, and are left out.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> replay(trajectories, searcher, agent="bm25")
        <bm25: 1 search replayed, 0% with the same results, 100% before the first change>
    """

    trajectories: list[Trajectory]
    searches: int
    same: float
    undisturbed: float
    kept: float
    lost_reads: int

    def __repr__(self) -> str:
        named = sorted({trajectory.agent for trajectory in self.trajectories})
        many = f"{self.searches:,} {'search' if self.searches == 1 else 'searches'}"
        shares = f"{self.same:.0%} with the same results, {self.undisturbed:.0%} before the first change"
        return f"<{', '.join(named)}: {many} replayed, {shares}>"


def replay(
    trajectories: Sequence[Trajectory],
    searcher: Answers,
    *,
    agent: str = "",
    k: int | None = None,
    where: Where | None = None,
) -> Replay:
    """Ask the searches of trajectories of a searcher.

    Args:
        trajectories: as they were recorded.
        searcher: with an opened index.
        agent: name of the replayed agent; default: ``"replay of ..."``, or with several agents the same for each.
        k: number of results; None for as many as each search asked for, or got if that is not known.
        where: a filter in place of the recorded ones; None for the recorded ones.

    Raises:
        QueryError: the trajectories have no searches.
        ConfigurationError: one name is given for several agents.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> replayed = replay(trajectories, searcher, k=1)
        >>> replayed.trajectories[0].agent, replayed.trajectories[0].seen()
        ('replay of one', ['whale'])
    """
    agents = dict.fromkeys(trajectory.agent for trajectory in trajectories)
    if agent and len(agents) > 1:
        raise ConfigurationError(f"one name, {agent!r}, for {len(agents)} agents ({', '.join(agents)}); leave it out")
    asked = [step for trajectory in trajectories for step in trajectory.searches if _is_asked(step)]
    if not asked:
        raise QueryError("the trajectories have no searches with a query, so there is nothing to replay")
    if k is not None:
        check_k(k, "k")
    found = _search(asked, searcher, k, where)
    replayed, same, before, kept, lost = [], 0, 0, [0, 0], 0
    for trajectory in trajectories:
        steps: list[AgentStep] = []
        came_back = set(trajectory.seen())
        seen: set[str] = set()
        changed = False
        for step in trajectory.steps:
            if step.kind == "open" and step.item_id not in seen and step.item_id in came_back:
                lost += 1
                continue
            if _is_asked(step):
                results = found[_key(step, k, where)]
                before += not changed
                changed |= results != step.results
                same += results == step.results
                kept[0] += len(set(results) & set(step.results))
                kept[1] += len(set(step.results))
                seen.update(results)
                step = step.model_copy(  # noqa: PLW2901 -- the same step with other results
                    update={"results": results, "k": _key(step, k, where)[1], "error": "", "seconds": None}
                )
            steps.append(step)
        replayed.append(
            trajectory.model_copy(
                update={
                    "agent": agent or f"replay of {trajectory.agent}",
                    "steps": tuple(steps),
                    "answer": "",
                    "citations": None,
                    "metadata": trajectory.metadata | {"replay_of": trajectory.agent},
                }
            )
        )
    searches = len(asked)
    return Replay(replayed, searches, same / searches, before / searches, kept[0] / kept[1] if kept[1] else 1.0, lost)


def _is_asked(step: AgentStep) -> bool:
    """Whether a step is a search that can be asked again: one that failed is kept as it was."""
    return step.kind == "search" and bool(step.query) and step.error in ("", NO_IDS)


_Key = tuple[str, int, str]


def _key(step: AgentStep, k: int | None, where: Where | None) -> _Key:
    wanted = k or step.k or len(step.results) or USUAL_K
    return step.query, wanted, repr(step.where if where is None else where)


def _search(asked: Sequence[AgentStep], searcher: Answers, k: int | None, where: Where | None) -> dict[_Key, tuple[str, ...]]:
    """Ask every different search once, those of one k and filter together."""
    together: dict[tuple[int, str], dict[str, Where | None]] = {}
    for step in asked:
        query, wanted, written = _key(step, k, where)
        together.setdefault((wanted, written), {})[query] = step.where if where is None else where
    found: dict[_Key, tuple[str, ...]] = {}
    for (wanted, written), queries in together.items():
        lists = searcher.search([*queries], wanted, where=next(iter(queries.values())))
        for query, results in zip(queries, lists, strict=True):
            found[query, wanted, written] = tuple(result.item.item_id for result in results)
    return found
