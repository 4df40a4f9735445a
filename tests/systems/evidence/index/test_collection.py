"""A project's passages as a collection, and judged claims as queries and gold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nlp_retrieval import BeirLoader
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.source_files import export_collection
from systems.evidence.index.sources import LAKE, LAKE_TEXT, TOWN, TOWN_TEXT, lexical, two_sources

LONG = "https://long.example/"
LONG_TEXT = " ".join(f"Sentence number{number} speaks of the {number}th lake in the valley." for number in range(40))


def judged_in(folder: Path, *rows: object) -> Path:
    path = folder / "judged.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_passage_is_an_item_with_what_is_known_of_its_source(tmp_path):
    with two_sources(tmp_path / "project") as index:
        index.add_document(LAKE_TEXT, "https://mirror.example/lake", "Mirror", "A")
        index.add_document("Another history.", TOWN, "Towns", "D", "2027-01-01")
        index.add_document("Deleted.", "https://gone.example/")
        index.delete("https://gone.example/")
        done = export_collection(index, tmp_path / "out")
        wanted = {(one.content, one.title) for key in {s.key for s in index.sources()} for one in index.passages(key)}
    items = list(BeirLoader(tmp_path / "out").stream())
    assert {(item.content, item.metadata["title"]) for item in items} == wanted
    assert (*done, len(items)) == (len(items), 0, len(wanted))
    lake = next(item for item in items if "freezes" in item.content)
    assert lake.metadata == {"title": "Lakes", "url": LAKE, "quality": "A", "fetch_date": "2026-01-19"}


def test_a_quote_makes_the_passages_that_hold_it_gold(tmp_path):
    with lexical(tmp_path / "project") as index:
        index.add_document(LONG_TEXT, LONG)
        passages = index.passages(index.sources()[0].key)
        begin = passages[2].start + 70
        over = " ".join(LONG_TEXT[passages[0].end - 90 : passages[0].end + 90].split()[1:-1])
        rows = [
            {"claim": "one place", "url": LONG, "quote": "\n\t ".join(LONG_TEXT[begin:].split()[1:8])},
            {"claim": "across an edge", "url": LONG, "quote": over},
            {"claim": "all of it", "url": "http://long.example/#part"},
            {"claim": "one place", "url": LONG, "quote": LONG_TEXT[:30]},
        ]
        done = export_collection(index, tmp_path / "out", judged_in(tmp_path, *rows))
    loader = BeirLoader(tmp_path / "out")
    key = passages[0].key
    gold = {query.text: set(one.relevance) for query, one in zip(loader.queries(), loader.gold(), strict=True)}
    assert done[1] == 3
    assert gold["one place"] == {f"{key}::2", f"{key}::0"}
    assert gold["across an edge"] == {f"{key}::0", f"{key}::1"}
    assert gold["all of it"] == {f"{key}::{number}" for number in range(len(passages))}


WRONG = [
    ({"claim": "x"}, '"url"'),
    ({"claim": " ", "url": LAKE}, '"claim" is empty'),
    ({"claim": "x", "url": "nowhere"}, "no text is stored under"),
    ({"claim": "x", "url": "https://other.example/"}, "no text is stored under"),
    ({"claim": "x", "url": LAKE, "quote": TOWN_TEXT[:20]}, "does not have this quote"),
    ([1], "expected a JSON object"),
]


def test_a_line_that_cannot_be_used_is_named_and_nothing_is_written(tmp_path):
    good = {"claim": "It freezes.", "url": LAKE}
    with two_sources(tmp_path / "project") as index:
        for row, message in WRONG:
            with pytest.raises(SourceError, match=r"judged\.jsonl, line 2") as caught:
                export_collection(index, tmp_path / "out", judged_in(tmp_path, good, row))
            assert message in str(caught.value)
    assert not (tmp_path / "out").exists()
