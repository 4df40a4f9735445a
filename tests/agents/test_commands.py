"""The commands of agents, and the page that they write."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlp_retrieval import Searcher
from nlp_retrieval.agents import AgentStep, Trajectory, evaluate_trajectories, trajectories_page, write_trajectories
from nlp_retrieval.agents.page import MOST_RESULTS, MOST_STEPS, shown_steps
from nlp_retrieval.cli.app import app

TEXTS = {
    "p1": "the blue whale eats krill",
    "p2": "krill lives in the south",
    "p3": "the fox eats lemmings",
    "p4": "lemmings digs",
}
HOSTILE = "<script>alert(1)</script>\x1b[31m"


def search(query: str, *results: str) -> AgentStep:
    return AgentStep(kind="search", query=query, k=2, results=results, input_tokens=10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "content": text, "title": name.upper()} for name, text in TEXTS.items()]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("queries.tsv").write_text("q1\twhat eats krill\nq2\twhat eats lemmings\n")
    Path("qrels.txt").write_text("q1 0 p1 1\nq1 0 p2 1\nq2 0 p3 1\n")
    Path("b.yaml").write_text(
        "corpus: {loader: jsonl, path: corpus.jsonl}\nqueries: {loader: topics, path: queries.tsv, qrels: qrels.txt}\n"
        "searchers: {bm25: {retrievers: [bm25]}}\nindex: index\n"
    )
    Searcher(["bm25"]).index(TEXTS, "index")
    write_trajectories(
        "agents.jsonl",
        [
            Trajectory(
                question_id="q1", question="what eats krill", agent="good", steps=(search("krill", "p1", "p2"),), answer="[p1]"
            ),
            Trajectory(question_id="q2", agent="good", steps=(search("fox", "p3"), AgentStep(kind="open", item_id="p3"))),
            Trajectory(
                question_id="q1", agent="bad", steps=(search("digs", "p4"), search("Digs ", "p4")), answer=f"{HOSTILE} [p4]"
            ),
            Trajectory(question_id="q2", agent="bad", steps=(search("lemmings", "p4"),), complete=False),
        ],
    )
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["agents", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_agents_are_evaluated_and_compared_with_a_page(folder: Path) -> None:
    printed = run("evaluate", "agents.jsonl", "-c", "b.yaml", "--page", "a.html")
    assert printed.startswith("good has a recall of 1.000 with 1.0 searches a question, bad of 0.000 with 1.5")
    assert "krill" in Path("a.html").read_text()
    assert run("evaluate", "agents.jsonl", "--qrels", "qrels.txt").splitlines()[0] == printed.splitlines()[0]


def test_searches_are_replayed_on_an_index_and_what_changed_is_said(folder: Path) -> None:
    printed = run("replay", "agents.jsonl", "-i", "index", "-k", "1", "-o", "again.jsonl")
    assert printed.startswith("5 searches: 80% return the same results")
    assert "replay of good" in run("evaluate", "again.jsonl", "--qrels", "qrels.txt")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "agents.jsonl"], "say what is relevant: --config"),
        (["evaluate", "agents.jsonl", "agents.jsonl", "--qrels", "qrels.txt"], "has two answers to question 'q1'"),
        (["evaluate", "corpus.jsonl", "--qrels", "qrels.txt"], "rename it, or leave it out"),
        (
            ["evaluate", "missing.jsonl", "--qrels", "qrels.txt", "--page", "index"],
            "index cannot be written: it exists and is not",
        ),
        (["replay", "missing.jsonl", "-i", "index", "-o", "index"], "index cannot be written: it exists and is not"),
        (["evaluate", "agents.jsonl", "--qrels", "qrels.txt", "--tool", "kb"], "'kb': a tool is 'search', 'open' or 'other'"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["agents", *words])
    assert done.exit_code in (1, 2, 3)
    assert message in done.output


def test_a_page_escapes_texts_links_citations_and_says_what_it_leaves_out(folder: Path) -> None:
    long = Trajectory(
        question_id="q1",
        question=HOSTILE,
        agent="long",
        steps=(search("a", *(f"d{n}" for n in range(40)), "p1"), *(search(f"b{n}", "p2") for n in range(100))),
        answer="So [p1]. And [p2].",
    )
    evaluation = evaluate_trajectories([long], {"q1": ["p1", "p2"]})
    shown = shown_steps(long, evaluation)
    assert len(shown) == MOST_STEPS
    _, results, more = shown[0]
    assert results[-1].item_id == "p1"  # gold beyond what is shown
    assert more == 40 - MOST_RESULTS
    page = trajectories_page(evaluation, [long])
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert f"{101 - MOST_STEPS} more steps" in page
    assert '<a href="#step-1-1-1">came in step 1</a>' in page
    assert 'id="step-1-1-1"' in page
