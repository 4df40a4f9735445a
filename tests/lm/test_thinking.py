"""What a model thinks is no part of its answer, for every user of a model and every kind of mark."""

from __future__ import annotations

import json
import warnings

import dspy
import pytest
from chat_server import asked, fields

from nlp_retrieval import Searcher
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.answering import LanguageModelAnswerer
from nlp_retrieval.lm.asking import ask_all
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import final_answer, read_passage, read_phrases, unwrapped
from nlp_retrieval.processors.signatures import PassageWriter
from nlp_retrieval.processors.with_model import ClaimPhrases, HyDE
from nlp_retrieval.rerankers.listwise import ListwiseReranker
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

DRAFT = "Okay, the user asks about a fox. [1] Wait, [2]?"
THINKING = {
    "think": "<think>{}</think>{}",
    "think on lines": "<think>\n{}\n</think>\n\n{}",
    "upper case": "<THINK>{}</THINK>{}",
    "thinking": "<thinking>{}</thinking>{}",
    "reasoning": "<reasoning>{}</reasoning>{}",
    "thought": "<thought>{}</thought>{}",
    "an attribute": '<think duration="3">{}</think>{}',
    "a namespace": "<seed:think>{}</seed:think>{}",
    "nested": "<think>a <think>{}</think> b</think>{}",
    "two blocks": "<think>{0}</think><think>{0}</think>{1}",
    "a mark in a thought": "<think>I close with <think>. {}</think>{}",
    "no opening": "{}</think>{}",
    "an empty thought": "<think></think>{1}",
    "an answer in marks": "<think>{}</think><answer>{}</answer>",
    "triangles": "\u25c1think\u25b7{}\u25c1/think\u25b7{}",
    "square": "[THINK]{}[/THINK]{}",
    "begin and end": "<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>{}<|end_of_solution|>",
    "start and end": "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "channels": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "constrained channels": (
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}"
    ),
    "channels without their marks": "analysisThe user. {}assistantfinal{}",
    "channels of another form": "<|channel>thought\n{}<channel|>{}",
    "said in words": "Here is my thought process:\n{}\n\nHere is my response:\n{}",
}
ONLY_THOUGHTS = {
    "broken off": "<think>{}",
    "closed": "<think>{}</think>",
    "closed and blank": "<think>{}</think>\n \n",
    "a thought after a thought": "<think>a</think><think>{}",
    "after its opening": "x <think>{}",
    "no final channel": "<|channel|>analysis<|message|>{}",
    "no final channel, without marks": "analysisThe user. {}",
    "square": "[THINK]{}",
    "triangles": "\u25c1think\u25b7{}",
    "said in words": "Here is my thought process:\n{}",
}


@pytest.mark.parametrize("form", THINKING)
def test_of_an_answer_with_thoughts_the_rest_is_read(form):
    for answer in ("A fox.", '{"a": "b"}', fields(phrases=["a", "b"])):
        assert final_answer(THINKING[form].format(DRAFT, answer)) == answer


@pytest.mark.parametrize("form", ONLY_THOUGHTS)
def test_an_answer_that_only_thinks_is_none(form):
    assert final_answer(ONLY_THOUGHTS[form].format(DRAFT)) is None


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " A fox ",
        "a < b, and thinking > doing",
        "I think [think] so",
        "analysis of the final",
        "<b>x</b>",
        "<thoughtful>",
        "[1]",
    ],
)
def test_an_answer_without_thoughts_stays_as_it_is(answer):
    assert final_answer(answer) == answer


@pytest.mark.parametrize(
    "value",
    [f"<think>{DRAFT}</think>A fox.", f"{DRAFT}</think> A fox.", f"\\u003cthink\\u003e{DRAFT}\\u003c/think\\u003eA fox."],
)
def test_thoughts_within_json_are_no_part_of_its_values(value):
    written = value if "\\u" in value else json.dumps(value)[1:-1]
    assert json.loads(final_answer(f'{{"passage": "{written}", "n": [1]}}') or "") == {"passage": "A fox.", "n": [1]}


def test_a_value_whose_key_says_that_it_is_a_thought_is_not_searched_with():
    assert read_phrases('{"thinking": "Okay, the user", "phrases": "red fox"}', "c", 3, 9) == ["red fox"]
    assert read_phrases({"reasoning": "Okay, the user", "phrases": ["red fox"]}, "c", 3, 9) == ["red fox"]
    assert read_passage(unwrapped('{"thought_process": "Okay", "passage": "A red fox."}'), "q", 9) == "A red fox."


def test_what_was_answered_again_after_thoughts_counts():
    again = f"{fields(phrases=['draft'])}\n<think>no</think>\n{fields(phrases=['final'])}"
    assert final_answer(again) == fields(phrases=["final"])


@pytest.mark.parametrize("form", THINKING)
def test_every_user_of_a_model_reads_what_follows_the_thoughts(server, model, form):
    def says(draft, final):
        server.answer = lambda body: THINKING[form].format(draft, final)

    says(fields(passage="Okay, the user asks"), fields(passage="A fox runs."))
    assert HyDE(model()).process(["what runs?"]) == [["what runs?", "A fox runs."]]
    says("Okay, the user asks", "A fox runs.")
    assert HyDE(model()).process(["what runs now?"]) == [["what runs now?", "A fox runs."]]
    says(fields(phrases=["Okay", "the user asks"]), fields(phrases=["red fox", "den"]))
    assert ClaimPhrases(model(), keep_query=False).process(["the claim"]) == [["red fox", "den"]]

    says(fields(reasoning="r", citations="1.2", answer="London"), fields(reasoning="r", citations="1.1", answer="Paris"))
    passage = SearchableItem(item_id="a", content="It lies in Paris. It was in London.")
    (answer,) = LanguageModelAnswerer(model()).answer_batch(["Where?"], [[passage]])
    assert (answer.text, answer.facts) == ("Paris", [("a", 0)])


