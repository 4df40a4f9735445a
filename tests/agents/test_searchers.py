"""An agent is a searcher: what it does is counted, limited and kept, and what it found is measured as any ranking is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pyarrow.parquet as pq
import pytest
from chat_server import ChatServer, MakeModel, asked, fields
from demo_index import DEMO
from demo_index import index as index  # noqa: PLC0414 -- a fixture

from nlp_retrieval import BeirLoader, Benchmarker, Searcher, write_run_files
from nlp_retrieval.agents import AgentAnswer, AgentSearcher, AgentTools, Trajectory, running_tools
from nlp_retrieval.benchmarks.cost import price_per_1000_queries
from nlp_retrieval.errors import ConfigurationError, EngineError, ItemError, QueryError
from nlp_retrieval.loaders.datasets import HoverLoader

CLAIMS = HoverLoader(DEMO / "claims.json").queries()[:8]
TEXTS = [claim.text for claim in CLAIMS]
GOLD = HoverLoader(DEMO / "claims.json").gold()[:8]


def halves(question: str, tools: AgentTools) -> AgentAnswer:
    """Searches for both halves of a question, and reads and cites the best of the second."""
    words = question.split()
    middle = len(words) // 2
    tools.search(" ".join(words[:middle]), k=3)
    second = tools.search(" ".join(words[middle:]), k=3)
    best = tools.open(second[0].item.item_id)
    return AgentAnswer(best.title, [best.item_id])


def opened(index: Path, agent: Callable[..., Any] = halves, **settings: Any) -> AgentSearcher:
    searcher: AgentSearcher = AgentSearcher(agent, Searcher(["bm25"]), **settings).open(index)
    return searcher


def test_it_finds_the_union_of_its_searches_in_order_of_first_appearance(index: Path) -> None:
    searcher, plain = opened(index), Searcher(["bm25"]).open(index)
    for text, hits, trajectory in zip(TEXTS, searcher.search(TEXTS), searcher.trajectories(), strict=True):
        words = text.split()
        halves = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
        first, second = [[hit.item.item_id for hit in found] for found in plain.search(halves, k=3)]
        assert [hit.item.item_id for hit in hits] == list(dict.fromkeys([*first, *second])) == trajectory.seen()
        assert [hit.score for hit in hits] == [1 / rank for rank in range(1, len(hits) + 1)]
        for hit in hits:
            item_id = hit.item.item_id
            wanted = {"agent.step": 1.0 if item_id in first else 2.0}
            assert hit.signals == wanted | ({"agent.opened": 3.0, "agent.cited": 1.0} if item_id == second[0] else {})
        assert (trajectory.question_id, trajectory.question, trajectory.agent) == (text, text, "halves")
        assert [step.kind for step in trajectory.steps] == ["search", "search", "open"]
        assert [step.query for step in trajectory.searches] == halves
        assert (trajectory.complete, trajectory.cited(), trajectory.tokens) == (True, [second[0]], None)
    assert [len(hits) for hits in searcher.search(TEXTS, k=2)] == [2] * len(TEXTS)


def endless(question: str, tools: AgentTools) -> None:
    """Never stops, and takes every error for a passing one."""
    while True:
        with suppress(Exception):
            tools.search(question, k=1)


def wrapping(question: str, tools: AgentTools) -> None:
    """Makes an error of its own of a spent budget."""
    try:
        endless(question, tools)
    except BaseException as error:
        raise RuntimeError("stopped") from error


@pytest.mark.parametrize("agent", [endless, wrapping])
def test_a_budget_of_steps_ends_an_agent_that_would_not(index: Path, agent: Callable[..., Any]) -> None:
    searcher = opened(index, agent, steps=3)
    assert [len(hits) for hits in searcher.search(TEXTS)] == [1] * len(TEXTS)
    for trajectory in searcher.trajectories():
        assert (len(trajectory.steps), trajectory.complete) == (3, False)
        assert trajectory.metadata == {"error": "its budget is spent"}


def test_a_call_that_fails_is_a_step_with_an_error(index: Path) -> None:
    def clumsy(question: str, tools: AgentTools) -> str:
        for call in (
            lambda: tools.open("never found"),
            lambda: tools.search(question, k=0),
            lambda: tools.search(None),  # type: ignore[arg-type]
            lambda: tools.search(question, where={"year": {"beyond": 1}}),
            lambda: tools.search("half \ud800"),
        ):
            with pytest.raises((ItemError, QueryError)):
                call()
        return "half \ud800"

    searcher = opened(index, clumsy)
    assert searcher.search(TEXTS[0]) == [[]]
    (trajectory,) = searcher.trajectories()
    assert [step.error.partition(";")[0][:30] for step in trajectory.steps][:1] == ["'never found' is the id of not"]
    assert all(step.error for step in trajectory.steps)
    assert Trajectory.model_validate_json(trajectory.model_dump_json(exclude_defaults=True)) == trajectory


def test_an_agent_that_breaks_leaves_what_it_did_and_stops_no_other(index: Path) -> None:
    def breaking(question: str, tools: AgentTools) -> str:
        tools.search(question)
        if question == TEXTS[1]:
            raise KeyError("gone")
        return "fine"

    searcher = opened(index, breaking)
    with pytest.warns(UserWarning, match=r"'breaking' failed for 1 of 8 questions .*KeyError: 'gone'"):
        results = searcher.search(TEXTS)
    assert all(results)
    assert [trajectory.complete for trajectory in searcher.trajectories()] == [text != TEXTS[1] for text in TEXTS]


def test_an_answer_of_none_is_an_empty_answer(index: Path) -> None:
    searcher = opened(index, lambda question, tools: SimpleNamespace(answer=None))
    searcher.search(TEXTS[:1])
    assert [(trajectory.answer, trajectory.metadata) for trajectory in searcher.trajectories()] == [("", {})]


def test_an_agent_that_always_breaks_is_an_error(index: Path) -> None:
    with pytest.raises(EngineError, match="failed for 8 of 8 questions"):
        opened(index, lambda question, tools: 1 // 0).search(TEXTS)
    with pytest.raises(ConfigurationError, match="no agent runs"):
        running_tools()


def find(query: str) -> list[str]:
    """Search, for a DSPy program."""
    return [f"{hit.item.title}: {hit.item.content}"[:80] for hit in running_tools().search(query, k=3)]


def reacts(body: dict[str, Any]) -> str:
    """Searches for the claim and then for its end, and answers."""
    if "`next_tool_args`" not in body["messages"][0]["content"]:
        return fields(reasoning="It is plain.", answer="yes")
    claim = asked(body, "question")
    done = body["messages"][-1]["content"].count("[[ ## observation_")
    tool, query = ("finish", None) if done > 1 else ("find", claim if not done else " ".join(claim.split()[-3:]))
    return fields(next_thought="I look.", next_tool_name=tool, next_tool_args={} if query is None else {"query": query})


def test_a_dspy_program_is_counted_priced_and_never_paid_twice(
    index: Path, server: ChatServer, model: MakeModel, tmp_path: Path
) -> None:
    server.answer = reacts

    def run(name: str) -> tuple[Any, AgentSearcher]:
        program = dspy.ReAct("question -> answer", tools=[find], max_iters=4)
        agent = AgentSearcher(program, Searcher(["bm25"]), model(), label="ReAct", steps=5)
        benchmark = Benchmarker(
            {"single": Searcher(["bm25"]), "react": agent}, BeirLoader(DEMO / "corpus.jsonl"), CLAIMS, GOLD,
            index_path=tmp_path / "index", stage_folder=tmp_path / name, measures=["recall@3", "recall@20"], resamples=20,
            prices={"openai/small": {"input": 1.0, "output": 2.0}}, latency_queries=2,
        )  # fmt: skip
        return benchmark.run(), agent

    first, agent = run("first")
    write_run_files(first, tmp_path / "out")
    hits = pq.read_table(tmp_path / "out" / "hits.parquet").to_pylist()
    assert {hit["configuration"] for hit in hits if dict(hit["signals"]).get("agent.step")} == {"react"}
    calls = server.calls
    assert calls == 4 * len(CLAIMS)
    single, react = first.report.configurations
    assert react.cost.language_model.calls == calls
    assert (react.cost.language_model.query_tokens_in, react.cost.language_model.query_tokens_out) == (400, 40)
    prices = [price_per_1000_queries(result.cost, first.report.prices) for result in (single, react)]
    assert prices == [0.0, pytest.approx(0.48)]
    assert react.measures["recall@20"] >= react.measures["recall@3"] > 0
    assert list(react.cost.stage_ms) == ["agent", "search"]
    for trajectory in agent.trajectories():
        assert [step.input_tokens for step in trajectory.steps] == [100, 100]
        assert (trajectory.tokens, trajectory.answer, trajectory.complete) == (440, "yes", True)
    again, _ = run("again")
    assert server.calls == calls
    assert again.report.configurations[1].measures == react.measures
    assert again.report.configurations[1].cost.language_model.query_tokens_in == 400
