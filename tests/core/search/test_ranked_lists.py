"""What a search returns is a list as before, and a table besides."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pytest

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.core import RankedLists
from nlp_retrieval.core.tables import DataTable, RankedList

ITEMS = [
    SearchableItem(item_id="a", content="red fox", metadata={"title": "Fox", "year": 2001, "tags": ["x"], "odd": 1}),
    SearchableItem(item_id="b", content="red fox and red panda", metadata={"year": 2002, "odd": "one", "large": 2**70}),
    SearchableItem(item_id="c", content="blue whale", metadata={"nested": {"k": [1]}}),
]


@pytest.fixture
def found(tmp_path) -> RankedLists:
    searcher = Searcher({"words": "bm25"})
    searcher.index(ITEMS, tmp_path / "index")
    return searcher.search(["red fox", "whale", "red fox"])


class Seen(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert all("color" not in (value or "") and "background" not in (value or "") for _, value in attrs), "it has none"

    def handle_data(self, data):
        self.text += data


def rows_by_hand(found: RankedLists) -> list[dict[str, object]]:
    return [
        {"qid": str(number), "docno": hit.item.item_id, "rank": rank, "score": hit.score}
        | {"query": one.query, "title": hit.item.title, "content": hit.item.content}
        | hit.signals
        | {"metadata.year": hit.item.metadata.get("year"), "metadata.tags": hit.item.metadata.get("tags")}
        for number, one in enumerate(found)
        for rank, hit in enumerate(one, start=1)
    ]


def test_lists_are_shown_by_their_numbers(found):
    assert repr(found) == "<3 queries: 2, 1, 2 results>"
    assert (repr(found[1]), repr(RankedList([], "snow", "0"))) == (
        "<1 results for 'whale': c (0.551)>",
        "<0 results for 'snow'>",
    )


def test_tables_have_the_columns_of_a_run(found):
    expected = [{key: row[key] for key in ("qid", "docno", "rank", "score")} for row in rows_by_hand(found)]
    assert found.to_arrow().to_pylist() == expected
    assert found.to_polars().to_dicts() == expected
    assert found.to_pandas().to_dict("records") == expected
    assert found.to_dict() == {
        query_id: {row["docno"]: row["score"] for row in expected if row["qid"] == query_id} for query_id in ("0", "1", "2")
    }


def test_tables_with_details_hold_texts_signals_and_metadata_too(found):
    expected = rows_by_hand(found)
    named = list(expected[0])
    assert found.to_arrow(details=True).select(named).to_pylist() == expected
    frame = found.to_pandas(details=True)
    assert frame["words.rank"].tolist() == [1, 2, 1, 1, 2]
    odd = found.to_arrow(details=True).select(["metadata.odd", "metadata.large"]).to_pylist()
    assert odd[:3] == [
        {"metadata.odd": "1", "metadata.large": None},
        {"metadata.odd": "one", "metadata.large": str(2**70)},
        {"metadata.odd": None, "metadata.large": None},
    ]
    assert "metadata.title" not in frame.columns


def test_a_table_of_figures_becomes_other_tables():
    table = DataTable(pa.table({"name": ["a<b", "c"], "value": [0.123456, None]}))
    assert table.to_arrow().to_pylist() == table.to_polars().to_dicts()
    assert table.to_pandas()["name"].tolist() == ["a<b", "c"]
    assert Seen(table._repr_html_()).text == "namevaluea<b0.1235c"
