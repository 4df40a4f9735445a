"""Reading chunk tables of this or another program.

Values are never part of a statement: ids, countries and names are passed as parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, RELATIONS, Layout, layout_of
from nlp_retrieval.systems.policy.chunk_tables.migration import check_version
from nlp_retrieval.systems.policy.chunk_tables.server import ChunkServer

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from nlp_retrieval.systems.policy.chunk_tables.reading import ChunkCounts
    from nlp_retrieval.systems.policy.chunk_tables.relations import ChunkRelation
    from nlp_retrieval.systems.policy.chunk_tables.similarity import ChunkSimilarities

__all__ = ["ChunkReader"]

_FETCHED = 500


class ChunkReader:
    """Read-only chunk tables.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it.
        schema: of the tables. None: the first of the search path.

    Raises:
        DependencyError: SQLAlchemy, psycopg or Alembic is not installed.
        SourceError: the database cannot be opened, or lacks the tables or needed columns.
        IndexMismatchError: the tables are of this package, but of another version.
    """

    _may_create: ClassVar[bool] = False

    def __init__(self, url: str, *, schema: str | None = None) -> None:
        if schema is not None and (not schema or "\0" in schema or len(schema.encode("utf-8", "surrogatepass")) > 63):
            raise ConfigurationError(f"schema={schema!r:.100}: a name of 1 to 63 bytes is wanted")
        self._server = ChunkServer(str(url))
        self._schema = schema
        self._prepare()
        shown = self._server.shown
        self._layout: Layout = self._server.read(lambda connection: layout_of(connection, schema)).checked(
            shown, may_create=self._may_create
        )
        check_version(self._layout, shown)

    def _prepare(self) -> None:
        """Prepare the tables before they are read; nothing to do here."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.shown!r}, schema={self._layout.schema!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._server.close()

    @property
    def dimensions(self) -> dict[str, int | None]:
        """Return the dimension of each column's vectors; None if the column has none."""
        columns = self._layout.tables[CHUNKS]
        return {name: found.dimension for name, found in columns.items() if found.compared_as is not None}

    def counts(self) -> ChunkCounts:
        """Return the numbers of rows, and of missing vectors and countries.

        Raises:
            SourceError: the database cannot be read.
        """
        from nlp_retrieval.systems.policy.chunk_tables.reading import counts_in

        return self._server.read(lambda connection: counts_in(connection, self._layout))

    def countries(self) -> list[str]:
        """Return the countries of the chunks, in alphabetical order."""
        from sqlalchemy import select

        from nlp_retrieval.systems.policy.chunk_tables.reading import source_of

        source = source_of(self._layout)
        statement = select(source.country).select_from(source.rows).where(source.country.is_not(None)).distinct()
        return sorted(self._server.read(lambda connection: list(connection.execute(statement).scalars())))

    def stream(self, country: str | Sequence[str] | None = None) -> Iterator[SearchableItem]:
        """Yield the chunks as items, from a cursor of the server; memory does not grow with their number.

        They come document by document, in the order of ``position`` if the chunks have one. The metadata are those of the chunk
        and its document, with ``document`` and ``country``. The document's country counts, or the chunk's if the document has
        none; a warning counts chunks with a different one.

        Args:
            country: only chunks of this one, or of these.

        Raises:
            SourceError: the database cannot be read, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        from nlp_retrieval.systems.policy.chunk_tables.reading import check_countries, items_statement, warn_of_countries
        from nlp_retrieval.systems.policy.chunk_tables.rows import item_of

        wanted = _several(country)
        with self._server.reading() as connection:
            check_countries(connection, self._layout, wanted)
            warn_of_countries(connection, self._layout, self._server.shown)
            streaming = connection.execution_options(yield_per=_FETCHED)
            with streaming.execute(items_statement(self._layout, wanted)) as read:
                for row in read.mappings():
                    yield item_of(f"{self._server.shown}, chunk", dict(row))

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between chunks, streamed; nothing if there is no such table.

        Raises:
            SourceError: the database cannot be read, a relation leads to a missing chunk, or a row is not a relation.
        """
        from nlp_retrieval.systems.policy.chunk_tables.relations import refuse_dangling, relations_in

        if RELATIONS not in self._layout.tables:
            return
        with self._server.reading() as connection:
            refuse_dangling(connection, self._layout, self._server.shown)
            yield from relations_in(connection, self._layout, self._server.shown)

    def batch_similarity_calculation(
        self,
        vectors: NDArray[Any],
        *,
        column: str = "transformer_embedding",
        country: str | Sequence[str] | None = None,
        k: int | None = 20,
        exact: bool = True,
    ) -> list[ChunkSimilarities]:
        """Return the cosine similarities of vectors with those of chunks, in one statement.

        Args:
            vectors: ``[queries, dimension]``.
            column: of the chunks.
            country: only chunks of this one, or of these; filtered before the cut.
            k: at most this many chunks for each vector; None: all.
            exact: whether all chunks are compared. Otherwise an index of ``index_vectors`` may be used, which may miss some;
                with a filter only by pgvector 0.8 or newer, which continues until k pass.

        Raises:
            QueryError: there is no such column or country, or a vector has another dimension.
            SourceError: the database cannot be read.
        """
        from nlp_retrieval.systems.policy.chunk_tables.reading import check_countries
        from nlp_retrieval.systems.policy.chunk_tables.similarity import similarities_in

        wanted = _several(country)

        def calculate(connection: Connection) -> list[ChunkSimilarities]:
            check_countries(connection, self._layout, wanted)
            return similarities_in(connection, self._layout, vectors, column, wanted, k, exact=exact)

        return self._server.read(calculate)


def _several(country: str | Sequence[str] | None) -> list[str] | None:
    if country is None:
        return None
    wanted = [country] if isinstance(country, str) else list(country)
    if not wanted or not all(isinstance(one, str) and one.strip() for one in wanted):
        raise ConfigurationError(f"country={country!r}: the name of a country, or several, is wanted; None stands for all")
    return wanted
