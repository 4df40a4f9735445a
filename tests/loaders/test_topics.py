"""Queries and gold from files of any form, and from ir_datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ir_datasets
import pytest

from nlp_retrieval import BeirLoader, IrDatasetsLoader, SearchableItem, TopicsLoader
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.evaluation.trec import write_qrels
from nlp_retrieval.loaders.queries.judgements import read_judgements

from .conftest import Write

CLASSIC = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that
participate.
<narr> Narrative: All of them.
</top>
<top><num>302</num><title>Topic: Polio</title></top>
"""
XML = """<?xml version="1.0"?><topics task="x"><topic number="301" type="faceted">
<title>International Organized  Crime</title><desc>A &amp; <b>B</b></desc></topic>
<topic number="302"><title>Polio</title></topic></topics>"""
QRELS = "301 0 d1 2\n301 0 d2 0\n302 0 d3 1\n"
GRADES = {"301": {"d1": 2, "d2": 0}, "302": {"d3": 1}}


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("topics.txt", CLASSIC, {}),
        ("topics.xml", XML, {}),
        ("topics.gz", XML, {}),
        ("q.csv", "id,text\n301,International Organized Crime\n302,Polio\n", {}),
        ("q.tsv", "301\tInternational Organized Crime\n302\tPolio\n", {"columns": ["id", "text"]}),
        ("q.jsonl", '{"id": 301, "text": "International Organized Crime"}\n{"id": 302, "text": "Polio"}\n', {}),
        ("q.data", "id,text\n301,International Organized Crime\n302,Polio\n", {"format": "csv"}),
    ],
)
def test_queries_of_every_form_are_the_same(write: Write, name: str, content: str, settings: dict[str, object]) -> None:
    loader = TopicsLoader(write(name, content), write("qrels.txt", QRELS), **settings)  # type: ignore[arg-type]
    found = [(query.query_id, query.text) for query in loader.queries()]
    assert found == [("301", "International Organized Crime"), ("302", "Polio")]
    assert {gold.query_id: gold.relevance for gold in loader.gold()} == GRADES


def test_a_topic_has_all_its_fields(write: Write) -> None:
    qrels = write("qrels.txt", QRELS)
    first = TopicsLoader(write("a.txt", CLASSIC), qrels).queries()[0]
    assert first.metadata == {"desc": "Identify organizations that participate.", "narr": "All of them."}
    joined = TopicsLoader(write("a.xml", XML), qrels, text_field=["title", "desc"]).queries()[0]
    assert joined.text == "International Organized Crime\nA & B"
    assert joined.metadata == {"type": "faceted"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.txt", QRELS),
        ("qrels.robust", QRELS),
        ("a.tsv", "query-id\tcorpus-id\tscore\n301\td1\t2\n301\td2\t0\n302\td3\t1\n"),
        ("b.tsv", QRELS.replace(" ", "\t")),
        ("c.csv", "301,d1,2\n301,d2,0\n302,d3,1\n"),
        ("d.csv", "relevance,docno,qid\n2,d1,301\n0,d2,301\n1,d3,302\n"),
        (
            "e.jsonl",
            '{"query_id": 301, "doc_id": "d1", "relevance": 2}\n{"query_id": 301, "doc_id": "d2", "relevance": 0}\n'
            '{"query_id": "302", "doc_id": "d3", "relevance": 1}\n',
        ),
    ],
)
def test_judgements_of_every_form_are_the_same(write: Write, name: str, content: str) -> None:
    assert read_judgements(write(name, content)) == GRADES


def test_judgements_that_the_project_wrote_come_back(tmp_path: Path) -> None:
    judged = {"a query": {"Hong Kong": 1, "100%": 2, "%:x": 0}}
    write_qrels(tmp_path / "qrels.txt", judged)
    assert read_judgements(tmp_path / "qrels.txt") == judged


