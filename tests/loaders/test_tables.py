"""CSV, Parquet and Hugging Face data sets: files as their own libraries write them, and files that are wrong."""

from __future__ import annotations

import csv
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlp_retrieval import CsvLoader, HuggingFaceLoader, ParquetLoader, SearchableItem
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.errors import SourceError

from .conftest import Write

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def items_of(rows: list[tuple[str, str]]) -> list[SearchableItem]:
    return [
        SearchableItem(item_id=str(number), content=text, metadata={"note": note}) for number, (text, note) in enumerate(rows)
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TEXT, TEXT), max_size=8),
    st.sampled_from([",", "\t", ";", "|"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_what_the_csv_module_writes_comes_back(
    tmp_path: Path, rows: list[tuple[str, str]], delimiter: str, encoding: str
) -> None:
    with (tmp_path / "a.csv").open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "content", "note"])
        writer.writerows([number, *row] for number, row in enumerate(rows))
    assert CsvLoader(tmp_path / "a.csv").load() == items_of(rows)


def test_columns_may_have_any_name_be_joined_and_hold_numbers(write: Write) -> None:
    path = write("a.csv", ",nr,head,lead,body,year\n0,7,T,One,Two,1999\n1,8,,,Two,\n")
    loader = CsvLoader(path, id_field="nr", title_field="head", content_field=["lead", "body"], number_fields=["year"])
    assert loader.load() == [
        SearchableItem(item_id="7", content="One\nTwo", metadata={"title": "T", "year": 1999}),
        SearchableItem(item_id="8", content="Two", metadata={"year": None}),
    ]


def test_a_file_without_names_and_without_quotes_is_read_as_said(write: Write) -> None:
    path = write("collection.tsv.gz", '0\t"Hello" he said\n1\t"open\n')
    found = CsvLoader(path, columns=["id", "content"]).load()
    assert [(item.item_id, item.content) for item in found] == [("0", '"Hello" he said'), ("1", '"open')]


def test_what_spreadsheets_write_is_read(write: Write) -> None:
    for content in (
        b',,\rid,content\r a ,"fox ""x"""\rb,whale\r',
        b'\xef\xbb\xbfsep=;\r\nid;content;\r\na;"fox ""x""";\r\nb;whale;\r\n;;\r\n',
    ):
        found = CsvLoader(write("a.csv", content)).load()
        assert [(item.item_id, item.content) for item in found] == [("a", 'fox "x"'), ("b", "whale")]
    assert CsvLoader(write("a.csv", b"sep=;\n\nid;content\n")).load() == []


def test_a_csv_that_is_wrong_is_an_error_that_names_line_and_cure(write: Write, subtests: pytest.Subtests) -> None:
    for content, given_settings, said in [
        (b"", {}, "the file is empty"),
        (b"1,some text\n2,other\n", {}, 'line 1: no "id" field .found: "1", "some text".; pass id_field='),
        (b"id,content,content\n", {}, "line 1: a column has no name of its own .*name each once, or pass columns="),
        (b",,\n1,2,3\n4,5,6\n", {}, 'no "id" field .found: "1", "2", "3"'),
        (b",,\n1,2,3\n", {}, "the first row is blank; begin the file with the names of the columns"),
        (b"id;content\n1;a\n", {"delimiter": ","}, 'line 1: no "id" field .found: "id;content"'),
        (b"_id,text\n1,a\n", {}, 'line 1: no "id" field .*pass id_field="_id"'),
        (b"id,text\n1,a\n", {}, 'no "content" field .*pass content_field="text"'),
        (b"id,content,year\n1,a,2\n", {"metadata_fields": ["yaer"]}, 'no "yaer" field .*pass metadata_fields="year"'),
        (b'id,content\n1,"a\nb"\n2,a,b\n', {}, "line 4: 3 cells, where there are 2 columns"),
        (b"id,content\n1,a\n\n2\n", {}, "line 4: 1 cells, where there are 2 columns"),
        (b'id,content\n1,a\n2,"open\n3,b\n', {}, "line 3: not a row of CSV: .*in a file called .tsv"),
        (b"id,content\n1,a\0b\n", {}, "line 2: it holds a zero byte; .*UTF-8"),
        ("id,content\n1,a\n".encode("utf-16"), {}, "UTF-16 text; save it as UTF-8 .iconv"),
        ("id,content\n1,a\n2,é\n".encode("latin-1"), {}, "line 3: not UTF-8 .*iconv"),
        (b"PAR1....", {}, "a Parquet file; ParquetLoader reads it"),
    ]:
        with subtests.test(said), pytest.raises(SourceError, match=f"(?s){said}"):
            CsvLoader(write("a.csv", content), **given_settings).load()  # type: ignore[arg-type]


def test_parquet_is_read_from_folders(tmp_path: Path) -> None:
    rows = [{"doc": n, "body": f"b{n}", "by": {"name": "x"}, "tags": [["a"]], "at": None} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(rows[:2]), tmp_path / "0.parquet")
    pq.write_table(pa.Table.from_pylist(rows[2:]), tmp_path / "1.parquet")
    found = ParquetLoader(tmp_path, id_field="doc", content_field="body").load()
    assert [item.item_id for item in found] == ["0", "1", "2"]
    metadata = {"by": {"name": "x"}, "tags": [["a"]], "at": None}
    assert found[0] == SearchableItem(item_id="0", content="b0", metadata=metadata)
    kept = ParquetLoader(tmp_path, id_field="doc", content_field="body", metadata_fields=["by"]).load()
    assert kept[2].metadata == {"by": {"name": "x"}}


