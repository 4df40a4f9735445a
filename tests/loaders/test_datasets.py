"""Loaders of published collections by their own files: BEIR, HoVer and HotpotQA."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.datasets import BeirLoader, HotpotqaLoader, HoverLoader
from nlp_retrieval.text.sentences import item_sentence_spans

from .conftest import Write


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(SourceError) as caught:
        call()
    return str(caught.value)


# BEIR

CORPUS = [
    {"_id": "d1", "title": "T", "text": "one", "metadata": {"url": "u"}, "year": 1},
    {"_id": 2, "title": "", "text": "two"},
]
QUERIES = [
    {"_id": "q3", "text": "third?", "metadata": {"hops": 2, "family": "f"}},
    {"_id": "q2", "text": "unjudged"},
    {"_id": "q1", "text": "first?", "lang": "en"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq3\td2\t1\nq1\td2\t0\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_items_judged_queries_and_gold_of_a_beir_folder(write: Write, tmp_path: Path, suffix: str) -> None:
    for name, content in [("corpus.jsonl", CORPUS), ("queries.jsonl", QUERIES), ("qrels/test.tsv", QRELS)]:
        write(name + suffix, content)
    loader = BeirLoader(tmp_path)
    assert loader.load() == [
        SearchableItem(item_id="d1", content="one", metadata={"title": "T", "url": "u", "year": 1}),
        SearchableItem(item_id="2", content="two"),
    ]
    assert BeirLoader(tmp_path / f"corpus.jsonl{suffix}").load() == loader.load()
    assert loader.queries() == [
        Query(query_id="q3", text="third?", family="f", metadata={"hops": 2, "family": "f"}),
        Query(query_id="q1", text="first?", metadata={"lang": "en"}),
    ]
    assert loader.gold() == [
        Gold(query_id="q3", relevance={"d2": 1}),
        Gold(query_id="q1", relevance={"d1": 2, "d2": 0}),
    ]


def test_a_malformed_judgement_is_an_error_with_its_line(write: Write, tmp_path: Path, subtests: pytest.Subtests) -> None:
    write("queries.jsonl", QUERIES)
    for line, expected in [
        ("q1 d1 1", "line 3: 1 columns in 'q1 d1 1', where 3 are expected"),
        ("q1\t\t1", "line 3: an id is empty"),
        ("q1\td1\t1.5", "line 3: the grade is '1.5'; it must be an integer"),
        ("q1\td2\t1", 'line 3: item "d2" has grade 1 here and 2 above for query "q1"; keep one'),
    ]:
        with subtests.test(line=line, expected=expected):
            path = write("qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td2\t2\n{line}\n")
            assert f"{path}, {expected}" in error_of(BeirLoader(tmp_path).gold)
    write("qrels/test.tsv", "query-id\tcorpus-id\tscore\n")
    assert "it holds no judgements" in error_of(BeirLoader(tmp_path).queries)
    assert "nowhere: there is no such file or folder" in error_of(BeirLoader(tmp_path / "nowhere").gold)


# HoVer


def claim(uid: str, hops: int = 2, label: str = "SUPPORTED", **other: Any) -> dict[str, Any]:
    facts = [["Eatza Pizza", 0], ["Your Pie", 0], ["Eatza Pizza", 3]]
    row = {"uid": uid, "claim": f"claim {uid}", "supporting_facts": facts, "label": label, "num_hops": hops}
    return row | {"hpqa_id": f"h-{uid}"} | other


CLAIMS = [claim("a"), claim("b", 3, "NOT_SUPPORTED"), claim("c", 4), claim("d", 3)]


def test_claims_carry_family_hops_and_label_and_gold_is_each_title_once(write: Write) -> None:
    loader = HoverLoader(write("hover.json.gz", json.dumps(CLAIMS[:1], indent=1)))
    assert loader.queries() == [Query(query_id="a", text="claim a", family="h-a", metadata={"hops": 2, "label": "SUPPORTED"})]
    assert loader.gold() == [Gold(query_id="a", relevance={"Eatza Pizza": 1, "Your Pie": 1}, by="title")]


def test_claims_are_filtered_by_hops_and_gold_lines_up(write: Write, subtests: pytest.Subtests) -> None:
    path = write("hover.json", json.dumps(CLAIMS))
    for filters, kept in [
        ({}, "abcd"),
        ({"hops": [3]}, "bd"),
        ({"hops": (2, 4)}, "ac"),
    ]:
        with subtests.test(filters=filters, kept=kept):
            loader = HoverLoader(path, **filters)
            assert [query.query_id for query in loader.queries()] == list(kept)
            assert [gold.query_id for gold in loader.gold()] == list(kept)
    assert error_of(HoverLoader(path, hops=[5]).gold).startswith(
        f"{path}: no claim fits hops=[5] (None: any); check path and filter"
    )
    for settings in [{"hops": []}, {"hops": [0]}, {"hops": ["2"]}, {"hops": 2}]:
        with subtests.test(settings=settings), pytest.raises(ConfigurationError):
            HoverLoader("hover.json", **settings)


# HotpotQA


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


def hotpot(write: Write, *questions: object, sentence_facts: bool = False) -> HotpotqaLoader:
    return HotpotqaLoader(write("hotpot.json.gz", json.dumps(questions)), sentence_facts)


def test_contexts_become_one_item_per_title_and_questions_have_gold(write: Write) -> None:
    loader = hotpot(write, question("a"), question("b", context=[["Ballard", ["He wrote. ", "Novels."]], ["Third", []]]))
    assert loader.load() == [
        SearchableItem(item_id="Kubrick", content="He filmed. Much. Very much.", metadata={"title": "Kubrick"}),
        SearchableItem(item_id="Ballard", content="He wrote. Novels.", metadata={"title": "Ballard"}),
        SearchableItem(item_id="Third", content="", metadata={"title": "Third"}),
    ]
    assert loader.queries()[0] == Query(
        query_id="a", text="question a?", metadata={"answer": "yes", "type": "bridge", "level": "hard"}
    )
    assert loader.gold()[0] == Gold(query_id="a", relevance={"Kubrick": 1, "Ballard": 1})


def test_a_supporting_fact_in_no_context_is_an_error(write: Write) -> None:
    lost = question("a", supporting_facts=[["Kubrick", 0], ["Lost", 1]])
    assert 'entry 2: the supporting fact "Lost" is in no context of the file' in error_of(
        hotpot(write, question("b"), lost).gold
    )


def test_a_question_without_an_id_has_its_number(write: Write) -> None:
    plain = question("x")
    del plain["_id"]
    assert [query.query_id for query in hotpot(write, plain, plain | {"id": "hub"}, plain).queries()] == ["0", "hub", "2"]


def test_test_releases_have_queries_but_no_gold_and_say_so(write: Write) -> None:
    row = question("a")
    for field in ("answer", "type", "level", "supporting_facts"):
        del row[field]
    for loader in (hotpot(write, row), HoverLoader(write("test.json", json.dumps([{"uid": "a", "claim": "question a?"}])))):
        assert loader.queries() == [Query(query_id="a", text="question a?")]
        assert "the test release withholds them" in error_of(loader.gold)
    assert "the test release withholds them" in error_of(hotpot(write, row, sentence_facts=True).queries)


def test_items_tell_their_sentences_and_questions_their_facts(write: Write) -> None:
    context = [["Kubrick", [" He filmed.", "", " Much.", "Very much. "]], ["Ballard", ["He wrote. ", "Novels."]], ["None", []]]
    facts = [["Kubrick", 3], ["Ballard", "Novels. "], ["Kubrick", 3]]
    loader = hotpot(write, question("a", context=context, supporting_facts=facts), sentence_facts=True)
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
    for fact in [["Kubrick", 3], ["Kubrick", -1], ["Nobody", 0], ["Kubrick", "0"]]:
        with subtests.test(fact=fact):
            rows = [question("first"), question("second", supporting_facts=[["Ballard", 0], fact])]
            message = error_of(hotpot(write, *rows, sentence_facts=True).queries)
            assert 'entry 2: question "second": the supporting fact' in message
            assert "names no sentence of its contexts (numbers begin at 0); correct it" in message
            assert len(hotpot(write, *rows).queries()) == 2
