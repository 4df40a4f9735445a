"""AnswerEvaluator against the published definitions, written down again here from the papers."""

from __future__ import annotations

import json
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.models import Answer, Query, RetrievalResult, SearchableItem
from nlp_retrieval.errors import GoldError
from nlp_retrieval.evaluation.answers import AnswerEvaluator, GoldAnswer, gold_answers, ragas_lines
from nlp_retrieval.evaluation.comparison import intervals_by_group


def words_of(text):
    """Lower case, no punctuation, no articles, by hand."""
    kept = "".join(char for char in text.lower() if char not in string.punctuation)
    return [word for word in kept.split() if word not in {"a", "an", "the"}]


def f1_of(precision, recall):
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


def answered(text, gold):
    """Exact match, precision and recall of one answer, as HotpotQA's paper and script have them."""
    mine, right = words_of(text), words_of(gold)
    exact = float(mine == right)
    if exact == 0 and any(" ".join(words) in ("yes", "no", "noanswer") for words in (mine, right)):
        return 0.0, 0.0, 0.0
    left, both = list(right), 0
    for word in mine:
        if word in left:
            left.remove(word)
            both += 1
    return (exact, both / len(mine), both / len(right)) if both else (exact, 0.0, 0.0)


def supported(cited, gold):
    hits = len([fact for fact in set(cited) if fact in gold])
    precision = hits / len(set(cited)) if cited else 0.0
    return float(set(cited) == set(gold)), precision, hits / len(set(gold)) if gold else 0.0


def by_hand(answer, gold):
    """All measures of one question with one right answer."""
    exact, precision, recall = answered(answer.text, gold.answers[0])
    sp_exact, sp_precision, sp_recall = supported(answer.facts, gold.facts)
    return {
        "answer_em": exact,
        "answer_f1": f1_of(precision, recall),
        "sp_em": sp_exact,
        "sp_f1": f1_of(sp_precision, sp_recall),
        "sp_cited": sp_recall,
        "joint_em": exact * sp_exact,
        "joint_f1": f1_of(precision * sp_precision, recall * sp_recall),
    }


WORDS = "The a an yes no No! noanswer Kansas kansas, Song of 1,000 東京 - U.S.".split()
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
FACTS = st.lists(st.tuples(st.sampled_from(["T", "U"]), st.integers(0, 2)), max_size=4)


@given(TEXTS, TEXTS, FACTS, FACTS)
def test_the_measures_are_those_of_the_definitions(text, right, cited, facts):
    answer = Answer(text=text, facts=cited)
    gold = GoldAnswer(query_id="q", answers=[right], facts=facts)
    found = AnswerEvaluator([gold]).evaluate([answer])
    assert {name: values.tolist() for name, values in found.per_query.items()} == {
        name: [pytest.approx(value)] for name, value in by_hand(answer, gold).items()
    }


def judged(text, answers, facts=None, cited=(), failed=False):
    gold = GoldAnswer(query_id="q", answers=answers, facts=facts)
    found = AnswerEvaluator([gold]).evaluate([Answer(text=text, facts=list(cited), failed=failed)])
    return {name: float(values[0]) for name, values in found.per_query.items()}


def test_of_several_right_answers_the_nearest_counts():
    assert judged("Kansas Song", ["the fight song", "Kansas song!"]) == {"answer_em": 1, "answer_f1": 1}
    assert judged("Song", ["Kansas Song", "song of Kansas City"])["answer_f1"] == pytest.approx(2 / 3)


def test_where_no_answer_is_right_none_scores_and_a_failure_does_not():
    assert judged("", []) == {"answer_em": 1, "answer_f1": 1}
    assert judged("Kansas", []) == {"answer_em": 0, "answer_f1": 0}
    assert judged("", [], failed=True) == {"answer_em": 0, "answer_f1": 0}


def test_evaluations_have_means_intervals_and_a_count_of_those_without_an_answer():
    gold = [GoldAnswer(query_id=f"q{n}", answers=["x"]) for n in range(4)]
    found = AnswerEvaluator(gold).evaluate([Answer(text="x"), Answer(text=""), Answer(text="x"), Answer(text="", failed=True)])
    assert found.means() == {"answer_em": 0.5, "answer_f1": 0.5}
    two_of_three = pytest.approx({"answer_em": 2 / 3, "answer_f1": 2 / 3})
    assert found.means(np.array([True, True, True, False])) == two_of_three
    assert found.empty_queries == 2
    of_pairs = intervals_by_group({"": found.per_query}, ["a", "b", "a", "b"], {}, 0)[""][""]
    alone = intervals_by_group({"": found.per_query}, [None] * 4, {}, 0)[""][""]
    assert of_pairs["answer_em"][0] < alone["answer_em"][0] < 0.5 < alone["answer_em"][1] < of_pairs["answer_em"][1]


def test_answers_and_facts_are_read_from_the_metadata_of_queries():
    metadata = {
        "a": {"answer": "yes", "supporting_facts": [["T", 0], ["U", 3]]},
        "b": {"answer": ["one", "two"], "supporting_facts": []},
        "c": {"answer": [], "supporting_facts": [["T", 1]]},
    }
    queries = [Query(query_id=name, text="Who?", metadata=given) for name, given in metadata.items()]
    assert gold_answers(queries) == [
        GoldAnswer(query_id="a", answers=["yes"], facts=[("T", 0), ("U", 3)]),
        GoldAnswer(query_id="b", answers=["one", "two"], facts=[]),
        GoldAnswer(query_id="c", answers=[], facts=[("T", 1)]),
    ]
    alone = Query(query_id="d", text="Who?", metadata={"answer": "x"})
    assert gold_answers([alone]) == [GoldAnswer(query_id="d", answers=["x"])]
    with pytest.raises(GoldError, match='1 of 4 questions have no "supporting_facts" in their metadata'):
        gold_answers([*queries, alone])


def test_lines_have_the_fields_of_single_turn_samples_of_ragas():
    item = SearchableItem(item_id="a", content="Line one.\nLine \u2028 two.", metadata={"title": "T"})
    gold = [GoldAnswer(query_id="q", answers=["yes", "si"]), GoldAnswer(query_id="r", answers=[])]
    found = [[RetrievalResult(item=item, score=1.0)], []]
    content = ragas_lines(["東京?", "r"], found, [Answer(text="yes"), Answer(text="")], gold)
    assert [json.loads(line) for line in content.decode().splitlines()] == [
        {"user_input": "東京?", "retrieved_contexts": [item.text], "response": "yes", "reference": "yes"},
        {"user_input": "r", "retrieved_contexts": [], "response": "", "reference": ""},
    ]
