"""Measures of agents against a plain recomputation, curves, tests between agents, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.agents import AgentStep, Trajectory, evaluate_trajectories, trajectories_page
from nlp_retrieval.agents.measures import COUNTS, MEASURES
from nlp_retrieval.agents.transcripts import NO_IDS
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning

SEED = 11
ITEMS = [f"d{number}" for number in range(12)]
WORDS = "blue whale krill swarm depth heron river stork".split()
TEXTS = {name: f"{WORDS[number % 8]} {WORDS[number % 5]}" for number, name in enumerate(ITEMS)}


def search(query: str, *results: str, tokens: int | None = None) -> AgentStep:
    return AgentStep(kind="search", query=query, results=results, input_tokens=tokens)


def wandering(question: int, agent: str, generator: np.random.Generator) -> Trajectory:
    """An agent that searches, reads and cites at random."""
    steps = []
    for _ in range(generator.integers(0, 7)):
        found = generator.choice(ITEMS, generator.integers(0, 4), replace=False).tolist()
        if generator.random() < 0.7:
            steps.append(search("  ".join(generator.choice(WORDS, 2)), *found, tokens=int(generator.integers(0, 50))))
        else:
            steps.append(AgentStep(kind="open", item_id=generator.choice(ITEMS).item(), input_tokens=3))
    cited = generator.choice(ITEMS, generator.integers(0, 3), replace=False).tolist()
    return Trajectory(
        question_id=f"q{question}", question=WORDS[question % 8], agent=agent, steps=tuple(steps), citations=tuple(cited)
    )


def plainly(trajectory: Trajectory, gold: set[str], limit: int) -> dict[str, float]:
    """The measures by sets, each from its definition."""
    steps = trajectory.steps
    came = [set(step.results) if step.kind == "search" else {step.item_id} for step in steps]
    after = [gold & set().union(*came[:number]) for number in range(len(steps) + 1)]
    union = set().union(*came)
    searches = [number for number, step in enumerate(steps) if step.kind == "search"]
    by_search = []
    for number in range(1, limit + 1):
        end = searches[number] if number < len(searches) else len(steps)  # until the next search begins
        by_search.append(len(after[end]) / len(gold))
    results = [(number, item) for number in searches for item in steps[number].results]
    complete = gold <= union
    last = next((number for number in range(1, len(steps) + 1) if complete and gold <= set().union(*came[:number])), None)
    cited = list(trajectory.citations or ())
    opened = [{step.item_id} if step.kind == "open" else set() for step in steps]
    by_read = opened if any(opened) else came
    read = [{word for item in set().union(*by_read[:number]) for word in TEXTS[item].split()} for number in range(len(steps))]
    asked = [set((step.query or "").split()) for step in steps]
    new = [asked[number] - {trajectory.question}.union(*asked[:number]) for number in range(len(steps))]
    counted = [number for number in searches if read[number]]
    n_new = sum(len(new[number]) for number in counted)
    return {
        "recall": len(gold & union) / len(gold),
        "perfect_recall": float(complete),
        "recall_by_search": sum(by_search) / limit,
        "redundancy": sum(item in set().union(*came[:number]) for number, item in results) / len(results) if results else 0.0,
        "citation_precision": sum(item in gold for item in cited) / len(cited) if cited else 0.0,
        "citation_recall": len(gold & set(cited)) / len(gold),
        "cited_unseen": sum(item not in union for item in cited) / len(cited) if cited else 0.0,
        "searched_on": sum(number >= last for number in searches) / len(searches) if last is not None and searches else 0.0,
        "words_read": sum(len(new[number] & read[number]) for number in counted) / n_new if n_new else np.nan,
        "searches": len(searches),
        "last_gold_step": np.nan if last is None else last,
        "tokens": sum(step.input_tokens or 0 for step in steps) if steps else np.nan,
    }


def test_every_measure_is_what_its_definition_says_for_agents_that_wander() -> None:
    generator = np.random.default_rng(SEED)
    gold = {f"q{n}": set(generator.choice(ITEMS, generator.integers(1, 4), replace=False).tolist()) for n in range(60)}
    trajectories = [wandering(n, agent, generator) for agent in ("one", "two") for n in range(60)]
    evaluation = evaluate_trajectories(trajectories, gold, texts=TEXTS)
    assert evaluation.limit == max(len(trajectory.searches) for trajectory in trajectories)
    table = evaluation.to_arrow().to_pylist()
    assert len(table) == 120
    for trajectory, row in zip(trajectories, table, strict=True):
        assert (row["agent"], row["qid"]) == (trajectory.agent, trajectory.question_id)
        wanted = plainly(trajectory, gold[trajectory.question_id], evaluation.limit)
        assert {name: np.nan if row[name] is None else row[name] for name in wanted} == pytest.approx(wanted, nan_ok=True)
        assert row.keys() == {"agent", "qid", *MEASURES, *COUNTS}


def test_agents_are_compared_over_families() -> None:
    gold = {f"q{number}": ["d"] for number in range(12)}
    found = [Trajectory(question_id=query_id, agent="good", steps=(search("a", "d"),)) for query_id in gold]
    missed = [Trajectory(question_id=query_id, agent="bad", steps=(search("a", "e"),)) for query_id in gold]
    families = {query_id: f"f{number // 2}" for number, query_id in enumerate(gold)}
    evaluation = evaluate_trajectories([*missed, *found], gold, families=families)
    (comparison,) = evaluation.compare("recall")
    assert (comparison.system, comparison.difference, comparison.families, comparison.p) == ("good", 1.0, 6, 2 / 2**6)
    low, high = evaluation.intervals["good"]["recall"]
    assert 0.4 < low < high == 1
    with pytest.raises(ConfigurationError, match="no measure 'speed'"):
        evaluation.compare("speed")
    with pytest.raises(ConfigurationError, match="limit=0; recall is averaged over at least 1 search"):
        evaluate_trajectories(found, gold, limit=0)


def test_only_what_was_asked_and_can_be_read_counts_and_a_stray_request_is_no_agent(tmp_path: Path) -> None:
    gold = {f"q{n}": ["d"] for n in range(8)}
    good = [Trajectory(question_id=f"q{n}", agent="good", steps=(search("a", "d"),), answer="It [d].") for n in range(4)]
    weak = [Trajectory(question_id=f"q{n}", agent="weak", steps=(search("a", "x"),)) for n in range(3)]
    unread = Trajectory(
        question_id="q3", agent="weak", steps=(AgentStep(kind="search", query="a", error=NO_IDS),), answer="So."
    )
    stray = Trajectory(question_id="day-2026-01-01", agent="sessions", steps=(search("a", "d"),))
    with pytest.warns(RetrievalWarning):
        evaluation = evaluate_trajectories([*good, *weak, unread, stray], gold)
    assert (evaluation.agents, evaluation.query_ids) == (["good", "weak"], ["q0", "q1", "q2", "q3"])
    assert (evaluation.means("good")["recall"], evaluation.means("weak")["recall"]) == (1, 0)
    assert np.isnan(evaluation.per_query["weak"]["recall"][3])
    assert (evaluation.means("good")["citation_precision"], evaluation.means("weak")["searches"]) == (1, 1)
    assert np.isnan(evaluation.means("weak")["citation_precision"]), "there is no answer that could cite"
    (comparison,) = evaluation.compare("recall")
    assert comparison.queries == 3
    third = [each.model_copy(update={"agent": "third"}) for each in weak]
    with pytest.warns(RetrievalWarning):
        compared = evaluate_trajectories([*good, *weak, *third], gold).compare("recall")
    assert [(each.p, each.p_holm, each.comparisons) for each in compared] == [(0.25, 0.75, 3), (0.25, 0.75, 3), (1, 1, 3)]
    nobody = Trajectory(question_id="q3", agent="nobody", steps=unread.steps)
    with pytest.warns(RetrievalWarning):
        evaluation = evaluate_trajectories([*good, *weak, nobody], gold)
    assert [(each.system, each.queries) for each in evaluation.compare("recall")] == [("weak", 3)]
    page = trajectories_page(evaluation, [*good, *weak, nobody])
    assert ("over 3 questions of both +1.000" in page, "n/a" in page, "nan" in page) == (True, True, False)


@pytest.mark.parametrize(
    ("found", "answer", "cited"),
    [
        (("w", "k"), "The whale [w] eats krill. It weighs 100 t [w, k] 【k】, in [2019] and [x].", ["w", "k"]),
        (("12", "7"), "It is so [12], [99; 7] and [sic] 【7】.", ["12", "99", "7"]),
    ],
)
def test_marks_of_an_answer_cite_what_was_seen_and_numbers_where_ids_are_numbers(found, answer: str, cited: list[str]) -> None:
    assert Trajectory(question_id="q", steps=(search("a", *found),), answer=answer).cited() == cited
