"""Reading trajectories in every form that they come in, and what is wrong with them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval import Query
from nlp_retrieval.agents import AgentStep, Trajectory, read_trajectories, write_trajectories
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError

FORMS = json.loads((Path(__file__).parent / "transcripts.json").read_text("utf-8"))
CHAT, ANTHROPIC = FORMS["CHAT"], FORMS["ANTHROPIC"]
QUESTIONS = [Query(query_id="q1", text="What eats krill?")]


def written(folder: Path, name: str, value: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value), "utf-8")
    return folder / name


@pytest.mark.parametrize(
    "value", [*FORMS.values(), {"messages": ANTHROPIC, "qid": "q1"}, {"messages": CHAT, "id": "chatcmpl-7"}]
)
def test_all_forms_of_one_transcript_are_one_trajectory(tmp_path: Path, value: object) -> None:
    (trajectory,) = read_trajectories(written(tmp_path, "run_1.json", value), questions=QUESTIONS)
    assert (trajectory.question_id, trajectory.question) == ("q1", "What eats krill?")
    assert [step.kind for step in trajectory.steps] == ["note", "search", "open"]
    search = trajectory.searches[0]
    assert (search.query, search.k, search.results) == ("krill", 2, ("whale", "krill"))
    assert (trajectory.opened(), trajectory.cited(), trajectory.complete) == (["whale"], ["whale"], True)
    assert (trajectory.input_tokens, trajectory.output_tokens, trajectory.tokens) == (60, 15, 75)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    steps = (
        AgentStep(kind="search", query="“whales”\n", k=3, where={"year": {"gte": 2000}}, results=("a", "b"), price=0.25),
        AgentStep(kind="open", item_id="a", seconds=0.5, input_tokens=7),
        AgentStep(kind="other", tool="calculator", error="no such tool"),
    )
    kept = [
        Trajectory(
            question_id="q1", agent="one", steps=steps, answer="A [a].", citations=(), metadata={"model": "m", "seed": 1}
        ),
        Trajectory(question_id="q1", agent="two", complete=False, input_tokens=5, price=0.5),
    ]
    write_trajectories(tmp_path / "kept.jsonl", kept)
    assert read_trajectories(tmp_path / "kept.jsonl") == kept
    with pytest.raises(ConfigurationError, match=r"call the file \.jsonl"):
        write_trajectories(tmp_path / "kept.parquet", kept)


def test_lines_of_steps_are_put_together_by_session_whatever_their_order(tmp_path: Path) -> None:
    lines = [
        {"session": "s", "question_id": "q1", "step": 2, "kind": "open", "docid": "d1"},
        {"session": "s", "question_id": "q1", "step": 1, "query": "krill", "docids": ["d1", 2], "k": "2", "price": None},
        {"session": "t", "question_id": "q2", "query": "fox", "retrieved": [{"id": "d3"}]},
        {"session": "s", "answer": "It is [d1]."},
    ]
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    one, two = read_trajectories(tmp_path / "s.jsonl")
    steps = [lines[1] | {"time": "2026-01-01T00:00:00Z", "session": None, "question_id": None}, {"kind": "open", "docid": "d1"}]
    (tmp_path / "t.jsonl").write_text(json.dumps({"question_id": None, "qid": "q1", "steps": steps, "citations": [2]}))
    (whole,) = read_trajectories(tmp_path / "t.jsonl")
    assert (whole.question_id, [step.came for step in whole.steps]) == ("q1", [step.came for step in one.steps])
    assert whole.cited() == ["2"]
    assert (one.question_id, one.seen(), one.opened(), one.cited()) == ("q1", ["d1", "2"], ["d1"], ["d1"])
    assert (two.question_id, two.seen(), two.answer) == ("q2", ["d3"], "")


def test_what_tools_do_is_given(tmp_path: Path) -> None:
    chat = json.loads(json.dumps(CHAT).replace('"search"', '"kb"'))
    with pytest.warns(RetrievalWarning, match=r'1 call of a tool.*"kb".*tools='):
        (trajectory,) = read_trajectories(written(tmp_path, "c.json", chat))
    assert trajectory.searches == []
    (trajectory,) = read_trajectories(tmp_path / "c.json", tools={"kb": "search"})
    assert trajectory.seen() == ["whale", "krill"]


def test_a_transcript_that_was_cut_keeps_what_was_found_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, "cut.json", CHAT[:5])
    with pytest.warns(RetrievalWarning, match="1 trajectory ends before an answer"):
        (trajectory,) = read_trajectories(path)
    assert (trajectory.complete, trajectory.seen(), trajectory.opened()) == (False, ["whale", "krill"], [])
    assert trajectory.steps[-1].error == "the transcript ends before its result"
    ends = ("max_tokens", "model_context_window_exceeded", "content_filter")
    for row in (
        asked_and_answered() | {"status": "incomplete"},
        *([CHAT[1], {**CHAT[-1], "stop_reason": end}] for end in ends),
    ):
        with pytest.warns(RetrievalWarning, match="1 trajectory ends before an answer"):
            assert read_trajectories(written(tmp_path, "half.json", row))[0].answer
    whole = tmp_path / "torn.jsonl"
    whole.write_text('{"question_id": "q1", "query": "krill", "results": ["d1"]}\n{"question_id": "q1", "query": "wh')
    with pytest.warns(RetrievalWarning, match="line 2 was torn"):
        (trajectory,) = read_trajectories(whole)
    assert trajectory.seen() == ["d1"]


def test_results_without_ids_and_failed_calls_are_steps_with_an_error(tmp_path: Path) -> None:
    def chat(content: object) -> list[object]:
        return [*CHAT[:3], {"role": "tool", "tool_call_id": "c1", "content": content}, CHAT[-1]]

    with pytest.warns(RetrievalWarning, match="1 search returned something without ids"):
        (trajectory,) = read_trajectories(written(tmp_path, "a.json", chat("Whales eat krill.")))
    assert (trajectory.searches[0].results, trajectory.searches[0].error) == ((), "no ids can be read in what came back")
    for said in ("Error: closed", "TimeoutError: closed", "Error executing tool search: closed", "Traceback (most recent call"):
        (trajectory,) = read_trajectories(written(tmp_path, "b.json", chat(said)))
        assert trajectory.searches[0].error == said
    broken = json.loads(json.dumps(CHAT).replace('{\\"query\\": \\"krill\\", \\"k\\": 2}', '{\\"query\\": \\"kri'))
    (trajectory,) = read_trajectories(written(tmp_path, "c.json", broken))
    assert trajectory.searches[0].error == "its arguments are no JSON object"


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ('{"results": [{"id": "d1", "title": "Krill"}, {"id": "d2", "title": "Wha', ("d1", "d2")),
        (
            "Krill\nURL: https://a.org/Krill_(film)\n\nWhales\nURL: https://b.org.",
            ("https://a.org/Krill_(film)", "https://b.org"),
        ),
        ("Errors in surveys, of 1999 (docid: d7; url: u).", ("d7",)),
        ('{"response": {"numFound": 1, "docs": [{"id": "d1"}]}}', ("d1",)),
        ('{"matches": [{"id": "d1", "score": 0.5}], "namespace": ""}', ("d1",)),
        ('{"ids": [["d1", "d2"]], "documents": [["Krill", "Whales"]]}', ("d1", "d2")),
    ],
)
def test_ids_are_read_from_what_search_engines_return(tmp_path: Path, content: str, ids: tuple[str, ...]) -> None:
    messages = [*CHAT[:3], {**CHAT[3], "content": content}, CHAT[-1]]
    (trajectory,) = read_trajectories(written(tmp_path, "a.json", messages))
    assert (trajectory.searches[0].results, trajectory.searches[0].error) == (ids, "")


@pytest.mark.parametrize("own", [{}, {"id": "same"}])
def test_calls_without_ids_of_their_own_are_answered_in_order(tmp_path: Path, own: dict[str, str]) -> None:
    calls = [{**own, "function": {"name": "search", "arguments": json.dumps({"query": query})}} for query in ("krill", "fox")]
    given = {"role": "tool", "tool_call_id": own.get("id", "")}
    results = [{**given, "content": json.dumps([{"id": item_id}])} for item_id in ("whale", "den")]
    messages = [CHAT[1], {"role": "assistant", "tool_calls": calls}, *results, CHAT[-1]]
    (trajectory,) = read_trajectories(written(tmp_path, "a.json", messages))
    assert [(step.query, step.results) for step in trajectory.searches] == [("krill", ("whale",)), ("fox", ("den",))]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"query": "krill"}'], "line 1 names no question"),
        (['{"contents": [{"role": "user", "parts": []}]}'], 'no question_id, session or messages ("contents")'),
        (['{"qid": "q", "query": "a", "colour": "red"}'], "line 1: there is no field 'colour'; known are"),
        (['{"qid": "q", "query": "a", "k": true}'], "line 1: k: Input should be a valid integer"),
        (['{"qid": "q", "kind": "search", "query": "a", "docid": ["d"]}'], "line 1: a result, citation or item is a list"),
        (['{"question_id": "q", "steps": []}', '{"question_id": "q", "steps": []}'], "has two answers to question 'q'"),
        ([json.dumps({"messages": [*CHAT[:4], CHAT[3]]})], "message 5 is a second result of the call 'c1'"),
        ([json.dumps({"messages": [CHAT[1], {"type": "ai"}]})], "message 2 has the role None and the type 'ai'"),
        ([json.dumps({"messages": [{"role": "user", "parts": [{"text": "a"}]}]})], "message 1 has 'parts', which is of a form"),
        (
            [json.dumps({"messages": [{"role": "assistant", "content": [{"toolUse": {"name": "search"}}]}]})],
            "message 1 has 'toolUse'",
        ),
    ],
)
def test_lines_that_are_wrong_are_refused_with_their_place(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "t.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(SourceError, match=re.escape(message)):
        read_trajectories(tmp_path / "t.jsonl")


def test_after_an_answer_another_question_begins(tmp_path: Path) -> None:
    lines = [
        {"session": "s", "question_id": "q1", "query": "krill", "results": ["d1"]},
        {"session": "s", "question_id": "q1", "answer": "It is [d1]."},
        {"session": "s", "question_id": "q1", "query": "fox", "results": ["d2"]},
        {"session": "s", "question_id": "q1", "answer": "No, [d2]."},
        {"session": "t", "question_id": "t", "question": "what  eats KRILL?", "answer": "A whale."},
    ]
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    first, second, by_text = read_trajectories(tmp_path / "s.jsonl", questions=QUESTIONS[:0])
    assert [(t.question_id, t.seen(), t.answer) for t in (first, second)] == [
        ("q1", ["d1"], "It is [d1]."),
        ("q1:2", ["d2"], "No, [d2]."),
    ]
    assert by_text.question_id == "t"
    *_, by_text = read_trajectories(tmp_path / "s.jsonl", questions=[Query(query_id="k", text="What eats krill?")])
    assert by_text.question_id == "k", "a question without an id is found by its text"


def asked_and_answered(*parts: object) -> dict[str, Any]:
    return {"input": "What eats krill?", "output": [*parts, {"role": "assistant", "content": "A whale."}]}


def tool_used(name: str, arguments: object, content: object, **more: object) -> list[object]:
    """A call of a tool in Anthropic's form, and its result."""
    result = {"type": f"{name}_tool_result", "tool_use_id": "t", "content": content, **more}
    blocks = [{"type": "server_tool_use", "id": "t", "name": name, "input": arguments}, result]
    return [CHAT[1], {"role": "assistant", "content": [*blocks, {"type": "text", "text": "A whale."}]}]


