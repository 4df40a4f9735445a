"""Judged pairs are read from JSON lines, and what is none is named with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.verifiers.fitting import read_pairs

ROW = {"claim": "It is so.", "passage": "One. Two.", "label": "support"}


def test_a_folder_of_collections_is_read_compressed_or_not(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "first" / "train.jsonl").write_text(json.dumps(ROW | {"family": "f", "title": "T"}) + "\n\n")
    with gzip.open(tmp_path / "second" / "train.jsonl.gz", "wt") as file:
        file.write(json.dumps(ROW | {"label": "not_support"}))
    first, second = read_pairs(tmp_path)
    assert (first.collection, first.family) == ("first", "first/f")
    assert (second.collection, second.label, second.family) == ("second", "not_support", "second/One. Two.")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ('{"claim": 1, "passage": "", "label": ""}', 'line 2: no text "claim"'),
        (json.dumps(ROW | {"label": "maybe"}), "line 2: label 'maybe'"),
    ],
)
def test_a_line_that_is_no_pair_is_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps(ROW) + "\n" + line)
    with pytest.raises(SourceError, match=message):
        read_pairs(tmp_path / "pairs.jsonl")
