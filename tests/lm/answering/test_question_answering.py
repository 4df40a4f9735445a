"""Search, then answer: the answerer reads what the searcher found first."""

from __future__ import annotations

from chat_server import asked, fields

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.answering import LanguageModelAnswerer, QuestionAnswering
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever


def test_an_answer_stands_beside_what_was_read(index, model, server):
    server.answer = lambda body: fields(
        reasoning="r", citations="2.1", answer=asked(body, "passages").split("\n")[0].removeprefix("Passage 1: ")
    )
    searcher = Searcher([Bm25Retriever()])
    searcher.open(index)
    found = searcher.search(["film director", "novel"], 3)
    one, other = QuestionAnswering(searcher, LanguageModelAnswerer(model(), passages=3)).answer(["film director", "novel"])
    assert [one.results, other.results] == found
    assert [one.answer.text, other.answer.text] == [results[0].item.title for results in found]
    assert one.cited == [found[0][1]]
    assert one.question == "film director"
    (alone,) = QuestionAnswering(searcher, LanguageModelAnswerer(model(), passages=3)).answer("film director")
    assert alone == one