SEARCH_RESULT = {"type": "search_result", "source": "https://a.org", "content": [{"type": "text", "text": "krill"}]}


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        (
            asked_and_answered(
                {"type": "custom_tool_call", "call_id": "c", "name": "search", "input": "krill"},
                {"type": "custom_tool_call_output", "call_id": "c", "output": "No documents found."},
            ),
            [("search", "krill", (), "")],
        ),
        ([CHAT[1], {"role": "assistant", "content": None, "refusal": "I cannot say."}], []),
        ([CHAT[1], {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot say."}]}], []),
        (asked_and_answered({"type": "code_interpreter_call", "id": "c", "code": "1 + 1"}), [("other", "", (), "")]),
        (tool_used("web_search", {"query": "krill"}, {"error_code": "max_uses_exceeded"}),
         [("search", "krill", (), "max_uses_exceeded")]),
        (tool_used("web_fetch", {"limit": 9, "path": "whale"}, {"type": "web_fetch_result"}), [("open", "whale", (), "")]),
        (tool_used("search", {"query": "krill"}, json.dumps({"isError": True, "content": [{"type": "text", "text": "shut"}]})),
         [("search", "krill", (), "shut")]),
        (tool_used("search", {"query": "krill"}, [SEARCH_RESULT, {"type": "image"}]),
         [("search", "krill", ("https://a.org",), "")]),
    ],
)  # fmt: skip
def test_calls_of_every_kind_are_read(tmp_path: Path, value: object, steps: list[object]) -> None:
    (trajectory,) = read_trajectories(written(tmp_path, "a.json", value), tools={"code_interpreter": "other"})
    assert [(step.kind, step.query or step.item_id, step.results, step.error) for step in trajectory.steps] == steps
    assert trajectory.complete


def test_what_providers_write_in_ways_of_their_own_is_read(tmp_path: Path) -> None:
    chat = json.loads(json.dumps(ANTHROPIC))
    chat[1]["usage"] |= {"cache_read_input_tokens": 20_000, "cache_creation_input_tokens": "5000", "output_tokens": None}
    chat[3]["content"][0]["id"] = "t1"  # ids that begin anew with each turn
    chat[4]["content"][0] |= {"tool_use_id": "t1", "content": "Error analysis of whales: krill is what they eat."}
    items = [{"type": "text", "text": json.dumps({"item_id": name, "content": "..."})} for name in ("whale", "krill")]
    chat[2]["content"][0]["content"] = items
    chat.append({"role": "user", "content": "Thank you!"})
    (trajectory,) = read_trajectories(written(tmp_path, "a.json", chat), questions=QUESTIONS)
    assert (trajectory.answer, trajectory.complete) == ("The blue whale [whale].", True)
    assert trajectory.input_tokens == 25_060
    assert trajectory.searches[0].results == ("whale", "krill")
    assert [step.error for step in trajectory.steps] == ["", "", ""]
    answer = {"type": "output_text", "text": "A whale.", "annotations": [{"type": "file_citation", "file_id": "d1"}]}
    hosted = {
        "input": "What eats krill?",
        "output": [
            {"type": "web_search_call", "id": "w1", "action": {"type": "search", "query": "krill", "sources": [{"url": "u1"}]}},
            {"type": "web_search_call", "id": "w2", "action": {"type": "open_page", "url": "u1"}},
            {"type": "file_search_call", "id": "f1", "queries": ["a", "b"], "results": [{"file_id": "d1", "score": 0.5}]},
            {"type": "mcp_call", "id": "m1", "name": "search", "arguments": '{"query": "c"}', "output": '[{"id": "d2"}]'},
            {"type": "mcp_call", "id": "m2", "name": "search", "arguments": '{"query": "d"}', "error": "closed"},
            {"type": "message", "role": "assistant", "content": [answer]},
        ],
    }
    (trajectory,) = read_trajectories(written(tmp_path, "b.json", hosted), questions=QUESTIONS)
    assert (trajectory.question_id, trajectory.answer, trajectory.citations) == ("q1", "A whale.", ("d1",))
    assert [(step.query, step.results) for step in trajectory.searches] == [
        ("krill", ("u1",)), ("a\nb", ("d1",)), ("c", ("d2",)), ("d", ()),
    ]  # fmt: skip
    assert (trajectory.opened(), trajectory.searches[-1].error) == (["u1"], "closed")


def test_a_conversation_is_a_trajectory_for_each_turn_that_has_gold(tmp_path: Path) -> None:
    chat = [*CHAT, {"role": "user", "content": "And who eats whales?"}]
    chat.append(
        {"role": "assistant", "tool_calls": [{"id": "c9", "function": {"name": "search", "arguments": '{"query": "orca"}'}}]}
    )
    chat += [
        {"role": "tool", "tool_call_id": "c9", "content": '[{"docid": "orca"}]'},
        {"role": "assistant", "content": "[orca]"},
    ]
    by_text = [*QUESTIONS, Query(query_id="q2", text="and who  eats whales?")]
    numbered = [Query(query_id=f"31_{turn}", text=f"rewritten {turn}") for turn in (1, 2)]
    for value, questions, ids in (
        ({"messages": chat}, by_text, ["q1", "q2"]),
        ({"messages": chat, "stop_reason": "max_tokens"}, by_text, ["q1", "q2"]),
        ({"messages": chat, "id": 31}, numbered, ["31_1", "31_2"]),
    ):
        first, second = read_trajectories(written(tmp_path, "a.json", value), questions=questions)
        assert [first.question_id, second.question_id] == ids
        assert (first.seen(), second.seen()) == (["whale", "krill"], ["orca"])
        assert (second.question, second.answer) == ("And who eats whales?", "[orca]")
    (first,) = read_trajectories(
        written(tmp_path, "a.json", [{"role": "user", "content": "cwd: /"}, *CHAT]), questions=QUESTIONS
    )
    assert (first.question_id, first.question) == ("q1", "What eats krill?"), "the first message need not be the question"
    again = read_trajectories(written(tmp_path, "a.json", [*CHAT, *CHAT[1:]]), questions=QUESTIONS)
    assert [trajectory.question_id for trajectory in again] == ["q1", "q1:2"], "one question asked again"
    (whole,) = read_trajectories(written(tmp_path, "a.json", {"messages": chat, "qid": 31}), questions=QUESTIONS)
    assert (whole.question_id, whole.seen()) == ("31", ["whale", "krill", "orca"])
