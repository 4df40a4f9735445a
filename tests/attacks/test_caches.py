"""What another user could have put into a cache is not believed: it is as if it were not there.

Advisories: diskcache's pickles (CVE-2025-69872), a cache in a shared temporary folder (CVE-2025-7647).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.benchmarks.stage_store import Entry, StageStore
from nlp_retrieval.lm.engine import AnswerStore

QUESTION = {"asked": "who"}
OTHER_USER = 65534


def writable_by_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o666)


def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may give a file away; anybody else is given another name, which comes to the same."""
    if os.getuid() == 0:
        os.chown(path, OTHER_USER, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: OTHER_USER)


POISONS: list[Callable[[Path, pytest.MonkeyPatch], None]] = [writable_by_all, of_another_user]


@pytest.mark.parametrize("poison", POISONS)
def test_an_answer_of_somebody_else_is_asked_for_again(
    poison: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AnswerStore(tmp_path).keep(QUESTION, {"text": "a poisoned answer"})  # as an attacker would write it: the very question
    assert AnswerStore(tmp_path).find(QUESTION) == {"text": "a poisoned answer"}
    (file,) = tmp_path.rglob("*.json")
    poison(file, monkeypatch)
    assert AnswerStore(tmp_path).find(QUESTION) is None


@pytest.mark.parametrize("poison", POISONS)
def test_a_stage_result_of_somebody_else_is_computed_again(
    poison: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    StageStore(tmp_path).keep("group", "name", Entry({}, {"scores": np.ones(3)}))
    assert StageStore(tmp_path).find("group", "name") is not None
    (file,) = tmp_path.rglob("*.stage")
    poison(file, monkeypatch)
    assert StageStore(tmp_path).find("group", "name") is None
    assert list(StageStore(tmp_path).entries("group")) == []
