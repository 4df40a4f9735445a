"""The filter of triples: a model chooses among those it was shown, and nothing that it answers adds to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import ChatServer, MakeModel, asked, fields
from hashed_words import HashedWords

from nlp_retrieval import RetrievalResult, RetrievalWarning, Searcher
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from systems.hipporag.stored_knowledge import openie_file, passage

ITEMS = [
    passage("erik", ("Erik Hort", "was born in", "Montebello")),
    passage("montebello", ("Montebello", "is part of", "Rockland County")),
    passage("anna", ("Anna Lind", "painted", "Montebello")),
    passage("oslo", ("Oslo", "borders", "Harbour")),
]
QUERY = "Where was Erik Hort born?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    knowledge = openie_file(tmp_path / "openie.json", ITEMS)
    Searcher([HippoRagRetriever(HashedWords(32), knowledge)]).index(ITEMS, tmp_path / "index")
    return tmp_path


def found(folder: Path, **settings: object) -> list[RetrievalResult]:
    one = HippoRagRetriever(HashedWords(32), str(folder / "openie.json"), **settings)  # type: ignore[arg-type]
    (hits,) = Searcher([one]).open(folder / "index").search([QUERY], 10)
    return hits


def ranking(hits: list[RetrievalResult]) -> list[tuple[str, float]]:
    return [(hit.item.item_id, hit.score) for hit in hits]


def test_only_the_triples_that_the_model_chooses_are_linked(folder: Path, server: ChatServer, model: MakeModel) -> None:
    server.answer = lambda body: fields(helpful=[1])
    assert ranking(found(folder, lm=model(), triple_k=4)) == ranking(found(folder, triple_k=1))
    (body,) = server.bodies
    lines = asked(body, "facts").splitlines()
    assert lines[0] == "1. erik hort was born in montebello"
    assert len(lines) == 4
    assert asked(body, "question") == QUERY


@pytest.mark.parametrize("answer", [[1, 99, -3, 0], [1, 1], "```json\n[1, 7]\n```", "Fact 1."])
def test_numbers_that_were_not_shown_are_not_believed(
    folder: Path, server: ChatServer, model: MakeModel, answer: object
) -> None:
    server.answer = lambda body: fields(helpful=answer)
    assert ranking(found(folder, lm=model(), triple_k=4)) == ranking(found(folder, triple_k=1))


@pytest.mark.parametrize(
    "answer",
    [
        *("none of them", "__import__('os').remove('x')", json.dumps([["erik", "is", "here"]])),
        *([99, 0, -1], "[" + "9" * 5000 + "]", "[" * 10_000, "None of the 2 facts helps.", [0.1]),
    ],
)
def test_an_answer_of_something_else_keeps_all_triples_and_is_told(
    folder: Path, server: ChatServer, model: MakeModel, answer: object
) -> None:
    server.answer = lambda body: fields(helpful=answer)
    with pytest.warns(RetrievalWarning, match="keep all their triples"):
        hits = found(folder, lm=model(), triple_k=4)
    assert ranking(hits) == ranking(found(folder, triple_k=4))


def test_where_none_helps_passages_are_ranked_by_similarity(folder: Path, server: ChatServer, model: MakeModel) -> None:
    server.answer = lambda body: fields(helpful=[])
    similarities = [hit.signals["hipporag.similarity"] for hit in found(folder, lm=model())]
    assert len(similarities) == len(ITEMS)
    assert similarities == sorted(similarities, reverse=True)
