"""A study that all tests of this folder may ask; they write into folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.systems.policy.study import PolicyStudy

from .studies import study


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> PolicyStudy:
    """With a searcher and something that goes along relations."""
    folder: Path = tmp_path_factory.mktemp("policy")
    return study(folder / "index", hop=True)
