"""Loader of items from chunk tables."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Self

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseLoader, given, may_set
from nlp_retrieval.loaders import hide_secrets
from nlp_retrieval.systems.policy.chunk_tables.reader import ChunkReader
from nlp_retrieval.systems.policy.chunk_tables.relations import ChunkRelation


class ChunkTablesLoader(BaseLoader):
    """Chunks of documents from the tables ``documents`` and ``doc_chunks`` of a PostgreSQL, of this or another program.

    Metadata are those of the chunk's data, with ``document`` and ``country``; see ``ChunkTables.stream``.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it, so that a
            config file needs no password. A password in the URL itself is shown as ``***`` by ``repr`` and ``config``, which
            then cannot open the database again.
        schema: of the tables. None: the first of the search path.
        country: only chunks of this country, or of these. None: of all.
    """

    name = "chunk_tables"
    manifest_may_set = may_set("schema", "country", url=given("ask the database"))

    def __init__(self, url: str, schema: str | None = None, country: str | Sequence[str] | None = None) -> None:
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = hide_secrets(url)
        self._url = url
        self.schema = schema
        self.country = country

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments do not hold

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the chunks, from a cursor of the server.

        Raises:
            DependencyError: SQLAlchemy or psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        with ChunkReader(self._url, schema=self.schema) as tables:
            yield from tables.stream(self.country)

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between all chunks, of any country, from a cursor of the server.

        Raises:
            DependencyError: SQLAlchemy or psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a relation leads to a missing chunk.
        """
        with ChunkReader(self._url, schema=self.schema) as tables:
            yield from tables.relations()
