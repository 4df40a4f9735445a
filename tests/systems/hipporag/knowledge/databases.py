"""Databases for knowledge stores, and everything that one holds as plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from postgres_server import admin_url
from sqlalchemy import create_engine, text

from nlp_retrieval.systems.hipporag.store import KnowledgeStore
from nlp_retrieval.systems.hipporag.store_tables import Tables

MakeStore = Callable[[], KnowledgeStore]
_schemas = count()


@pytest.fixture(scope="session")
def postgresql() -> str:
    """URL of the tests' PostgreSQL, for SQLAlchemy."""
    return admin_url().replace("postgresql://", "postgresql+psycopg://")


@pytest.fixture(params=["sqlite", "postgresql"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Makes empty stores in one of two databases."""
    made: list[KnowledgeStore] = []

    def make() -> KnowledgeStore:
        if request.param == "sqlite":
            made.append(KnowledgeStore(str(tmp_path / f"{len(made)}.db"), create=True))
        else:
            url, schema = request.getfixturevalue("postgresql"), f"knowledge_{next(_schemas)}"
            engine = create_engine(url)
            with engine.begin() as connection:
                connection.execute(text(f"CREATE SCHEMA {schema}"))
            engine.dispose()
            made.append(KnowledgeStore(url, schema=schema, create=True))
        return made[-1]

    yield make
    for store in made:
        store.close()


def rows_of(store: KnowledgeStore, *, without: tuple[str, ...] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a store in a fixed order, except those of runs.

    Args:
        store: to read.
        without: columns that are left out.
    """
    tables: Tables = store._tables
    with store._engine.connect() as connection:
        return {
            table.name: sorted(
                tuple(str(value) for name, value in zip(table.c.keys(), row, strict=True) if name not in without)
                for row in connection.execute(table.select())
            )
            for table in tables.metadata.sorted_tables
            if table.name != "indexing_progress"
        }
