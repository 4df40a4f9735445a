"""Queries and gold from files of any form, and from ir_datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_datasets
import pandas
import pytest

from nlp_retrieval import IrDatasetsLoader, SearchableItem, TopicsLoader
from nlp_retrieval.core.files.frames import queries_of
from nlp_retrieval.errors import QueryError, RetrievalWarning, SourceError
from nlp_retrieval.loaders.judgements import read_judgements

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


def test_queries_of_every_form_are_the_same(write: Write, subtests: pytest.Subtests) -> None:
    for name, content in [
        ("topics.txt", CLASSIC),
        ("topics.xml", XML),
        ("topics.gz", XML),
        ("q.csv", "id,text\n301,International Organized Crime\n302,Polio\n"),
        ("q.tsv", "301\tInternational Organized Crime\n302\tPolio\n"),
        ("q.jsonl", '{"id": 301, "text": "International Organized Crime"}\n{"id": 302, "text": "Polio"}\n'),
        ("q.csv", "Query ID;Query-Text\n301;International Organized Crime\n302;Polio\n"),
    ]:
        with subtests.test(name=name, content=content):
            loader = TopicsLoader(write(name, content), write("qrels.txt", QRELS))
            found = [(query.query_id, query.text) for query in loader.queries()]
            assert found == [("301", "International Organized Crime"), ("302", "Polio")]
            assert {gold.query_id: gold.relevance for gold in loader.gold()} == GRADES


def test_a_topic_beside_an_id_is_no_id(write: Write) -> None:
    path = write("q.csv", "question_id,question,topic\n7,who eats krill,whales\n8,who hunts,whales\n")
    assert [(query.query_id, query.text) for query in TopicsLoader(path).queries()] == [
        ("7", "who eats krill"),
        ("8", "who hunts"),
    ]
    cure = r'line 3: the id "whales" in "topic" is taken by .*line 2; .*pass id_field= \(found: "question_id"'
    with pytest.raises(SourceError, match=cure):
        TopicsLoader(path, id_field="topic").queries()
    with pytest.raises(QueryError, match='rename "question_id" to "qid"'):
        queries_of(pandas.read_csv(path))


def test_a_topic_has_all_its_fields(write: Write) -> None:
    qrels = write("qrels.txt", QRELS)
    first = TopicsLoader(write("a.txt", CLASSIC), qrels).queries()[0]
    assert first.metadata == {"desc": "Identify organizations that participate.", "narr": "All of them."}
    joined = TopicsLoader(write("a.xml", XML), qrels, text_field=["title", "desc"]).queries()[0]
    assert joined.text == "International Organized Crime\nA & B"
    assert joined.metadata == {"type": "faceted"}


def test_judgements_of_every_form_are_the_same(write: Write, subtests: pytest.Subtests) -> None:
    for name, content in [
        ("qrels.txt", QRELS),
        ("qrels.robust", "# version 2\n" + QRELS),
        ("a.tsv", "query-id\tcorpus-id\tscore\n301\td1\t2\n301\td2\t0\n302\td3\t1\n"),
        ("b.tsv", QRELS.replace(" ", "\t")),
        ("c.csv", "301,d1,2\n301,d2,0\n302,d3,1\n"),
        ("names.csv", "Query ID,Doc-ID,Relevance\n301,d1,2\n301,d2,0\n302,d3,1\n"),
        ("d.csv", "#,relevance,docno,qid\n1,2,d1,301\n2,0,d2,301\n3,1,d3,302\n"),
        (
            "e.jsonl",
            '{"query_id": 301, "doc_id": "d1", "relevance": 2}\n{"query_id": 301, "doc_id": "d2", "relevance": 0}\n'
            '{"query_id": "302", "doc_id": "d3", "relevance": 1}\n',
        ),
    ]:
        with subtests.test(name=name, content=content):
            assert read_judgements(write(name, content)) == GRADES


def test_what_is_wrong_is_an_error_that_says_where(write: Write, subtests: pytest.Subtests) -> None:
    for queries, qrels, said in [
        (CLASSIC, "301 0 d1 1 x\n", "line 1: 5 columns in '301 0 d1 1 x', where 3 or 4 are expected: query, item and grade"),
        (CLASSIC, "301 0 d1 yes\n", "line 1: the grade is 'yes'"),
        (CLASSIC, "301 0 d1 1\n301 0 d1 2\n", "line 2: .*keep one"),
        (CLASSIC, "301 7 d1 1\n301 7 d1 2\n", "line 2: .*keep one"),
        (CLASSIC, "9 0 d1 1\n", 'no judged query ."9". is among the 2 of .*topics.txt ."301", "302".; are both'),
        (CLASSIC, "301 0 d1 0\n", "no judged query has an item with a grade above 0"),
        (CLASSIC.replace("302", "301"), QRELS, 'line 10: the id "301" in "number" is taken by .*line 1; .*pass id_field='),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + XML[21:], QRELS, "declares XML entities"),
        ("<a></a>", QRELS, "holds no TREC topics"),
        (XML.replace("title", "heading"), QRELS, 'no "title" field .*pass text_field= and the name of the field'),
        (XML.replace("</topic></topics>", ""), QRELS, "line 3: <topic> has no end: the file is cut off; fetch it again"),
        ("301 organised crime\n", QRELS, "holds no TREC topics .*write a tab between id and text"),
    ]:
        with subtests.test(queries=queries, qrels=qrels, said=said), pytest.raises(SourceError, match=said):
            TopicsLoader(write("topics.txt", queries), write("qrels.txt", qrels)).gold()
    with pytest.raises(SourceError, match=r"expected one JSON list .*, found nothing"):
        TopicsLoader(write("cut_off.json", "")).queries()


def read(path: Path, **settings: Any) -> list[tuple[str, str]]:
    """The ids and texts of all queries of a file."""
    return [(query.query_id, query.text) for _, query in TopicsLoader(path, "unused", **settings).read()]


BOTH = [("301", "International Organized Crime"), ("302", "Polio")]


def test_the_forms_of_real_campaigns_are_read_without_a_setting(write: Write, subtests: pytest.Subtests) -> None:
    for name, content in [
        (
            "attributes.txt",
            "<top lang='en'>\n<num>301\n<title>International Organized Crime\n</top>\n<top lang=\"en\" "
            "id=7><num>302<title lang=en>Polio</top>",
        ),
        (
            "wrapper.txt",
            "<topics>\n<top lang='en'><num>301</num><title>International Organized Crime</title></top>\n"
            "<top lang='en'><num>302</num><title>Polio</title></top></topics>",
        ),
        (
            "labels.txt",
            "<top>\n<head> Tipster Topic Description\n<num> Number:  301\n<dom> Domain: Law\n<title> Topic:  "
            "International\n  Organized Crime\n<con> Concept(s):\n1. a\n</top>\n"
            "<top><num> Number: 302 </num><title>Polio</top>",
        ),
        (
            "never-closed.txt",
            "<top>\n<num> Number: 301\n<title> International Organized Crime\n<top>\n<num> 302\n<title> Polio",
        ),
        (
            "query.xml",
            "<?xml version='1.0'?><!DOCTYPE w [ <!ELEMENT topic (query)> <!-- > ] --> ]><w><!-- <topic number='1'> "
            "--><topic number='301' type='faceted'><query>International Organized Crime</query>"
            "<subtopic number='1'>a</subtopic>"
            "<subtopic number='2'>b</subtopic></topic><topic number='302'><query>Polio</query></topic></w>",
        ),
        (
            "clef.txt",
            "<top>\n<num> 301 </num>\n<EN-title> International Organized Crime </EN-title>\n<EN-desc> d </EN-desc>\n"
            "</top>\n<top><num>302</num><EN-title>Polio</EN-title></top>",
        ),
        (
            "doc.txt",
            "<DOC>\n<DOCNO> 301 </DOCNO>\n\nInternational\nOrganized Crime\n</DOC>\n<DOC>\n<DOCNO>302</DOCNO>\nPolio</DOC>",
        ),
        (
            "crlf.txt",
            "\ufeff<top>\r\n<num> Number: 301\r\n<title> International Organized\r\n Crime\r\n</top>\r\n"
            "<top>\r\n<num> 302\r\n<title> Polio\r\n</top>\r\n",
        ),
        ("lines.txt", '{"id": 301, "text": "International Organized Crime"}\n{"id": 302, "text": "Polio"}\n'),
        ("bare.tsv", "301\tInternational Organized Crime\n302\tPolio\n"),
        ("bare.txt", "301\tInternational Organized Crime\r\n302\tPolio\r\n"),
        ("bom.tsv", "\ufeff301\tInternational Organized Crime\t\n\n302\tPolio\t\t\n"),
        ("named.tsv", "query_id\tquery\t\n301\tInternational Organized Crime\t\n302\tPolio\t\n"),
        ("q.jsonl", '{"qid": "301", "query": "International Organized Crime"}\n{"qid": "302", "query": "Polio"}\n'),
        (
            "q.json",
            '[{"question_id": "301", "question": "x", "query": "International Organized Crime"},\n'
            '{"question_id": "302", "question": "y", "query": "Polio"}]',
        ),
    ]:
        with subtests.test(name=name, content=content):
            assert read(write(name, content)) == BOTH


def test_a_table_without_usual_names_says_which_columns_to_name(write: Write) -> None:
    path = write("q.tsv", "\t\t\nNr\tFrage\tx\n301\tInternational Organized Crime\t5\n302\tPolio\t6\n")
    with pytest.raises(SourceError, match=r"line 2: .*pass id_field= and text_field=, or write"):
        read(path)
    assert read(path, id_field="Nr", text_field="Frage") == BOTH


def test_the_whole_text_of_a_title_is_read_whether_its_tags_are_closed_or_not(write: Write, subtests: pytest.Subtests) -> None:
    for title, expected in [
        ("list of <i>kestrel</i>", "list of kestrel"),
        ("<i>kestrel</i>s and kes<b>trels</b>", "kestrels and kestrels"),
        ("owls<br/>kites<p>crows</p>", "owls kites crows"),
        ("Smith &amp; Sons &lt;s&gt; caf&#233; &#x41;", "Smith & Sons <s> café A"),
        ("<person>Ada</person> and <place>Rome</place>", "Ada and Rome"),
        ("Description: a guide", "Description: a guide"),
        ("owls <![CDATA[& <!-- not --> kites]]><!-- gone -->", "owls & <!-- not --> kites"),
    ]:
        with subtests.test(title=title, expected=expected):
            rest = "\n<desc> Description:\n<i>in</i> short\n<narr> Narrative:\nlong\n</top>\n"
            unclosed = f"<top>\n<num> Number: 1\n<title> {title}{rest}<top>\n<num> Number: 2\n<title> other\n<desc>d\n</top>\n"
            closed = f"<top><num>1</num><title>{title}</title></top><top><num>2</num><title>other</title></top>"
            for name, content in (("a.txt", unclosed), ("b.txt", closed)):
                assert read(write(name, content)) == [("1", expected), ("2", "other")]
            assert read(write("a.txt", unclosed), text_field=["desc", "narr"])[0] == ("1", "in short\nlong")


def test_quotation_marks_quote_in_csv_and_are_text_in_tsv(write: Write) -> None:
    assert read(write("a.csv", 'id,text\n1,"a, ""b"""\n2,"c\nd"\n')) == [("1", 'a, "b"'), ("2", "c\nd")]
    with pytest.raises(SourceError, match="separate the cells by tabs in a file"):
        read(write("c.csv", 'id,text\n1,"Heroes" song\n'))
    assert read(write("c.tsv", 'id\ttext\n1\t"Heroes" song\n')) == [("1", '"Heroes" song')]


