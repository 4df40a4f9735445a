"""The changelog keeps its form, so that people and programs find what changed in a version."""

from __future__ import annotations

import re

import nlp_retrieval

from .conftest import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_versions_stand_newest_first_under_what_is_not_released() -> None:
    heads = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", head) for head in heads[1:]]
    assert all(released), heads
    numbers = [tuple(map(int, one.groups())) for one in released if one]
    assert numbers == sorted(numbers, reverse=True)
    now = tuple(int(part) for part in re.findall(r"\d+", nlp_retrieval.__version__)[:3])
    assert numbers == [] or numbers[0] <= now


def test_changes_are_of_the_known_kinds_and_none_is_empty() -> None:
    for version in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        parts = re.split(r"^### (.*)$", version, flags=re.MULTILINE)[1:]
        kinds, texts = parts[::2], parts[1::2]
        assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        assert len(kinds) == len(set(kinds))
        assert all(text.strip().startswith("- ") for text in texts)
