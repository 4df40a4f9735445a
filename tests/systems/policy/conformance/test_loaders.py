"""The loaders of chunk tables and of plans keep every rule."""

from __future__ import annotations

from itertools import count

import pytest
from conformance.test_loaders import TEXTS
from postgres_server import admin_url

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables, ChunkTablesLoader
from nlp_retrieval.systems.policy.plans import PlansLoader
from nlp_retrieval.testing import LoaderRules

_SERVERS: list[str] = []  # a URL, then the schemas that were filled
_SCHEMAS = count()


@pytest.fixture(scope="module")
def chunk_server():
    _SERVERS.append(admin_url().replace("postgresql://", "postgresql+psycopg://"))


@pytest.mark.usefixtures("chunk_server")
class TestChunkTables(LoaderRules):
    component = ChunkTablesLoader

    def prepare(self):
        _SERVERS.append(self._written(SearchableItem(item_id=f"d{n}", content=text) for n, text in enumerate(TEXTS)))

    def make(self):
        return ChunkTablesLoader(_SERVERS[0], schema=_SERVERS[-1])

    def _written(self, items):
        schema = f"conformance {next(_SCHEMAS)}"
        with ChunkTables(_SERVERS[0], schema=schema, create=True) as tables:
            tables.write(items)
        return schema


class TestPlans(LoaderRules):
    component = PlansLoader

    def prepare(self):
        folder = self.folder / "plans"
        folder.mkdir()
        for number, text in enumerate(text for text in TEXTS if text):
            (folder / f"Ostland {2020 + number}.txt").write_text(text, "utf-8")

    def make(self):
        return PlansLoader(self.folder / "plans", size=40, overlap=5)