def test_of_judgements_by_subtopic_the_highest_grade_counts_and_that_is_said(write: Write, subtests: pytest.Subtests) -> None:
    for name, content in [
        ("d.txt", "7 1 d1 0\n7 2 d1 2\n7 3 d1 1\n7 1 d2 0\n"),
        ("e.txt", "7 1 d1 2\n7 2 d1 0\n7 2 d2 0\n7 1 d1 2\n"),
        ("d.tsv", "7\t1\td1\t0\n7\t2\td1\t2\n7\t0\td2\t0\n"),
        ("d.csv", "query_id,subtopic,doc_id,grade\n7,1,d1,2\n7,2,d1,0\n7,2,d2,0\n"),
        (
            "d.jsonl",
            [
                {"query_id": 7, "doc_id": "d1", "grade": 2.0, "subtopic_id": "a"},
                {"query_id": 7, "doc_id": "d1", "grade": 0, "subtopic_id": "b"},
                {"query_id": 7, "doc_id": "d2", "grade": 0, "subtopic_id": "b"},
            ],
        ),
    ]:
        with (
            subtests.test(name=name, content=content),
            pytest.warns(RetrievalWarning, match=r'1 pairs of query and item have several grades.*query "7", item "d1"'),
        ):
            assert read_judgements(write(name, content)) == {"7": {"d1": 2, "d2": 0}}


