"""A line per question with the fields of RAGAS's single-turn samples, whatever the texts hold."""

from __future__ import annotations

import json

from nlp_retrieval.core.models import Answer, RetrievalResult, SearchableItem
from nlp_retrieval.evaluation.answers import GoldAnswer, ragas_lines

ITEM = SearchableItem(item_id="a", content="Line one.\nLine \u2028 two.", metadata={"title": "T"})


def test_lines_have_the_fields_of_single_turn_samples():
    found = [[RetrievalResult(item=ITEM, score=1.0)], []]
    gold = [GoldAnswer(query_id="q", answers=["yes", "si"]), GoldAnswer(query_id="r", answers=[])]
    content = ragas_lines(["東京?", "r"], found, [Answer(text="yes"), Answer(text="")], gold)
    assert [json.loads(line) for line in content.decode().splitlines()] == [
        {"user_input": "東京?", "retrieved_contexts": [ITEM.text], "response": "yes", "reference": "yes"},
        {"user_input": "r", "retrieved_contexts": [], "response": "", "reference": ""},
    ]
