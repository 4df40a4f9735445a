"""Recorded trajectories stand in a benchmark as the agent itself did."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from nlp_retrieval import Benchmarker, Searcher
from nlp_retrieval.agents import AgentSearcher, AgentTools, TrajectoryRun, read_trajectories, write_trajectories
from nlp_retrieval.core import build
from nlp_retrieval.errors import ConfigurationError

ITEMS = {"a": "the fox and the whale", "b": "the whale eats krill", "c": "krill and snow", "d": "snow in the north"}
QUERIES = {"q1": "fox snow", "q2": "krill north"}
GOLD = {"q1": {"a": 1, "d": 1}, "q2": {"b": 1, "d": 1}}


def words(question: str, tools: AgentTools) -> None:
    """Searches for each word."""
    for word in question.split():
        tools.search(word)


def measured(folder: Path, entrants: dict[str, object]) -> list[dict[str, float]]:
    run = Benchmarker(entrants, ITEMS, QUERIES, GOLD, index_path=folder / "index", k_values=(2, 10), resamples=20).run()  # type: ignore[arg-type]
    return [result.measures for result in run.report.configurations]


def test_a_recorded_agent_scores_as_it_did_and_its_questions_have_their_ids(tmp_path: Path) -> None:
    path, agent = tmp_path / "words.jsonl", AgentSearcher(words, Searcher(["bm25"]))
    live = measured(tmp_path, {"agent": agent})
    write_trajectories(path, agent.trajectories())
    assert {trajectory.question_id: trajectory.question for trajectory in read_trajectories(path)} == QUERIES
    recorded = build("searchers", {"name": "trajectories", "path": str(path)})
    assert measured(tmp_path, {"bm25": Searcher(["bm25"]), "recorded": recorded})[1] == live[0]
    assert measured(tmp_path, {"recorded": TrajectoryRun(str(path), agent="words")}) == live
    (tmp_path / "folder").mkdir()
    path.rename(tmp_path / "folder/words.jsonl")
    assert measured(tmp_path, {"recorded": TrajectoryRun(str(tmp_path / "folder"))}) == live


def test_an_agent_is_pickled_with_its_index_and_is_in_no_file_of_settings(tmp_path: Path) -> None:
    agent = AgentSearcher(words, Searcher(["bm25"]))
    agent.index(ITEMS, tmp_path / "index")
    assert pickle.loads(pickle.dumps(agent)).search("fox snow") == agent.search("fox snow") != [[]]
    with pytest.raises(ConfigurationError, match="is an object of this program, and no configuration can hold it"):
        agent.to_config()