@pytest.mark.parametrize(
    ("queries", "qrels", "said"),
    [
        (CLASSIC, "301 0 d1 1 x\n", "line 1: 5 columns, where a line is 'query 0 item grade'"),
        (CLASSIC, "301 0 d1 yes\n", "line 1: the grade is 'yes'"),
        (CLASSIC, "301 0 d1 1\n301 0 d1 2\n", "line 2: .*keep one"),
        (CLASSIC, "9 0 d1 1\n", 'none of its 1 judged queries ."9". is among the 2 of .*topics.txt ."301", "302".; are both'),
        (CLASSIC, "301 0 d1 0\n", "none of its 1 judged queries has an item with a grade above 0"),
        (CLASSIC.replace("302", "301"), QRELS, 'topics.txt, line 10: the id "301" is taken by .*line 1; ids must be unique'),
        (XML.replace("</topics>", ""), QRELS, "line 3: neither TREC topics nor well-formed XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + XML[21:], QRELS, "declares XML entities"),
        ("<a></a>", QRELS, "holds no TREC topics"),
        (XML.replace("title", "query"), QRELS, 'no "title" field .*pass text_field="query"'),
    ],
)
def test_what_is_wrong_is_an_error_that_says_where(write: Write, queries: str, qrels: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        TopicsLoader(write("topics.txt", queries), write("qrels.txt", qrels)).gold()


def test_a_suffix_of_another_form_names_what_reads_it(write: Write) -> None:
    with pytest.raises(SourceError, match=r"from TREC files, .csv, .tsv and .jsonl, and not from .json; .*hotpotqa"):
        TopicsLoader(write("q.json", "[]"), write("qrels.txt", QRELS)).queries()


def test_a_judged_query_without_a_relevant_item_counts_and_is_said(write: Write) -> None:
    loader = TopicsLoader(write("a.txt", CLASSIC), write("qrels.txt", QRELS.replace("d3 1", "d3 0")))
    with pytest.warns(RetrievalWarning, match="1 of 2 judged queries"):
        assert [query.query_id for query in loader.queries()] == ["301", "302"]


def test_judged_queries_that_are_not_asked_are_counted_and_named_by_every_loader(write: Write, tmp_path: Path) -> None:
    rows = ['{"_id": "301", "text": "a"}', '{"_id": "302", "text": "b"}']
    write("queries.jsonl", "\n".join(rows))
    judged = "".join(f"{number}\t0\td1\t1\n" for number in range(302, 308))
    qrels = write("qrels/test.tsv", judged)
    ir_datasets.registry.register("local-test-part", ir_datasets.create_dataset(
        docs_tsv=str(write("d.tsv", "d1\tx\n")), queries_tsv=str(write("q.tsv", "301\ta\n302\tb\n")), qrels_trec=str(qrels)
    ))  # fmt: skip
    try:
        for loader in (TopicsLoader(write("a.txt", CLASSIC), qrels), BeirLoader(tmp_path), IrDatasetsLoader("local-test-part")):
            said = r'5 of its 6 judged queries are not in .* \(first "303", "304", "305"\); they are left out'
            with pytest.warns(RetrievalWarning, match=said):
                assert [query.query_id for query in loader.queries()] == ["302"]
            with pytest.warns(RetrievalWarning, match=said):
                assert [gold.query_id for gold in loader.gold()] == ["302"]
    finally:
        del ir_datasets.registry._registered["local-test-part"]


@pytest.fixture
def collection(write: Write) -> Iterator[str]:
    """A data set of ir_datasets from files here."""
    made = ir_datasets.create_dataset(
        docs_tsv=str(write("docs.tsv", "d1\tKöln am Rhein\nd2\t東京\n")),
        queries_tsv=str(write("queries.tsv", "q1\tRhein?\nq2\tunjudged\n")),
        qrels_trec=str(write("qrels.txt", "q1 0 d1 1\n")),
    )
    ir_datasets.registry.register("local-test-collection", made)
    yield "local-test-collection"
    del ir_datasets.registry._registered["local-test-collection"]


def test_items_queries_and_gold_of_ir_datasets(collection: str) -> None:
    loader = IrDatasetsLoader(collection)
    assert loader.load() == [
        SearchableItem(item_id="d1", content="Köln am Rhein"),
        SearchableItem(item_id="d2", content="東京"),
    ]
    assert [(query.query_id, query.text) for query in loader.queries()] == [("q1", "Rhein?")]
    assert [gold.relevance for gold in loader.gold()] == [{"d1": 1}]


def test_a_name_that_ir_datasets_does_not_know_is_an_error_with_the_nearest() -> None:
    with pytest.raises(SourceError, match=r"did you mean .*beir/scifact"):
        IrDatasetsLoader("beir/scifcat/test").load()


class Unreachable(ir_datasets.formats.BaseDocs):
    """Documents that cannot be downloaded, as that library says it: a sentence, and the error of every source."""

    def docs_iter(self) -> Iterator[object]:
        raise RuntimeError("All download sources failed", [("http://nowhere.example", ConnectionError("x" * 300))])


def test_a_collection_that_cannot_be_downloaded_is_an_error_in_a_sentence() -> None:
    ir_datasets.registry.register("local-test-unreachable", ir_datasets.Dataset(Unreachable()))
    try:
        with pytest.raises(SourceError, match=r"it gives no docs \(All download sources failed\); .* check the network"):
            IrDatasetsLoader("local-test-unreachable").load()
    finally:
        del ir_datasets.registry._registered["local-test-unreachable"]