def test_a_list_is_ordered_as_the_answer_says_and_not_as_the_thoughts(server, model, tmp_path):
    server.answer = lambda body: "<think>[1, 2]? " + "no " * 10_000 + "</think>" + fields(ranking=[2, 1])
    items = [SearchableItem(item_id=name, content=text) for name, text in (("a", "fox fox"), ("b", "fox and den of it"))]
    found = []
    for reranker in (None, ListwiseReranker(model())):
        searcher = Searcher([Bm25Retriever()], reranker=reranker)
        searcher.index(items, tmp_path / "index")
        found.append([hit.item.item_id for hit in searcher.search("fox", 2)[0]])
    assert found == [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize("form", ONLY_THOUGHTS)
def test_only_thoughts_are_no_answer_counted_said_and_asked_again(server, model, tmp_path, form):
    server.answer = lambda body: ONLY_THOUGHTS[form].format("Okay, the user asks")
    for _ in range(2):
        lm = model()
        with pytest.warns(RetrievalWarning, match="1 of 1 queries.*holds only the model's reasoning"):
            assert HyDE(lm).process(["what runs?"]) == [["what runs?"]]
        assert lm.counts.degraded == 1
    assert server.calls == 2
    assert not list((tmp_path / "answers").rglob("*.json"))


def message(content, reasoning, reason="stop", **usage):
    said = {"role": "assistant", "content": content, "reasoning_content": reasoning}
    choice = {"index": 0, "message": said, "finish_reason": reason}
    counts = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18, **usage}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": counts}


def test_thoughts_beside_the_answer_are_not_read_and_the_answer_is_kept(server, model):
    server.answer = lambda body: message(fields(passage="A fox runs."), "Okay, the user asks")
    for _ in range(2):
        assert HyDE(model()).process(["what runs?"]) == [["what runs?", "A fox runs."]]
    assert server.calls == 1


@pytest.mark.parametrize("content", ["", None, "  "])
@pytest.mark.parametrize("beside", [True, False])
def test_thoughts_beside_no_answer_say_that_the_length_was_too_short(server, model, content, beside):
    hidden = {"completion_tokens_details": {"reasoning_tokens": 9}}
    server.answer = lambda body: message(content, "Okay, the user" if beside else None, "length", **({} if beside else hidden))
    with pytest.warns(
        RetrievalWarning, match="only the model's reasoning; it may write 512 tokens: give it more by max_tokens"
    ):
        assert HyDE(model()).process(["what runs?"]) == [["what runs?"]]


def test_a_draft_that_an_older_version_kept_is_asked_for_again(server, model, tmp_path):
    server.answer = lambda body: fields(passage="A fox runs.")
    HyDE(model()).process(["what runs?"])
    (kept,) = (tmp_path / "answers").rglob("*.json")
    whole = json.loads(kept.read_text())
    whole["answer"]["text"] = "<think>Okay, the user asks"
    kept.write_text(json.dumps(whole))
    assert HyDE(model()).process(["what runs?"]) == [["what runs?", "A fox runs."]]
    assert server.calls == 2


def test_thoughts_of_a_model_that_dspy_was_given_are_not_read_either(server):
    lm = dspy.LM("openai/small", api_base=server.url, api_key="none", cache=False, num_retries=0)

    def written(reply):
        server.answer = lambda body: reply
        with dspy.context(lm=lm):
            return ask_all(None, PassageWriter().write, [{"query": "q"}], "passage", lambda _, answer: answer or None, "test")

    assert written("<think>Okay, the user</think>" + fields(passage="A fox.")) == ["A fox."]
    for reply in ("<think>Okay, the user", message(None, "Okay, the user asks")):
        with pytest.warns(RetrievalWarning, match="no usable answer"):
            assert written(reply) == [None]


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        *(
            (name, True)
            for name in ("gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.6-luna", "o1", "o1-mini", "o1-preview", "o3-mini")
        ),
        *((name, True) for name in ("o3", "o4-mini", "o4-mini-2025-04-16")),
        *((name, False) for name in ("gpt-5-chat", "gpt-4o-mini", "olmo-2", "small")),
    ],
)
def test_a_reasoning_model_of_openai_is_asked_as_it_demands(server, tmp_path, name, reasons):
    server.answer = lambda body: fields(passage=f"A fox {asked(body, 'query')}.")
    lm = LanguageModel(f"openai/{name}", server.url, cache_dir=tmp_path / "answers")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert HyDE(lm).process(["runs"]) == [["runs", "A fox runs."]]
    (body,) = server.bodies
    assert body["model"] == name
    assert body.get("temperature") == (None if reasons else 0.0)
    assert body["max_completion_tokens"] == (16_000 if reasons else 512)
    said = [str(one.message) for one in caught if "reasoning model" in str(one.message)]
    expected = f"openai/{name} is a reasoning model: it is asked without a temperature, and max_tokens=16000 instead of 512"
    assert said == ([expected] if reasons else [])
