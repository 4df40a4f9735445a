"""BeirLoader: corpus, queries and graded judgements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.datasets import BeirLoader

from .conftest import Write

CORPUS = [
    {"_id": "d1", "title": "T", "text": "one", "metadata": {"url": "u"}, "year": 1},
    {"_id": "d2", "title": "", "text": "two"},
]
QUERIES = [
    {"_id": "q3", "text": "third?", "metadata": {"hops": 2, "family": "f"}},
    {"_id": "q2", "text": "unjudged"},
    {"_id": "q1", "text": "first?", "lang": "en"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq3\td2\t1\nq1\td2\t0\n"


@pytest.fixture(params=["", ".gz"])
def folder(request: pytest.FixtureRequest, write: Write, tmp_path: Path) -> Path:
    write(f"corpus.jsonl{request.param}", CORPUS)
    write(f"queries.jsonl{request.param}", QUERIES)
    write(f"qrels/test.tsv{request.param}", QRELS)
    return tmp_path


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(SourceError) as caught:
        call()
    return str(caught.value)


def test_items_have_title_and_all_metadata_laid_flat(folder: Path) -> None:
    assert BeirLoader(folder).load() == [
        SearchableItem(item_id="d1", content="one", metadata={"title": "T", "url": "u", "year": 1}),
        SearchableItem(item_id="d2", content="two"),
    ]


def test_queries_are_those_judged_in_the_split_in_file_order_and_gold_lines_up(folder: Path) -> None:
    loader = BeirLoader(folder)
    assert loader.queries() == [
        Query(query_id="q3", text="third?", family="f", metadata={"hops": 2, "family": "f"}),
        Query(query_id="q1", text="first?", metadata={"lang": "en"}),
    ]
    assert loader.gold() == [
        Gold(query_id="q3", relevance={"d2": 1}),
        Gold(query_id="q1", relevance={"d1": 2, "d2": 0}),
    ]


def test_a_header_is_optional_and_blank_lines_and_windows_line_ends_are_fine(write: Write, tmp_path: Path) -> None:
    write("queries.jsonl", QUERIES)
    write("qrels/dev.tsv", "q1\td1\t1\r\n\r\nq1\td1\t1\r\nq1\td2\t-1\r\n")
    assert BeirLoader(tmp_path, split="dev").gold() == [Gold(query_id="q1", relevance={"d1": 1, "d2": -1})]


def test_a_corpus_file_alone_has_items_but_no_queries(write: Write) -> None:
    path = write("corpus.jsonl", CORPUS)
    loader = BeirLoader(str(path))
    assert [item.item_id for item in loader.load()] == ["d1", "d2"]
    for call in (loader.queries, loader.gold):
        message = error_of(call)
        assert message.startswith(f"{path}: this is only a corpus file")
        assert "pass the folder" in message


def test_a_malformed_judgement_is_an_error_with_its_line(write: Write, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for line, expected in [
        ("q1 d1 1", "line 3: 1 columns in 'q1 d1 1', where the lines before have 3"),
        ("q1\t0\td1\t1", "line 3: 4 columns in 'q1 0 d1 1', where the lines before have 3"),
        ("q1\t\t1", "line 3: an id is empty"),
        ("q1\td1\tx", "line 3: the grade is 'x'; it must be an integer"),
        ("q1\td1\t1.5", "line 3: the grade is '1.5'; it must be an integer"),
        ("q1\td1\t1_0", "line 3: the grade is '1_0'; it must be an integer"),
        ("q1\td2\t1", 'line 3: item "d2" has grade 1 here and 2 above for query "q1"; keep one'),
    ]:
        with subtests.test(line=line, expected=expected):
            write("queries.jsonl", QUERIES)
            path = write("qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td2\t2\n{line}\n")
            assert f"{path}, {expected}" in error_of(BeirLoader(tmp_path).gold)


def test_an_empty_file_of_judgements_is_an_error(write: Write, tmp_path: Path) -> None:
    write("queries.jsonl", QUERIES)
    write("qrels/test.tsv", "query-id\tcorpus-id\tscore\n")
    assert "it holds no judgements" in error_of(BeirLoader(tmp_path).queries)


def test_two_queries_with_one_id_are_an_error(write: Write, tmp_path: Path) -> None:
    path = write("queries.jsonl", [*QUERIES, QUERIES[0]])
    write("qrels/test.tsv", QRELS)
    assert f'{path}, line 4: the id "q3" is taken by {path}, line 1' in error_of(BeirLoader(tmp_path).queries)


def test_a_missing_split_lists_those_that_are_there(write: Write, tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(f"qrels/{split}.tsv", QRELS)
    message = error_of(BeirLoader(tmp_path, split="tset").gold)
    assert "no judgements for split \"tset\"; did you mean 'test'? (valid: test, train)" in message


def test_a_split_is_a_name_and_no_path(subtests: pytest.Subtests) -> None:
    for split in ["../test", "a/b", "..", "", "a\\b"]:
        with subtests.test(split=split), pytest.raises(ConfigurationError, match="split"):
            BeirLoader("x", split=split)


def test_missing_files_and_folders_are_named(write: Write, tmp_path: Path) -> None:
    write("qrels/test.tsv", QRELS)
    assert f'{tmp_path}: no queries.jsonl or queries.jsonl.gz in this folder (found: "qrels")' == error_of(
        BeirLoader(tmp_path).queries
    )
    assert "no corpus.jsonl or corpus.jsonl.gz" in error_of(BeirLoader(tmp_path).load)
    assert "no such file" in error_of(BeirLoader(tmp_path / "nowhere").load)
    assert "no such folder" in error_of(BeirLoader(tmp_path / "nowhere").queries)


def test_a_malformed_row_is_an_error_with_its_line(write: Write, subtests: pytest.Subtests) -> None:
    for row, expected in [
        ({"id": "a", "text": "c"}, 'line 1: no "_id" field (found: "id", "text"); BEIR\'s rows have "_id" and "text"'),
        ({"_id": "a", "content": "c"}, 'no "text" field'),
        ({"_id": "", "text": "c"}, '"_id" is empty'),
        ({"_id": 1.5, "text": "c"}, '"_id" is a number (1.5)'),
        ({"_id": "a", "text": None}, '"text" is null; expected text'),
        ({"_id": "a", "text": "c", "url": 1, "metadata": {"url": 2}}, '"url" is in the row and, with another value'),
    ]:
        with subtests.test(row=row, expected=expected):
            path = write("corpus.jsonl", [row])
            message = error_of(BeirLoader(path).load)
            assert message.startswith(f"{path}, line 1: ")
            assert expected in message


def test_numbers_as_ids_become_text(write: Write) -> None:
    assert BeirLoader(write("corpus.jsonl", [{"_id": 7, "text": "c"}])).load()[0].item_id == "7"
