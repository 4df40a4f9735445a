"""Any client with ``complete(prompt)`` is a language model, wherever one is taken."""

from __future__ import annotations

import gc
import weakref

import dspy
import pytest
from chat_server import chat_server

from nlp_retrieval import (
    ClaimPhrases,
    HyDE,
    LanguageModel,
    Searcher,
)
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.hover import HoverMultiHopPipeline
from nlp_retrieval.lm.asking import ask_all


class Stub:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.prompts = []

    def complete(self, prompt):
        self.prompts.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Completion:
    """An answer as an object."""

    def __init__(self, text):
        self.text = text


def test_a_client_answers_as_a_language_model(subtests: pytest.Subtests):
    for answer in ["Whales eat krill.", Completion("[[ ## passage ## ]]\nWhales eat krill.")]:
        with subtests.test(answer=answer):
            client = Stub(answer)
            (expanded,) = HyDE(client).expand("what do whales eat?")
            assert expanded.expanded == "what do whales eat? Whales eat krill."
            assert "Write the passage of an encyclopedia" in client.prompts[0]
            assert client.prompts[0].index("{query}") < client.prompts[0].index("what do whales eat?")


def test_it_is_asked_once_for_each_question_and_nothing_is_kept_of_it():
    client = Stub("krill")
    for _ in range(2):
        HyDE(client).process(["what do whales eat?", "what do whales eat?"])
    assert len(client.prompts) == 2


def test_a_client_and_its_model_are_freed_when_nobody_holds_them():
    client = Stub("krill")
    processor = HyDE(client)
    gone = weakref.ref(client), weakref.ref(processor.lm)
    del client, processor
    gc.collect()
    assert [dead() for dead in gone] == [None, None]


def test_a_client_that_fails_costs_its_answer_and_says_why(subtests: pytest.Subtests):
    for answer, said in [
        (3, r"complete\(\) returned int; it must return the answer as text"),
        (OSError("no quota"), "raised OSError: no quota"),
    ]:
        with subtests.test(answer=answer, said=said), pytest.warns(RetrievalWarning, match=said):
            assert HyDE(Stub(answer)).process(["krill"]) == [["krill"]]


def test_a_searcher_with_one_is_not_written_to_a_file():
    with pytest.raises(ConfigurationError, match="is an object of this program, and no configuration can hold it"):
        Searcher(["bm25"], processor=HyDE(Stub("krill"))).to_config()


def test_a_model_of_dspy_answers_too_and_hover_takes_that_of_its_context():
    with chat_server(lambda body: '["krill"]') as server:
        lm = dspy.LM("openai/stub", api_base=server.url, api_key="none", cache=False, max_tokens=100)
        assert ClaimPhrases(lm, keep_query=False).process(["What eats krill is no fox."]) == [["krill"]]
        assert LanguageModel.of_client(lm) is LanguageModel.of_client(lm)
        with dspy.context(lm=lm):
            assert HoverMultiHopPipeline(["bm25"]).parts.searcher.processor.process(["What eats krill?"]) == [["krill"]]
            assert ask_all(None, dspy.Predict("q -> a"), [{"q": "What eats krill?"}], "a", lambda _, said: said, "q")
        assert server.calls == 3
    with pytest.raises(ConfigurationError, match=r"there is no language model: pass lm=LanguageModel\(...\), or call dspy"):
        HoverMultiHopPipeline(["bm25"])
    with pytest.raises(ConfigurationError, match="client/Stub-1 was an object of the program that wrote it"):
        LanguageModel("client/Stub-1")
