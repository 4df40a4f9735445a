"""Nothing of the address of chunk tables is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks.test_secrets import check_not_quoted

from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader


def test_no_part_of_what_a_variable_holds_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    check_not_quoted(lambda url: ChunkTablesLoader(url).load(), monkeypatch)
