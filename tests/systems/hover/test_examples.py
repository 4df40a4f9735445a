"""Claims become examples, families stay on one side, and a run is judged by the titles it found."""

from __future__ import annotations

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.errors import ConfigurationError, GoldError, RetrievalWarning, SourceError
from nlp_retrieval.loaders.datasets import HoverLoader
from nlp_retrieval.systems.hover.compiling import (
    discrete_retrieval_eval,
    hover_examples,
    missing_titles,
    split_by_family,
)
from nlp_retrieval.systems.hover.programs import as_document

from .conftest import DEMO

CLAIMS = DEMO / "claims.json"


def test_examples_are_the_claims_of_three_hops_with_their_titles_and_families():
    n_all = len(hover_examples(CLAIMS, hops=None))
    with pytest.warns(RetrievalWarning, match=rf"of its {n_all} claims have three hops and are taken; pass hops=None"):
        examples = hover_examples(CLAIMS)
    loader = HoverLoader(CLAIMS, hops=[3])
    assert [(one.query_id, one.claim, one.family) for one in examples] == [
        (query.query_id, query.text, query.family) for query in loader.queries()
    ]
    assert [one.gold_titles for one in examples] == [list(gold.relevance) for gold in loader.gold()]
    assert all(set(one.inputs()) == {"claim"} for one in examples)
    assert len(hover_examples(CLAIMS, hops=3)) == len(examples)
    assert len(hover_examples(CLAIMS, hops=None)) > len(hover_examples(CLAIMS, hops=[2, 3])) > len(examples) > 0
    with pytest.raises(SourceError, match="no claim fits"):
        hover_examples(CLAIMS, hops=[9])


def test_twenty_one_titles_count():
    example = dspy.Example(claim="c", gold_titles=["Last", "First"])
    pages = [f"Page {number} | text" for number in range(19)]
    for between, complete in ((pages, True), ([*pages, "Page 1 | again"], True), ([*pages, "Another | text"], False)):
        prediction = dspy.Prediction(retrieved_docs=["First | text", *between, "Last | text"])
        assert discrete_retrieval_eval(example, prediction) is complete
        assert missing_titles(example, prediction) == ([] if complete else ["Last"])


@given(families=st.lists(st.none() | st.integers(0, 9).map(str), min_size=2, max_size=40))
def test_no_family_is_on_both_sides_and_nothing_is_lost(families):
    examples = [dspy.Example(claim=str(number), family=family) for number, family in enumerate(families)]
    if len(set(families) - {None}) + families.count(None) < 2:
        with pytest.raises(ConfigurationError, match="cannot be split"):
            split_by_family(examples)
        return
    first, second = split_by_family(examples)
    assert first
    assert second
    assert sorted(int(one.claim) for one in first + second) == list(range(len(families)))
    assert not {one.family for one in first if one.family} & {one.family for one in second if one.family}
    assert split_by_family(examples) == (first, second)


def result(title, content="text"):
    item = SearchableItem(item_id=f"id of {title}", content=content, metadata={"title": title} if title else {})
    return RetrievalResult(item=item, score=1.0)


def judged(gold, *titles):
    results = [result(title) for title in titles]
    example = dspy.Example(gold_titles=gold)
    by_results = dspy.Prediction(results=results, retrieved_docs=[as_document(one) for one in results])
    by_documents = dspy.Prediction(retrieved_docs=[as_document(one) for one in results])
    assert discrete_retrieval_eval(example, by_results) == discrete_retrieval_eval(example, by_documents)
    return discrete_retrieval_eval(example, by_results), missing_titles(example, by_results)


def test_all_gold_titles_have_to_be_there_in_whatever_spelling():
    assert judged(["Heat (1995 film)", "Martin O'Neill"], "Other", "martin_o\u2019neill", "HEAT (1995 Film)") == (True, [])
    assert judged(["A", "B", "C", "C"], "C", "A") == (False, ["B"])
    assert judged(["A"]) == (False, ["A"])
    assert judged(["Hiding Place"], "The Hiding Place")[0] is False


def test_gold_as_hover_and_dspy_have_it_is_understood():
    prediction = dspy.Prediction(retrieved_docs=["Eatza Pizza | x", "Your Pie | y"])
    for facts in (
        [["Eatza Pizza", 0], ["Your Pie", 0], ["Your Pie", 1]],
        [{"key": "Eatza Pizza", "value": 0}, {"key": "Your Pie"}],
        {"key": ["Eatza Pizza", "Your Pie"], "value": [0, 1]},
    ):
        assert discrete_retrieval_eval(dspy.Example(supporting_facts=facts), prediction, trace=[]) is True
        assert discrete_retrieval_eval({"supporting_facts": facts}, dict(prediction)) is True
    with pytest.raises(GoldError, match="neither gold_titles nor supporting_facts"):
        discrete_retrieval_eval(dspy.Example(claim="x"), prediction)
