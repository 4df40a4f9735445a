"""Recorded trajectories stand in a benchmark as the agent itself did."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval import Benchmarker, Searcher
from nlp_retrieval.agents import AgentSearcher, AgentTools, TrajectoryRun, read_trajectories, write_trajectories
from nlp_retrieval.core import build
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.reports.trackers import runs_of

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
    assert measured(tmp_path, {"recorded": TrajectoryRun(str(tmp_path), agent="words")}) == live


def test_of_several_agents_one_is_named(tmp_path: Path) -> None:
    searcher = AgentSearcher(words, Searcher(["bm25"]))
    searcher.index(ITEMS, tmp_path / "index")
    searcher.search("fox")
    (one,) = searcher.trajectories()
    path = str(tmp_path / "two.jsonl")
    write_trajectories(path, [one, one.model_copy(update={"agent": "other", "steps": ()})])
    with pytest.raises(ConfigurationError, match="has 2 agents; name one: agent='words', or 'other'"):
        TrajectoryRun(path).read()
    with pytest.raises(ConfigurationError, match="has no agent 'third'; it has 'words', 'other'"):
        TrajectoryRun(path, "third").read()
    assert TrajectoryRun(path, "other").read() == {"fox": []}
    assert TrajectoryRun(path, "words").read() == {"fox": [("a", 1.0)]}
    assert len({TrajectoryRun(path, agent).fingerprint for agent in (None, "words", "other")}) == 3


def test_a_tracker_gets_the_trajectories_beside_the_figures(tmp_path: Path) -> None:
    path, agent = tmp_path / "read.jsonl", AgentSearcher(words, Searcher(["bm25"]))
    measured(tmp_path, {"live": agent})
    write_trajectories(path, agent.trajectories())
    entrants = {"recorded": TrajectoryRun(str(path)), "bm25": Searcher(["bm25"])}
    run = Benchmarker(entrants, ITEMS, QUERIES, GOLD, index_path=tmp_path / "index", k_values=(2,), resamples=20).run()
    files = {logged.name: logged.files for logged in runs_of(run.report)}
    assert [files[name] for name in entrants] == [[path], []]
