"""Nothing of the address of chunk tables is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks.conftest import Tally, tally
from attacks.test_secrets import check_not_quoted, hostile_addresses

from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader

__all__ = ["tally"]


@hostile_addresses
def test_no_part_of_what_a_variable_holds_is_quoted(
    value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tally: Tally
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DBU", value)
    check_not_quoted(lambda url: ChunkTablesLoader(url).load(), tally)
