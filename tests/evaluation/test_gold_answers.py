"""Right answers are read from the metadata of queries, and what is not of their form is an error that names the question."""

from __future__ import annotations

import pytest

from nlp_retrieval.core.models import Query
from nlp_retrieval.errors import GoldError
from nlp_retrieval.evaluation.answers import GoldAnswer, gold_answers


def query(query_id, **metadata):
    return Query(query_id=query_id, text="Who?", metadata=metadata)


def test_answers_and_facts_are_read():
    found = gold_answers(
        [
            query("a", answer="yes", supporting_facts=[["T", 0], ["U", 3]]),
            query("b", answer=["one", "two"], supporting_facts=[]),
            query("c", answer=[], supporting_facts=[["T", 1]]),
        ]
    )
    assert found == [
        GoldAnswer(query_id="a", answers=["yes"], facts=[("T", 0), ("U", 3)]),
        GoldAnswer(query_id="b", answers=["one", "two"], facts=[]),
        GoldAnswer(query_id="c", answers=[], facts=[("T", 1)]),
    ]
    assert gold_answers([query("a", answer="x")]) == [GoldAnswer(query_id="a", answers=["x"])]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({}, "1 of 2 questions have no \"answer\" in their metadata .first: 'b'."),
        ({"answer": "x"}, "1 of 2 questions have no \"supporting_facts\".*'b'"),
        ({"answer": 7, "supporting_facts": []}, "question 'b': \"answer\" is 7; a text is wanted"),
        ({"answer": ["x", None], "supporting_facts": []}, "question 'b'"),
        *(
            ({"answer": "x", "supporting_facts": facts}, "question 'b': \"supporting_facts\" is .*sentence number from 0")
            for facts in ("T", [["T"]], [["T", "0"]], [["T", -1]], [["T", True]], [["T", 0.0]], [[0, "T"]], {"T": 0}, [None])
        ),
    ],
)
def test_what_is_not_of_the_form_is_an_error_that_names_the_question(second, message):
    with pytest.raises(GoldError, match=message):
        gold_answers([query("a", answer="x", supporting_facts=[["T", 0]]), query("b", **second)])
