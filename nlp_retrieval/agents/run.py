"""Recorded trajectories as an entrant of a benchmark."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nlp_retrieval.agents.files import read_trajectories
from nlp_retrieval.agents.searchers import Label
from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.rankings import Ranking


class TrajectoryRun(TrecRun):
    """The trajectories of an agent: for each question the union of what its searches found, in order of first appearance.

    The score of a hit is 1 / rank. A question without a trajectory found nothing; it scores 0 and counts.

    Args:
        path: a file or a folder, in any form that :func:`read_trajectories` reads; ``~`` is the home folder.
        agent: which agent's, where there are several.

    Examples:
        >>> write_trajectories("agents.jsonl", trajectories)
        >>> searchers = {"bm25": Searcher(["bm25"]), "agent": TrajectoryRun("agents.jsonl")}
        >>> corpus, asked, gold = JsonlLoader("animals.jsonl"), {"q1": "large whales"}, {"q1": ["whale"]}
        >>> run = Benchmarker(searchers, corpus, asked, gold, measures=["recall@5"]).run()
        >>> [result.measures["recall@5"] for result in run.report.configurations]
        [1.0, 1.0]
    """

    name = "trajectories"
    manifest_may_set = may_set("agent", path=READS_FILE)

    def __init__(self, path: Annotated[str, Field(min_length=1)], agent: Label | None = None) -> None:
        super().__init__(path)
        self.agent = agent

    def read(self) -> dict[str, Ranking]:
        """Return what the agent found, by question id.

        Raises:
            SourceError: the file cannot be read, or is in no known form.
            ConfigurationError: it is not clear which agent is meant.
        """
        trajectories = read_trajectories(expanded(self.path))
        agents = list(dict.fromkeys(trajectory.agent for trajectory in trajectories))
        if self.agent not in agents and (self.agent is not None or len(agents) > 1):
            raise ConfigurationError(
                f"{self.path} has the agents {', '.join(map(repr, agents[:5]))}; name one of them as agent"
            )
        return {
            trajectory.question_id: [(item_id, 1.0 / rank) for rank, item_id in enumerate(trajectory.seen(), start=1)]
            for trajectory in trajectories
            if self.agent in (None, trajectory.agent)
        }
