"""What may be wrong with a file, and the streaming of one big JSON list."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.files import read_json_lines, read_json_list, read_lines

from .conftest import Write

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**63, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def message_of(rows: Iterator[object]) -> str:
    with pytest.raises(SourceError) as caught:
        list(rows)
    return str(caught.value)


@given(
    values=st.lists(JSON_VALUES, max_size=6),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    packed=st.booleans(),
)
def test_a_streamed_list_equals_what_json_load_gives(
    values: list[object], indent: int | None, ascii_only: bool, packed: bool
) -> None:
    raw = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    with tempfile.NamedTemporaryFile() as file:
        file.write(gzip.compress(raw) if packed else raw)
        file.flush()
        assert [value for _, value in read_json_list(file.name)] == json.loads(raw)


def test_a_malformed_list_is_an_error_that_names_the_entry(write: Write, subtests: pytest.Subtests) -> None:
    for text, expected in [
        ("", ": expected one JSON list ('['), found nothing"),
        ('{"a": 1}\n{"a": 2}', ": expected one JSON list ('['), found '{'; make a list of JSON lines by jq -s"),
        ('[{"a": 1},\n{"a": }]', ", entry 2: not valid JSON: unallowed token"),
        ('[{"a": 1},\n{"a": 2', ", entry 2: the file ends within the list: it is cut off; fetch it again"),
        ("[1\n2]", ", entry 2: not valid JSON: after array element, I expect ',' or ']'; repair this"),
        ("[1, NaN]", ", entry 2: not valid JSON: invalid char in json text"),
        ("[1e999]", ", entry 1: not valid JSON: numeric (floating point) overflow"),
    ]:
        with subtests.test(text=text, expected=expected):
            path = write("a.json", text)
            assert message_of(read_json_list(path)).startswith(f"{path}{expected}")


ESCAPES = st.lists(st.sampled_from([r"\ud83d\ude42", r"\ud83d", r"\uDE42", r"\u0041", "a", r"\n", r"\\", "ud83d"]), max_size=12)


@given(ESCAPES, st.integers(0, 40))
def test_half_of_an_escaped_surrogate_pair_is_an_error_wherever_a_read_ends(parts: list[str], ahead: int) -> None:
    raw = f'["{"x" * (2**16 - 2 - ahead)}{"".join(parts)}"]'
    expected = json.loads(raw)
    with tempfile.NamedTemporaryFile() as file:
        file.write(raw.encode())
        file.flush()
        if any("\ud800" <= char <= "\udfff" for char in expected[0]):
            assert "entry 1: half of a surrogate pair" in message_of(read_json_list(file.name))
        else:
            assert [value for _, value in read_json_list(file.name)] == expected


def test_a_malformed_line_is_an_error_that_names_it(write: Write, subtests: pytest.Subtests) -> None:
    for line, expected in [
        ("[1]", "line 2: expected a JSON object, found a list; write one object per line"),
        ('{"a": 1} {"a": 2}', "line 2: not valid JSON: unexpected content after document (column 10)"),
        ('{"a": NaN}', "line 2: not valid JSON: NaN is not JSON; leave the field out"),
        (r'{"a": "\ud83d"}', "line 2: not valid JSON: half of a surrogate pair"),
        ('{"a": 1e999}', "line 2: not valid JSON: number is infinity"),
        ('{"a":' * 100_000, "line 2: JSON that is nested too deeply"),
    ]:
        with subtests.test(line=line, expected=expected):
            path = write("a.jsonl", f"{{}}\n{line}\n")
            assert f"{path}, {expected}" in message_of(read_json_lines(path))
    pretty = write("b.jsonl", '{\n  "id": "1"\n}\n')
    assert "line 1: not valid JSON: unexpected end of data" in message_of(read_json_lines(pretty))
    assert "one object per line (jq -c . old.json > new.jsonl)" in message_of(read_json_lines(pretty))
    assert "line 1: the file is one JSON list; write one object" in message_of(read_json_lines(write("b.jsonl", "[\n{}\n]")))


def test_other_encodings_and_kinds_are_errors_that_name_the_line_and_the_cure(write: Write) -> None:
    path = write("a.jsonl", b'{"a": 1}\n{"a": "caf\xe9"}\n')
    assert f"{path}, line 2: not UTF-8 (byte 0xe9" in message_of(read_lines(path))
    assert "iconv" in message_of(read_lines(path))
    for content in (b'[1,\n2,\n"caf\xe9"]', b'[1, 2, {"\xed\xa0\x80id": 1}]'):
        listed = write("a.json", content)
        assert f"{listed}, entry 3: not UTF-8; save the file as UTF-8" in message_of(read_json_list(listed))
    assert "UTF-16 text; save it as UTF-8" in message_of(read_lines(write("b.jsonl", "{}".encode("utf-16"))))
    for content, told in [
        (b"PK\x03\x04....", "an archive or workbook .* unpack it, or save CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....", "an archive or workbook .*xls"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "a pointer of Git LFS, and .*git lfs pull"),
    ]:
        assert re.search(f"this is {told}", message_of(read_lines(write("c.jsonl", content))))


def test_gzip_that_is_cut_off_or_damaged_is_an_error(write: Write, subtests: pytest.Subtests) -> None:
    for reader in [read_lines, read_json_list]:
        with subtests.test(reader=reader):
            assert callable(reader)
            rows = json.dumps(list(range(100_000)), indent=0).encode()
            packed = gzip.compress(rows)
            damaged = bytearray(packed)
            damaged[len(packed) // 2] ^= 0xFF
            for name, raw in {"cut": packed[: len(packed) // 2], "short": packed[:12], "damaged": bytes(damaged)}.items():
                path = write(name, raw)
                message = message_of(reader(path))
                assert message.startswith(f"{path}, ")
                assert "the gzip data is cut off or damaged" in message