def test_hugging_face_folders_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [{"id": number, "content": f"t{number}", "label": number} for number in range(600)]
    whole = datasets.Dataset.from_list(rows)
    whole.save_to_disk(tmp_path / "saved")
    datasets.DatasetDict({"train": whole, "test": whole.select(range(2))}).save_to_disk(tmp_path / "dict")
    (tmp_path / "files").mkdir()
    whole.to_parquet(tmp_path / "files" / "train.parquet")
    expected = [SearchableItem(item_id=str(n), content=f"t{n}", metadata={"label": n}) for n in range(600)]
    for name in ("saved", "dict", "files"):
        assert HuggingFaceLoader(tmp_path / name).load() == expected
    assert len(HuggingFaceLoader(tmp_path / "dict", split="test").load()) == 2
    with pytest.raises(SourceError, match="did you mean 'test'"):
        HuggingFaceLoader(tmp_path / "dict", split="tset").load()
    datasets.Dataset.from_list(rows[:2], split="train").save_to_disk(tmp_path / "one")
    with pytest.raises(SourceError, match='no split "test"; valid: train'):
        HuggingFaceLoader(tmp_path / "one", split="test").load()
    with pytest.raises(SourceError, match='pass content_field="content"'):
        HuggingFaceLoader(tmp_path / "saved", content_field="contnt").load()


def frames(folder: Path) -> dict[str, BaseLoader]:
    """The same rows with holes, as pandas, Polars, Arrow and ``datasets`` write them."""
    import datasets
    import polars as pl

    nan = float("nan")
    columns = {"id": ["a", "b"], "content": ["x", "y"], "price": [1.5, nan], "deep": [{"k": [nan, 2.0]}, {"k": [nan, nan]}]}
    frame = pd.DataFrame(columns)
    frame["day"] = pd.to_datetime(["2020-01-01", None])
    frame["count"] = pd.array([1, pd.NA], dtype="Int64")
    frame["name"] = pd.array(["n", pd.NA], dtype="string")
    frame.index = ["row 1", "row 2"]
    frame.to_parquet(folder / "pandas.parquet")
    days = {"day": [datetime(2020, 1, 1), None], "count": [1, None], "name": ["n", None]}
    pl.DataFrame(columns | days).write_parquet(folder / "polars.parquet")
    datasets.Dataset.from_pandas(frame).save_to_disk(folder / "saved")
    pq.write_table(pa.table(columns | days), folder / "arrow.parquet")
    return {
        "pandas": ParquetLoader(folder / "pandas.parquet"),
        "polars": ParquetLoader(folder / "polars.parquet"),
        "arrow": ParquetLoader(folder / "arrow.parquet"),
        "datasets": HuggingFaceLoader(folder / "saved"),
    }


def test_nan_and_other_holes_are_null_wherever_they_stand(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for library in ["pandas", "polars", "arrow", "datasets"]:
        with subtests.test(library=library):
            tmp_path = tmp_path_factory.mktemp("case")
            first, second = frames(tmp_path)[library].load()
            assert first.metadata == {
                "price": 1.5, "deep": {"k": [None, 2.0]}, "day": "2020-01-01T00:00:00", "count": 1, "name": "n",
            }  # fmt: skip
            assert second.metadata == {"price": None, "deep": {"k": [None, None]}, "day": None, "count": None, "name": None}


def test_lists_structs_maps_and_whole_decimals_are_metadata(tmp_path: Path) -> None:
    whole = 12345678901234567890
    table = {
        "id": pa.array([1]),
        "content": pa.array(["x"]),
        "list": pa.array([["a", "b"]]),
        "map": pa.array([[("k", float("nan")), ("j", 2.0)]], pa.map_(pa.string(), pa.float64())),
        "numbered": pa.array([[(1, ["x"])]], pa.map_(pa.int64(), pa.list_(pa.string()))),
        "decimal": pa.array([Decimal("1.50")]),
        "whole": pa.array([Decimal(whole)]),
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    (item,) = ParquetLoader(tmp_path / "a.parquet").load()
    assert item.metadata == {
        "list": ["a", "b"],
        "map": {"k": None, "j": 2.0},
        "numbered": {"1": ["x"]},
        "decimal": 1.5,
        "whole": whole,
    }
    twice = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"id": [1], "content": ["x"], "map": twice}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"duplicate keys .*leave it out"):
        ParquetLoader(tmp_path / "b.parquet").load()
    assert ParquetLoader(tmp_path / "b.parquet", metadata_fields=[]).load()[0].metadata == {}


def test_periods_of_pandas_are_refused_in_a_file_where_they_are_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"id": ["a"], "content": ["x"], "on": pd.PeriodIndex(["2020-03"], freq="M")}).to_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(SourceError, match=r'"on" holds periods of pandas.*convert it to text, or leave it out'):
        ParquetLoader(tmp_path / "a.parquet").load()


def test_columns_of_numbers_hold_numbers_or_are_an_error(write: Write) -> None:
    cells = {"7": 7, "1e3": 1000.0, " -2.50 ": -2.5, "NaN": None, "": None}
    table = "id,content,n\n" + "".join(f"{row},a,{cell}\n" for row, cell in enumerate(cells))
    found = CsvLoader(write("a.csv", table), number_fields=["n"]).load()
    assert [item.metadata["n"] for item in found] == list(cells.values())
    with pytest.raises(SourceError, match="line 2: \"n\" is '1_000', which is no number"):
        CsvLoader(write("a.csv", "id,content,n\n1,a,1_000\n"), number_fields=["n"]).load()
