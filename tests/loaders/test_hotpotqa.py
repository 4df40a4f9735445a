"""HotpotqaLoader: HotpotQA's own release files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders.datasets import HotpotqaLoader
from nlp_retrieval.text.sentences import item_sentence_spans

from .conftest import Write


def question(query_id: str, **other: Any) -> dict[str, Any]:
    return {
        "_id": query_id,
        "question": f"question {query_id}?",
        "answer": "yes",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Kubrick", 0], ["Ballard", 1], ["Kubrick", 1]],
        "context": [["Kubrick", ["He filmed.", " Much.", "Very much."]], ["Ballard", ["He wrote. ", "Novels."]]],
    } | other


def loader_of(write: Write, *questions: object) -> HotpotqaLoader:
    return HotpotqaLoader(write("hotpot.json.gz", json.dumps(questions)))


def error_of(loader: HotpotqaLoader, method: str = "gold") -> str:
    with pytest.raises(SourceError) as caught:
        getattr(loader, method)()
    return str(caught.value)


def test_contexts_become_one_item_per_title(write: Write) -> None:
    loader = loader_of(write, question("a"), question("b", context=[["Ballard", ["He wrote. ", "Novels."]], ["Third", []]]))
    assert loader.load() == [
        SearchableItem(item_id="Kubrick", content="He filmed. Much. Very much.", metadata={"title": "Kubrick"}),
        SearchableItem(item_id="Ballard", content="He wrote. Novels.", metadata={"title": "Ballard"}),
        SearchableItem(item_id="Third", content="", metadata={"title": "Third"}),
    ]


def test_of_two_texts_with_one_title_the_first_is_kept_and_the_others_are_counted(write: Write) -> None:
    loader = loader_of(write, question("a"), *(question(f"b{n}", context=[["Kubrick", ["Other."]]]) for n in range(3)))
    with pytest.warns(RetrievalWarning, match=r'3 contexts have a title seen before.*first "Kubrick" \(.*entry 2\)'):
        items = loader.load()
    assert [item.content for item in items if item.item_id == "Kubrick"] == ["He filmed. Much. Very much."]


def test_questions_carry_their_metadata_and_gold_is_each_title_once(write: Write) -> None:
    loader = loader_of(write, question("a"))
    assert loader.queries() == [
        Query(query_id="a", text="question a?", metadata={"answer": "yes", "type": "bridge", "level": "hard"})
    ]
    assert loader.gold() == [Gold(query_id="a", relevance={"Kubrick": 1, "Ballard": 1})]
    assert set(loader.gold()[0].relevance) <= {item.item_id for item in loader.stream()}


def test_a_question_without_an_id_has_its_number_and_columns_are_read_as_pairs(write: Write) -> None:
    plain = question("x")
    del plain["_id"]
    columns = {
        "context": {"title": ["Kubrick", "Ballard"], "sentences": [["He filmed.", " Much."], ["He wrote.", " Novels."]]},
        "supporting_facts": {"title": ["Ballard", "Ballard"], "sent_id": [0, 1]},
    }
    loader = loader_of(write, plain, plain | columns | {"id": "hub"}, plain)
    assert [query.query_id for query in loader.queries()] == ["0", "hub", "2"]
    assert [list(gold.relevance) for gold in loader.gold()] == [["Kubrick", "Ballard"], ["Ballard"], ["Kubrick", "Ballard"]]
    wrong = loader_of(write, plain | {"context": {"title": ["Kubrick"], "sentences": []}})
    assert '"context" is not a list of [title, [sentences]] pairs' in error_of(wrong)


def test_a_supporting_fact_may_stand_in_the_context_of_another_question(write: Write) -> None:
    loader = loader_of(write, question("a", context=[]), question("b"))
    assert [gold.query_id for gold in loader.gold()] == ["a", "b"]


def test_a_supporting_fact_in_no_context_is_an_error_that_names_it(write: Write) -> None:
    message = error_of(loader_of(write, question("a"), question("b", supporting_facts=[["Nobody", 0], ["None", 1]])))
    assert 'entry 2: the supporting fact "Nobody" is in no context of the file, the first of 2 such titles' in message
    assert "use the distractor release" in message


def test_the_test_release_has_questions_but_no_gold_and_says_so(write: Write) -> None:
    row = question("a")
    for field in ("answer", "type", "level", "supporting_facts"):
        del row[field]
    loader = loader_of(write, row)
    assert loader.queries() == [Query(query_id="a", text="question a?")]
    assert len(loader.load()) == 2
    assert "test release withholds the supporting facts" in error_of(loader)


def test_a_malformed_question_is_an_error_with_its_place(write: Write, subtests: pytest.Subtests) -> None:
    for row, expected in [
        ({"answer": "q"}, 'no "question" field (found: "answer"); is this a release file of HotpotQA?'),
        (question("first"), 'the id "first" is taken by'),
        (question("a", question=7), '"question" is a number (7); expected text'),
    ]:
        with subtests.test(row=row, expected=expected):
            message = error_of(loader_of(write, question("first"), row), "queries")
            assert "entry 2: " in message
            assert expected in message


def test_a_malformed_context_is_an_error(write: Write, subtests: pytest.Subtests) -> None:
    for method in ["load", "gold"]:
        for context in [None, "text", {"title": ["T"]}, [["T"]], [["T", "s"]], [["T", [1]]], [[" ", ["s"]]]]:
            with subtests.test(method=method, context=context):
                message = error_of(loader_of(write, question("a", context=context)), method)
                assert 'entry 1: "context" is not a list of [title, [sentences]] pairs' in message


def test_an_empty_file_of_questions_is_an_error(write: Write) -> None:
    assert "it holds no questions" in error_of(loader_of(write))


# sentence facts


def facts_loader(write: Write, *questions: object) -> HotpotqaLoader:
    return HotpotqaLoader(write("hotpot.json.gz", json.dumps(questions)), sentence_facts=True)


def test_items_tell_their_sentences_and_questions_their_facts(write: Write) -> None:
    context = [["Kubrick", [" He filmed.", "", " Much.", "Very much. "]], ["Ballard", ["He wrote. ", "Novels."]], ["None", []]]
    facts = [["Kubrick", 3], ["Ballard", 1], ["Kubrick", 3]]
    loader = facts_loader(write, question("a", context=context, supporting_facts=facts))
    items = {item.item_id: item for item in loader.load()}
    assert items["Kubrick"].content == "He filmed. Much. Very much."
    parts = {
        name: [item.content[begin:end].strip() for begin, end in item_sentence_spans(item)] for name, item in items.items()
    }
    assert parts == {"Kubrick": ["He filmed.", "", "Much.", "Very much."], "Ballard": ["He wrote.", "Novels."], "None": []}
    (query,) = loader.queries()
    assert query.metadata["supporting_facts"] == [["Kubrick", 3], ["Ballard", 1]]
    assert loader.gold() == [Gold(query_id="a", relevance={"Kubrick": 1, "Ballard": 1})]


def test_a_fact_that_names_no_sentence_is_an_error_that_names_the_question(write: Write, subtests: pytest.Subtests) -> None:
    for fact, expected in [
        (["Kubrick", 3], 'names sentence 3 of "Kubrick", which has 3 sentences (numbers begin at 0)'),
        (["Kubrick", -1], 'names sentence -1 of "Kubrick"'),
        (["Nobody", 0], 'names sentence 0 of "Nobody", which is in none of its contexts'),
        (["Kubrick", "0"], "is not a title and the number of a sentence (its number is text"),
        (["Kubrick", True], "is not a title and the number of a sentence"),
        (["Kubrick"], "is not a title and the number of a sentence"),
        (["Kubrick", 0, 0], "is not a title and the number of a sentence"),
        (["Kubrick", 1.0], "is not a title and the number of a sentence"),
    ]:
        with subtests.test(fact=fact, expected=expected):
            rows = [question("first"), question("second", supporting_facts=[["Ballard", 0], fact])]
            message = error_of(facts_loader(write, *rows), "queries")
            assert 'entry 2: question "second": ' in message
            assert expected in message
            assert "sentence_facts" in message
            assert len(loader_of(write, *rows).queries()) == 2


def test_with_sentence_facts_the_test_release_is_refused_by_its_reason(write: Write) -> None:
    row = question("a")
    del row["supporting_facts"]
    assert "test release withholds the supporting facts" in error_of(facts_loader(write, row), "queries")
