"""What a model thinks is no part of its answer, beside it or before it."""

from __future__ import annotations

import pytest
from chat_server import asked, fields

from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.processors.with_model import HyDE

THINKING = {
    "on lines": "<think>\n{}\n</think>\n\n{}",
    "nested": "<think>a <think>{}</think> b</think>{}",
    "no opening": "{}</think>{}",
}
ONLY_THOUGHTS = {"broken off": "<think>{}", "closed": "<think>{}</think>\n \n"}


@pytest.mark.parametrize("form", THINKING)
def test_a_user_of_a_model_reads_what_follows_the_thoughts(server, model, form):
    for draft, final in ((fields(passage="Okay, the user asks"), fields(passage="A fox runs.")), ("Okay", "A fox runs.")):
        server.answer = lambda body, draft=draft, final=final: THINKING[form].format(draft, final)
        assert HyDE(model(temperature=len(draft) / 1000)).process(["what runs?"]) == [["what runs?", "A fox runs."]]


@pytest.mark.parametrize("form", ONLY_THOUGHTS)
def test_only_thoughts_are_no_answer_counted_said_and_asked_again(server, model, tmp_path, form):
    server.answer = lambda body: ONLY_THOUGHTS[form].format("Okay, the user asks")
    for _ in range(2):
        lm = model()
        with pytest.warns(RetrievalWarning, match="1 of 1 queries.*holds no text, or only the model's reasoning"):
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


def test_thoughts_beside_no_answer_say_that_the_length_was_too_short(server, model):
    server.answer = lambda body: message(None, "Okay, the user", "length")
    with pytest.warns(
        RetrievalWarning, match=r"\(1 times the answer cannot be used: .* the model's reasoning, which takes more of max_tok"
    ):
        assert HyDE(model()).process(["what runs?"]) == [["what runs?"]]


def test_a_reasoning_model_of_openai_is_asked_as_it_demands(server, tmp_path):
    server.answer = lambda body: fields(passage=f"A fox {asked(body, 'query')}.")
    for name in ("gpt-5.6-luna", "o4-mini-2025-04-16", "gpt-5-chat"):
        assert HyDE(LanguageModel(f"openai/{name}", server.url, cache_dir=tmp_path)).process(["runs"])[0][1] == "A fox runs."
    sent = [(body["model"], body.get("temperature"), body["max_completion_tokens"]) for body in server.bodies]
    assert sent == [("gpt-5.6-luna", None, 16_000), ("o4-mini-2025-04-16", None, 16_000), ("gpt-5-chat", 0.0, 512)]
