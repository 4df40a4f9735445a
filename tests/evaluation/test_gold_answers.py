"""Right answers are read from the metadata of queries, and what is not of their form is an error that names the question."""

from __future__ import annotations

from nlp_retrieval.core.models import Query
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
