"""Configuration files: values only, and messages that say where."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str | bytes):
        file = tmp_path / "sweep.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_yaml(file)

    return read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("-7", -7), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("~", None), ("", None), ("!!str 7", "7")],
        *[(text, text) for text in ["no", "yes", "12:30", "0x1F", "010", "2020-12-31"]],
    ],
)
def test_a_number_and_a_truth_value_are_what_they_look_like_to_people_and_the_rest_is_text(read, text, value):
    found = read(f"a: {text}\n")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("s:\n  x:\n    k1: 1\n    k1: 2\n", 4, "'k1' appears twice"),
        ("1: a\n1: b\n", 2, "'1' appears twice"),
        ("a: &x {k1: 1}\nb:\n  <<: *x\n", 3, "merge keys .* write the settings out"),
        ("a: [1\nb: 2\n", 2, "not YAML: .*; check the start of lines"),
        ("a: *none\n", 1, "not YAML"),
        ("[" * 1_000_000, 1, "more than 100 levels"),
    ],
)
def test_a_key_that_stands_twice_or_merges_and_what_is_broken_are_errors_with_their_line(read, text, line, fault):
    with pytest.raises(ConfigurationError, match=rf"sweep\.yaml, line {line}: {fault}"):
        read(text)


def test_json_is_held_to_the_same_rules_and_its_whole_numbers_are_exact(tmp_path):
    path = tmp_path / "sweep.json"
    path.write_text('{"a": 123456789012345678901234567890, "b": "\\ud83d\\ude42"}')
    assert read_yaml(path) == {"a": 123456789012345678901234567890, "b": "\U0001f642"}
    path.write_text('{"a": 1,\n"a": 2}')
    with pytest.raises(ConfigurationError, match=r"sweep\.json, line 2: 'a' appears twice"):
        read_yaml(path)
