"""JSON of unknown origin is read as Python's parser reads it, or refused: by the text, never by the depth of a stack."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import values
from nlp_retrieval.core.files.opening import MAX_DEPTH, parse_json, read_json_file


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(value=values, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_what_is_json_is_read_as_it_is(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    value = json.loads(text, parse_int=lambda digits: int(digits) if -(2**63) <= int(digits) < 2**64 else float(digits))
    assert parse_json(f" \n{text}\r\n\t") == value
    assert parse_json(b"\xef\xbb\xbf" + text.encode()) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "NaN is not JSON"),
        ("1e999999", "not valid JSON: number is infinity"),
        ('"\\ud800"', "half of a surrogate pair (column 2)"),
        (b'"\xed\xa0\x80"', "not UTF-8 (byte 0xed at 1)"),
        ('"a\x00b"', "unexpected control character"),
        ("[1]\x00", "unexpected content after document (column 4)"),
        ("", "empty document"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deeply (more than 100 levels)"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_json_or_too_much_of_it_is_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 200


def test_the_limits_themselves_are_kept(tmp_path: Path) -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert depth_of(parse_json(deepest)) == MAX_DEPTH
    assert parse_json('["' + "[{" * 5000 + '"]') == ["[{" * 5000]
    assert parse_json(f"[{2**64 - 1}, {-(2**63)}, {2**70}]") == [2**64 - 1, -(2**63), float(2**70)]
    assert parse_json('"\\ud83d\\ude00"') == "\U0001f600"
    assert parse_json('[{"a": 1}, {"a": 1}]') == [{"a": 1}, {"a": 1}]
    path = tmp_path / "a.json"
    path.write_bytes(b" " * 98 + b"17")
    assert read_json_file(path, max_bytes=100) == 17
    with pytest.raises(ValueError, match="longer than 99 bytes"):
        read_json_file(path, max_bytes=99)
