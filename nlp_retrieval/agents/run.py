"""Recorded trajectories as an entrant of a benchmark."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field

from nlp_retrieval.agents.files import read_trajectories
from nlp_retrieval.agents.searchers import Label
from nlp_retrieval.benchmarks.entrants import TrecRun
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.opening import expanded, sha256_of
from nlp_retrieval.errors import ConfigurationError, SourceError
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

    @property
    def fingerprint(self) -> str:
        """Checksum of the content of the file, or of the files of the folder.

        Raises:
            SourceError: it cannot be read.
        """
        place = self._place
        try:
            files = sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]
            content = [sha256_of(file) for file in files]
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.path!r} cannot be read ({getattr(error, 'strerror', None) or error})") from error
        described = {"name": self.name, "content": content, "agent": self.agent}
        return hashlib.sha256(canonical_json(described).encode()).hexdigest()

    def read(self) -> dict[str, Ranking]:
        """Return what the agent found, by question id.

        Raises:
            SourceError: the file cannot be read, or is in no known form.
            ConfigurationError: it is not clear which agent is meant.
        """
        trajectories = read_trajectories(self._place)
        agents = list(dict.fromkeys(trajectory.agent for trajectory in trajectories))
        if self.agent is None and len(agents) > 1:
            raise ConfigurationError(f"{self.path} has {len(agents)} agents; name one: agent={agents[0]!r}, or {agents[1]!r}")
        if self.agent is not None and self.agent not in agents:
            raise ConfigurationError(f"{self.path} has no agent {self.agent!r}; it has {', '.join(map(repr, agents[:5]))}")
        return {
            trajectory.question_id: [(item_id, 1.0 / rank) for rank, item_id in enumerate(trajectory.seen(), start=1)]
            for trajectory in trajectories
            if self.agent in (None, trajectory.agent)
        }

    @property
    def _place(self) -> Path:
        return expanded(self.path)
