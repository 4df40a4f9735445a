"""JsonlLoader: which field is which."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import JsonlLoader, ParquetLoader

from .conftest import Write


def error_of(loader: JsonlLoader) -> str:
    with pytest.raises(SourceError) as caught:
        loader.load()
    return str(caught.value)


def test_id_text_title_and_all_other_fields_become_items_in_the_order_of_the_file(write: Write) -> None:
    path = write(
        "items.jsonl",
        [
            {"id": "b", "title": "T", "content": "éüß 漢字 🙂", "year": 1999, "tags": ["x", None]},
            {"id": "a", "title": None, "content": ""},
        ],
    )
    assert JsonlLoader(path).load() == [
        SearchableItem(item_id="b", content="éüß 漢字 🙂", metadata={"title": "T", "year": 1999, "tags": ["x", None]}),
        SearchableItem(item_id="a", content=""),
    ]
    path = write("b.jsonl", [{"nr": 1, "body": "b", "lead": "l", "a.b": 1}])
    (joined,) = JsonlLoader(path, id_field="nr", content_field=["lead", "body", "more"]).load()
    assert joined == SearchableItem(item_id="1", content="l\nb", metadata={"a.b": 1})


def test_a_row_that_cannot_be_an_item_is_an_error_with_its_line_and_the_cure(write: Write, subtests: pytest.Subtests) -> None:
    for row, expected in [
        ({"_id": "a", "text": "c"}, 'line 2: no "id" field (found: "_id", "text"); pass id_field="_id"'),
        ({"ID": "a", "text": "c"}, 'pass id_field="ID"'),
        ({"docid": "a", "text": "c"}, 'pass id_field="docid"'),
        ({"id": "a", "contents": "c"}, 'no "content" field (found: "id", "contents"); pass content_field="contents"'),
        ({"id": "a", "body": "c"}, 'pass content_field="body"'),
        ({"x": 1, "y": 2}, "pass id_field= and the name of the field that holds it"),
        ({}, 'no "id" field (found: none)'),
        ({f"field{n}": n for n in range(100)}, "and 88 more"),
        ({"id": "", "content": "c"}, 'line 2: "id" is empty; every record needs an id of its own'),
        ({"id": " \n", "content": "c"}, '"id" is empty'),
        ({"id": None, "content": "c"}, '"id" is null; an id is text or an integer'),
        ({"id": 1.0, "content": "c"}, '"id" is a number (1.0); an id is text or an integer'),
        ({"id": True, "content": "c"}, '"id" is a boolean'),
        ({"id": ["a"], "content": "c"}, '"id" is a list'),
        ({"id": "a", "content": None}, 'line 2: "content" is null; expected text'),
        ({"id": "a", "content": {"text": "c"}}, '"content" is an object; expected text'),
        ({"id": "a", "content": "c", "title": 7}, '"title" is a number (7); expected text'),
        ({"id": "a", "content": "c", "x": json.loads("[" * 400 + "]" * 400)}, "line 2: JSON that is nested too deeply"),
    ]:
        with subtests.test(row=row, expected=expected):
            path = write("items.jsonl", [{"id": "ok", "content": "c"}, row])
            loader = JsonlLoader(path)
            assert expected in (message := error_of(loader))
            assert message.startswith(f"{path}, line 2: ")
            assert next(loader.stream()).item_id == "ok"


def test_an_item_that_was_written_as_json_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for loader in [JsonlLoader, ParquetLoader]:
        with subtests.test(loader=loader):
            tmp_path = tmp_path_factory.mktemp("case")
            items = [SearchableItem(item_id="a", content="It hunts.", metadata={"title": "Fox", "year": 2021})]
            lines = [item.model_dump_json() for item in items]
            (tmp_path / "items").write_text("\n".join(lines))
            if loader is ParquetLoader:
                pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines]), tmp_path / "items")
            assert loader(tmp_path / "items").load() == items
