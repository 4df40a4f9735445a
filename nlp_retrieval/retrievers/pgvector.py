"""Dense retrieval in PostgreSQL, with the extension pgvector."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, search_past_ties
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import given, may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.files.columns import read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, ModelError, ServerError
from nlp_retrieval.retrievers.postgres.engine import PostgresRetriever
from nlp_retrieval.retrievers.postgres.tables import (
    FEW,
    Fill,
    TableRecord,
    condition_of,
    extension_of,
    filled_by_joining,
    table_of,
)
from nlp_retrieval.retrievers.servers.retriever import row_sum, stored_id
from nlp_retrieval.retrievers.vectors import VectorRetriever, encoded_queries, write_vectors

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection

# Writing tables of vectors: by binary COPY, from a file of vectors.

_AT_ONCE = 4096
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_LARGEST_HALF = 65504.0


def filled_from(path: Path, ids: list[str], *, half: bool) -> Fill:
    """Fill a table with vectors from a ``.npy`` file.

    Args:
        path: of ``[rows, dimension]`` float32.
        ids: of the items, by row.
        half: whether the column holds 16-bit numbers.
    """

    def fill(connection: PostgresConnection, table: Composed) -> None:
        from psycopg.sql import SQL

        statement = SQL("COPY {} (row, item_id, id_sum, embedding) FROM STDIN (FORMAT binary, FREEZE)").format(table)
        with connection.cursor().copy(statement) as copy:
            copy.write(_HEADER)
            for block in _blocks(path, ids, half):
                copy.write(block)
            copy.write(b"\xff\xff")

    return fill


def _blocks(path: Path, ids: list[str], half: bool) -> Iterator[bytes]:
    """The rows in the form of binary COPY: the number of fields, and each with its length."""
    first = 0
    for vectors in read_blocks(path, _AT_ONCE):
        if half and np.abs(vectors).max(initial=0) > _LARGEST_HALF:
            raise ModelError("the encoder's vectors are too long for precision='halfvec'; use precision='float32'")
        dimension = vectors.shape[1]
        body = vectors.astype(">f2" if half else ">f4").tobytes()
        width = len(body) // len(vectors)
        header = (width + 4).to_bytes(4, "big") + dimension.to_bytes(2, "big") + bytes(2)
        parts: list[bytes] = []
        for number, item_id in enumerate(ids[first : first + len(vectors)]):
            row, stored = first + number, stored_id(item_id).encode()
            parts += (
                b"\0\4\0\0\0\4",
                row.to_bytes(4, "big"),
                len(stored).to_bytes(4, "big"),
                stored,
                b"\0\0\0\x08",
                row_sum(row, stored).to_bytes(8, "big", signed=True),
                header,
                body[number * width : (number + 1) * width],
            )
        first += len(vectors)
        yield b"".join(parts)


# Dense retrieval in PostgreSQL: an encoder, and a table of its vectors under the extension pgvector.
#
# Vectors are encoded into a file first, so that no transaction is open while a model works, and a killed build is resumed; then
# they are copied, indexed and committed at once.

# Searching a table of vectors: along its HNSW index for a batch in one round trip, or exactly.
#
# The planner uses the HNSW index only for ``ORDER BY embedding <#> query``. Exact search orders by another expression of the
# same value, so it is never approximate by accident.

ITERATIVE_SINCE = (0, 8)
_WIDEST = 1000
"""The largest ``hnsw.ef_search`` that the extension takes."""

_widened: WeakKeyDictionary[PostgresConnection, dict[str, str]] = WeakKeyDictionary()

_CANDIDATES = (
    "SELECT q.number::integer, hit.row, hit.score FROM unnest(%(queries)s::{vectors}) WITH ORDINALITY AS q(vector, number) "
    "CROSS JOIN LATERAL (SELECT row, -(embedding <#> q.vector) AS score FROM {rows} ORDER BY {order} LIMIT %(k)s) AS hit"
)
_ALONE = "SELECT 1, row, -(embedding <#> (%(queries)s::{vectors})[1]) AS score FROM {rows} ORDER BY score DESC, row LIMIT %(k)s"
"""For one query: several processes of the server cannot scan what is joined to the queries of a batch."""
_MANY_ROWS = 10_000
"""Most rows to scan; beyond them, a round trip for each query takes less time."""
_NEAREST, _EXACT = "embedding <#> q.vector", "-(embedding <#> q.vector) DESC, row"


def literals(vectors: Vectors) -> str:
    """An array of vectors, as PostgreSQL reads it; each number comes back to the bit."""
    return "{" + ",".join('"[' + ",".join(map(repr, vector)) + ']"' for vector in vectors.tolist()) + "}"


def exact_hits(connection: PostgresConnection, record: TableRecord, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
    """Compare all allowed rows; ties go to the lowest rows.

    Args:
        connection: to the server.
        record: of the table.
        queries: ``[queries, dimension]``.
        k: most rows per query.
        allowed: ``[rows]``, or None.
    """
    from psycopg.sql import SQL

    condition, values = condition_of(allowed)
    table = SQL("{} WHERE {}").format(table_of(record), condition)
    if len(queries) == 1 or (allowed is None and record.rows > _MANY_ROWS):
        one_query = _statement(record, table, _ALONE)
        lists = [_fetched(connection, one_query, queries[number][None], k, values)[0] for number in range(len(queries))]
        return _hits(lists)
    before = SQL("")
    if "rows" in values:  # fetched once for the batch
        before = SQL("WITH listed AS MATERIALIZED (SELECT row, embedding FROM {}) ").format(table)  # type: ignore[assignment]
        table = SQL("{}").format(SQL("listed"))
    statement = before + _statement(record, table, _CANDIDATES, _EXACT)
    return _hits(_fetched(connection, statement, queries, k, values))


def nearest_hits(
    connection: PostgresConnection,
    record: TableRecord,
    queries: Vectors,
    k: int,
    allowed: Mask | None,
    *,
    ef_search: int,
    version: tuple[int, ...],
) -> Hits:
    """Search along the HNSW index, or exactly: for few allowed rows, an extension too old to filter, or fewer than k hits.

    Args:
        connection: to the server.
        record: of the table.
        queries: ``[queries, dimension]``.
        k: most rows per query, at most the number of allowed rows.
        allowed: ``[rows]``, or None.
        ef_search: width of the search.
        version: of the extension.
    """
    iterative = version >= ITERATIVE_SINCE
    n_found = record.rows if allowed is None else int(np.count_nonzero(allowed))
    if (allowed is not None and (n_found <= FEW or not iterative)) or (k > _WIDEST and not iterative):
        return exact_hits(connection, record, queries, k, allowed)
    from psycopg.sql import SQL

    condition, values = condition_of(allowed)
    statement = _statement(record, SQL("{} WHERE {}").format(table_of(record), condition), _CANDIDATES, _NEAREST)

    def search(numbers: Rows, depth: int) -> Matrix:
        _widen(connection, min(max(ef_search, depth), _WIDEST), iterative)
        lists = _fetched(connection, statement, queries[numbers], depth, values)
        rows, scores = np.full((len(numbers), depth), -1, np.int64), np.full((len(numbers), depth), -np.inf)
        for position, (some, their) in enumerate(lists):
            rows[position, : len(some)], scores[position, : len(some)] = some, their
        return rows, scores

    hits = search_past_ties(search, len(queries), k, n_found)
    short = np.flatnonzero(np.diff(hits.offsets) < k)
    if len(short) == 0:
        return hits
    bounds = hits.offsets.tolist()
    lists = [(hits.rows[a:b], hits.scores[a:b]) for a, b in pairwise(bounds)]
    full = exact_hits(connection, record, queries[short], k, allowed)
    bounds = full.offsets.tolist()
    for number, (a, b) in zip(short.tolist(), pairwise(bounds), strict=True):
        lists[number] = (full.rows[a:b], full.scores[a:b])
    return Hits.from_lists(lists)


def stored_vectors(connection: PostgresConnection, record: TableRecord, rows: Rows) -> Vectors:
    """Return the vectors of some rows of a table, ``[rows, dimension]``.

    Args:
        connection: to the server.
        record: of the table.
        rows: ascending, each once.

    Raises:
        IndexDamagedError: one is not there.
    """
    from psycopg.sql import SQL

    statement = SQL("SELECT vector_send(embedding::vector) FROM {} WHERE row = ANY(%s::integer[]) ORDER BY row")
    listed = "{" + ",".join(map(str, rows.tolist())) + "}"
    with connection.cursor(binary=True) as cursor:
        sent = b"".join(vector for (vector,) in cursor.execute(statement.format(table_of(record)), [listed]))
    layout = np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (record.dimension,))])
    if len(sent) != layout.itemsize * len(rows):
        raise IndexDamagedError(
            f"{record.shown}: vectors of the index are not in the table any more; index again with replace=True"
        )
    vectors: Vectors = np.frombuffer(sent, layout)["numbers"].astype(np.float32)
    return vectors


def _widen(connection: PostgresConnection, ef_search: int, iterative: bool) -> None:
    """Set the search width of this session, if it differs."""
    wanted = {"hnsw.ef_search": str(ef_search)} | ({"hnsw.iterative_scan": "strict_order"} if iterative else {})
    if _widened.get(connection) != wanted:
        for name, value in wanted.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        _widened[connection] = wanted


def _statement(record: TableRecord, rows: Composed, form: LiteralString, order: LiteralString = "") -> Composed:
    from psycopg.sql import SQL

    vectors = SQL(record.type.partition("(")[0] + "[]")
    return SQL(form).format(vectors=vectors, rows=rows, order=SQL(order))


def _hits(lists: list[tuple[list[int], list[float]]]) -> Hits:
    return Hits.from_lists([(np.array(rows, np.int64), np.array(scores, np.float64)) for rows, scores in lists])


def _fetched(
    connection: PostgresConnection, statement: SQL | Composed, queries: Vectors, k: int, values: dict[str, Any]
) -> list[tuple[list[int], list[float]]]:
    """Rows and scores of every query."""
    parameters = {"queries": literals(queries), "k": k, **values}
    lists: list[tuple[list[int], list[float]]] = [([], []) for _ in range(len(queries))]
    with connection.cursor(binary=True) as cursor:
        for number, row, score in cursor.execute(statement, parameters):
            rows, scores = lists[number - 1]
            rows.append(row)
            scores.append(score)
    return lists


EXACT_BELOW = 20_000
"""Up to this many rows ``auto`` searches exactly; above, along an HNSW graph."""

_VECTORS = "vectors.npy"
_MOST_INDEXED = {"float32": 2000, "halfvec": 4000}
_HALVES_SINCE = (0, 7)


class PgvectorRetriever(PostgresRetriever, VectorRetriever):
    """Dense retrieval with PostgreSQL and pgvector: inner product over an encoder's vectors, which live in a server.

    The index directory keeps the name of a table and a record of its content, but no URL. The server may have another URL
    later, or be a replica; a missing or changed table is an error. Without a URL, an embedded server runs in the folder
    ``.postgres`` of the index directory while it is used. Machines that share an index directory share a server.

    The server applies filters and leaves out deleted items before a list is cut, so that k items are found whenever k match:
    along the graph where the extension scans it iteratively (0.8), and otherwise by comparing all allowed rows.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        url: ``env:NAME``, an environment variable with the URL of a server, or that URL (``postgresql://user@host/name``),
            whose password is never shown. None: the embedded server.
        index_type: ``exact`` compares all rows; ``hnsw`` walks a graph (Malkov and Yashunin, 2016); ``auto`` is exact below
            20,000 items. Items that join an index are compared exactly until segments are joined.
        precision: ``halfvec`` keeps 16 bits of each number, in half the space (pgvector 0.7).
        hnsw_m: hnsw: links per node.
        ef_construction: hnsw: how widely the build searches for them.
        build_memory: hnsw: megabytes that the server may use to build it.
        ef_search: hnsw: how widely a search looks.
        schema: the schema of the tables, created if it does not exist.
        statement_timeout: seconds that one search on the server may take.
        connections: how many searches may run on the server at once.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([PgvectorRetriever(url="env:DATABASE_URL", index_type="hnsw")])
        Searcher(retrievers=[PgvectorRetriever(encoder=SentenceTransformerEncoder(), url='env:DATABASE_URL',
        index_type='hnsw')])
    """

    name = "pgvector"
    manifest_may_set = may_set(
        *("index_type", "precision", "hnsw_m", "ef_construction", "build_memory", "ef_search", "schema"),
        *("statement_timeout", "connections", "merge"),
        encoder=reads_model,
        url=given("ask the database"),
    )
    search_only = frozenset({"url", "schema", "build_memory", "ef_search", "statement_timeout", "connections", "merge"})

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        url: str | None = None,
        index_type: Literal["auto", "exact", "hnsw"] = "auto",
        precision: Literal["float32", "halfvec"] = "float32",
        hnsw_m: Annotated[int, Field(ge=2, le=100)] = 16,
        ef_construction: Annotated[int, Field(ge=4, le=1000)] = 64,
        build_memory: Annotated[int, Field(ge=1, le=1_000_000)] = 512,
        ef_search: Annotated[int, Field(ge=1, le=1000)] = 100,
        schema: str = "public",
        statement_timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0,
        connections: Annotated[int, Field(ge=1, le=100)] = 8,
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url, schema, statement_timeout, connections)
        self.encoder = SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
        if ef_construction < 2 * hnsw_m:
            raise ConfigurationError(
                f"{self.name}: ef_construction={ef_construction} is less than twice hnsw_m={hnsw_m}; raise it to {2 * hnsw_m}"
            )
        self.index_type = index_type
        self.precision = precision
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.build_memory = build_memory
        self.ef_search = ef_search
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration
        self._version: dict[str, tuple[int, ...]] = {}

    def index_identity(self) -> Config:
        identity = super().index_identity()
        of_graphs = {"hnsw_m", "ef_construction"} if self.index_type == "exact" else set()
        return {key: value for key, value in identity.items() if key not in of_graphs}

    # building

    def build(self, items: ItemTable, folder: Path) -> None:
        self._encode_into(items, folder, None, approximate=self._is_approximate(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self.require_segments(segments)
        self._encode_into(items, folder, TableRecord.read(segments[0].folder).dimension, approximate=False)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        records = self.records(segments)
        approximate = segments[0].first_row == 0 and self._is_approximate(len(items))
        self._make_vectors(folder, items, filled_by_joining(records, "embedding"), records[0][1].dimension, approximate)

    def _is_approximate(self, n_items: int) -> bool:
        return self.index_type == "hnsw" or (self.index_type == "auto" and n_items >= EXACT_BELOW)

    def _encode_into(self, items: ItemTable, folder: Path, dimension: int | None, *, approximate: bool) -> None:
        """Encode items, and create a table of their vectors."""
        path = folder / _VECTORS
        dimension = write_vectors(self, items, path, dimension)
        fill = filled_from(path, items.ids(), half=self.precision == "halfvec")
        self._make_vectors(folder, items, fill, dimension, approximate)
        path.unlink()

    def _make_vectors(self, folder: Path, items: ItemTable, fill: Fill, dimension: int, approximate: bool) -> None:
        kind = "vector" if self.precision == "float32" else "halfvec"
        if approximate and dimension > _MOST_INDEXED[self.precision]:
            raise ConfigurationError(
                f"{self.name}: hnsw indexes at most {_MOST_INDEXED[self.precision]:,} dimensions with precision="
                f"{self.precision!r}, and the encoder's vectors have {dimension:,}; use index_type='exact'"
                + (" or precision='halfvec'" if dimension <= _MOST_INDEXED["halfvec"] else "")
            )
        how = f"USING hnsw (embedding {kind}_ip_ops) WITH (m = {self.hnsw_m}, ef_construction = {self.ef_construction})"
        self._make(
            folder,
            items,
            ("embedding", f"{kind}({dimension})"),
            fill=fill,
            indexed=(how,) if approximate else (),
            approximate=approximate,
            settings=self._settings() if approximate else None,
        )

    def _settings(self) -> dict[str, str]:
        """Settings for building a graph: in memory, and on one core if the memory that processes share has no room for it."""
        settings = {"maintenance_work_mem": f"{self.build_memory}MB"}
        if self.url is None and (shared := Path("/dev/shm")).exists():  # noqa: S108 - only measured
            free = os.statvfs(shared)
            if free.f_bavail * free.f_frsize < 2 * self.build_memory * 2**20:
                settings["max_parallel_maintenance_workers"] = "0"
        return settings

    # searching

    def preparing(self) -> Callable[[PostgresConnection], None]:
        precision, server_version = self.precision, self._version

        def prepare(connection: PostgresConnection) -> None:
            schema, version = extension_of(connection, "vector")
            if precision == "halfvec" and version < _HALVES_SINCE:
                raise ServerError(
                    f"the server's extension 'vector' {'.'.join(map(str, version))} is too old for precision='halfvec', which "
                    "needs 0.7: upgrade pgvector there and run ALTER EXTENSION vector UPDATE, or use precision='float32'"
                )
            # only the schema of the extension: tables are named with theirs
            connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", [schema])
            connection.execute("SELECT '[1]'::vector")  # its settings stay from now on
            server_version["vector"] = version

        return prepare

    @property
    def dimension(self) -> int:
        return self._records[0][1].dimension

    def prepared(self, queries: list[str]) -> Vectors:
        with stage(f"{self.name}.encode"):
            return self.encode(queries)

    def encode(self, queries: list[str]) -> Vectors:
        return encoded_queries(self, queries)

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        return self.search_prepared(vectors, k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        distinct, places = np.unique(rows, return_inverse=True)
        stored = np.empty((len(distinct), self.dimension), np.float32)

        def read(connection: PostgresConnection) -> None:
            for segment, record in self._records:
                part = slice(*np.searchsorted(distinct, [segment.first_row, segment.end_row]).tolist())
                if part.stop > part.start:
                    stored[part] = stored_vectors(connection, record, distinct[part] - segment.first_row)

        if len(distinct):
            self.reading(read)
        vectors: Vectors = stored[places]
        return vectors

    def search_table(
        self, connection: PostgresConnection, record: TableRecord, queries: Any, k: int, allowed: Mask | None
    ) -> Hits:
        if not record.approximate:
            return exact_hits(connection, record, queries, k, allowed)
        return nearest_hits(connection, record, queries, k, allowed, ef_search=self.ef_search, version=self._version["vector"])