def test_a_number_with_other_zeros_is_matched_and_has_the_id_of_the_judgements(write: Write) -> None:
    topics = write("a.txt", CLASSIC.replace("301", "051"))
    loader = TopicsLoader(topics, write("qrels.txt", "51 0 d1 1\n302 0 d1 1\n"))
    with pytest.warns(RetrievalWarning, match='1 numbers have other zeros .*first: "051", there "51"'):
        assert [query.query_id for query in loader.queries()] == ["51", "302"]


def test_judged_queries_that_are_not_asked_are_counted_and_named(write: Write) -> None:
    judged = "".join(f"{number} 0 d1 1\n" for number in range(302, 308))
    loader = TopicsLoader(write("a.txt", CLASSIC), write("qrels.txt", judged))
    said = r'5 of its 6 judged queries are not in .* \(first "303", "304", "305"\); they are left out'
    with pytest.warns(RetrievalWarning, match=said):
        assert [query.query_id for query in loader.queries()] == ["302"]
    hopeless = TopicsLoader(write("a.txt", CLASSIC), write("qrels.txt", "301 0 d1 0\n302 0 d1 1\n"))
    with pytest.warns(RetrievalWarning, match="1 of 2 judged queries have no item with a grade above 0; they count and"):
        assert len(hopeless.gold()) == 2


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
    texts = {"d1": "Köln am Rhein", "d2": "東京"}
    assert loader.load() == [SearchableItem(item_id=name, content=text) for name, text in texts.items()]
    assert [(query.query_id, query.text) for query in loader.queries()] == [("q1", "Rhein?")]
    assert [gold.relevance for gold in loader.gold()] == [{"d1": 1}]


def test_a_name_that_ir_datasets_does_not_know_is_an_error_with_the_nearest() -> None:
    with pytest.raises(SourceError, match=r"did you mean .*beir/scifact"):
        IrDatasetsLoader("beir/scifcat/test").load()
