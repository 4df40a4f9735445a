"""Replaying recorded searches, on a real index."""

from pathlib import Path

import pytest

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.agents import AgentStep, Trajectory, replay
from nlp_retrieval.errors import RetrievalWarning

TEXTS = {
    "whale": "the blue whale eats krill",
    "krill": "krill lives in the southern ocean",
    "fox": "the arctic fox eats lemmings",
    "lemming": "a lemming is a small animal of the north",
}


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    searcher = Searcher(["bm25"])
    searcher.index(
        [SearchableItem(item_id=name, content=text, metadata={"n": len(name)}) for name, text in TEXTS.items()], tmp_path
    )
    return searcher


def recorded(searcher: Searcher, *queries: str, question: str = "q", k: int = 2) -> Trajectory:
    """What an agent records that asks these queries of the searcher, and reads the best result of each."""
    steps = []
    for query in queries:
        (results,) = searcher.search([query], k)
        ids = tuple(result.item.item_id for result in results)
        steps += [AgentStep(kind="search", query=query, k=k, results=ids), AgentStep(kind="open", item_id=ids[0])]
    return Trajectory(question_id=question, agent="mine", steps=tuple(steps), answer=f"It is so [{ids[0]}].")


def test_the_same_searcher_returns_the_same(searcher: Searcher) -> None:
    trajectory = recorded(searcher, "krill", "lemmings", "krill")
    replayed = replay([trajectory], searcher)
    assert (replayed.searches, replayed.same, replayed.undisturbed, replayed.lost_reads) == (3, 1, 1, 0)
    (again,) = replayed.trajectories
    assert [(step.kind, step.results, step.item_id) for step in again.steps] == [
        (step.kind, step.results, step.item_id) for step in trajectory.steps
    ]
    assert (again.agent, again.answer, again.metadata) == ("replay of mine", "", {"replay_of": "mine"})


def test_another_filter_or_k_changes_results_and_says_how_many(searcher: Searcher) -> None:
    trajectories = [recorded(searcher, "krill", "lemmings"), recorded(searcher, "north", question="r")]
    wider = replay(trajectories, searcher, k=4)
    assert {trajectory.agent for trajectory in wider.trajectories} == {"replay of mine"}
    assert all(step.k == 4 for trajectory in wider.trajectories for step in trajectory.searches)
    with pytest.warns(RetrievalWarning, match="found nothing for 2 of 3 queries"):
        filtered = replay(trajectories, searcher, where={"n": 3})  # the fox alone
    assert [trajectory.seen() for trajectory in filtered.trajectories] == [["fox"], []]
    assert (filtered.same, filtered.lost_reads) == (0, 2)  # what did not come back is not read
    assert filtered.undisturbed == pytest.approx(2 / 3)  # the first search of each was asked in any case


def test_a_recorded_search_that_failed_is_kept_and_the_others_are_asked(searcher: Searcher) -> None:
    failed = AgentStep(kind="search", query="krill", where={"n": {"near": 1}}, error="there is no operator 'near'")
    trajectory = recorded(searcher, "krill")
    trajectory = trajectory.model_copy(update={"steps": (failed, *trajectory.steps)})
    replayed = replay([trajectory], searcher)
    assert (replayed.searches, replayed.same) == (1, 1)
    assert replayed.trajectories[0].steps[0] == failed
