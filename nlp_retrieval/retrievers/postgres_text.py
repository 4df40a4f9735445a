"""Lexical retrieval by the full-text search of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, LiteralString

from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.context import warn_of_cut
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers.servers.postgres import Fill, PostgresRetriever, Schema, condition_of, sql
from nlp_retrieval.retrievers.servers.retriever import ServerRecord

if TYPE_CHECKING:
    from psycopg.sql import Composable

    from nlp_retrieval.retrievers.servers.postgres import PostgresConnection

# Any of a query's words, ranked by cover density (Clarke, Cormack and Tudhope, 2000).
#
# A query is split into lexemes by the server's text-search configuration, as the items were. They are joined by OR, because an
# AND of all words of a question finds next to nothing. Nothing of a query is read as an operator.

_AT_ONCE = 1000
_MOST_CHARACTERS = 200_000
"""Most characters of a text; the server's list of the words of one text has at most a megabyte."""

_LIMIT = f"the {_MOST_CHARACTERS:,} characters of which the server keeps words"

_FILL: LiteralString = (
    "INSERT INTO {table} SELECT %(first)s - 1 + number, to_tsvector(%(language)s::regconfig, content) "
    "FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS new(content, number)"
)
_HAS_WORDS = "SELECT to_tsvector(%(language)s::regconfig, %(query)s) <> ''"
_SEARCH: LiteralString = r"""
SELECT row, ts_rank_cd(words, any_of.query, 1)::float8 AS score
FROM {table}, (
    SELECT string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery AS query
    FROM unnest(tsvector_to_array(to_tsvector(%(language)s::regconfig, %(query)s))) AS lexeme
) AS any_of
WHERE words @@ any_of.query AND {condition} ORDER BY score DESC, row LIMIT %(k)s
"""


class PostgresTextRetriever(PostgresRetriever):
    """Lexical retrieval by PostgreSQL's full-text search, on the same server as vectors.

    An item matches if it has any word of the query. Its score is ``ts_rank_cd``: words near one another count more, and a long
    text less, by the logarithm of its length. Rare words have no higher weight, unlike in BM25. The server keeps the words of
    the items with their positions, from which their texts can be guessed. At most 200,000 characters of an item are indexed,
    and a warning counts longer ones. See :class:`~nlp_retrieval.PgvectorRetriever` for the server and the index directory.

    Args:
        url: ``env:NAME``, an environment variable with the URL of a server, or that URL (``postgresql://user@host/name``),
            whose password is never shown. None: the embedded server.
        language: a text-search configuration of the server: ``english``, ``german``, ``simple`` (no stems), ...
        schema: the schema of the tables, created if it does not exist.
        statement_timeout: seconds that one search on the server may take.
        connections: how many searches may run on the server at once.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([PostgresTextRetriever(url="env:DATABASE_URL", language="english")])
        Searcher(retrievers=[PostgresTextRetriever(url='env:DATABASE_URL')])
    """

    name = "postgres_text"
    manifest_may_set = may_set(
        *("language", "schema", "statement_timeout", "connections", "merge"), url=given("ask the database")
    )
    column = "words"
    by_words = True
    search_only = frozenset({"url", "statement_timeout", "connections", "merge"})

    def __init__(
        self,
        url: str | None = None,
        language: Annotated[str, Field(min_length=1, max_length=127, pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")] = "english",
        schema: Schema = "public",
        statement_timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0,
        connections: Annotated[int, Field(ge=1, le=100)] = 8,
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url, schema, statement_timeout, connections)
        self.language = language
        self.merge = merge

    def build(self, items: ItemTable, folder: Path) -> None:
        def fill(connection: PostgresConnection, table: Composable) -> None:
            names = [name for (name,) in connection.execute("SELECT cfgname FROM pg_ts_config ORDER BY cfgname")]
            if self.language.rpartition(".")[2] not in names:
                hint = nearest(self.language, names)
                raise ConfigurationError(f"{self.name}: the server has no text-search configuration {self.language!r}; {hint}")
            first = n_cut = 0
            for texts in tracked("postgres_text: writing", items.texts(_AT_ONCE), len(items)):
                values = {"first": first, "texts": [_storable(text) for text in texts], "language": self.language}
                connection.execute(sql(_FILL, table=table), values)
                first += len(texts)
                n_cut += sum(len(text) > _MOST_CHARACTERS for text in texts)
            warn_of_cut(self.name, n_cut, len(items), _LIMIT, "index smaller chunks, as the loader 'chunker' makes them")

        self._make_words(folder, len(items), fill)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        self.require_segments(segments)
        super().extend(items, folder, segments, everything)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        self._make_words(folder, len(items), self.joined(segments))

    def _make_words(self, folder: Path, rows: int, fill: Fill) -> None:
        self.make_table(folder, rows, "tsvector", fill, index="USING gin (words)", kind="tsvector")

    def ignored(self, query: str) -> str | None:
        """Return the reason why a query of stop words is ignored, and how to index them; None for other queries."""
        with self._server.reading() as connection:
            [(has_words,)] = connection.execute(_HAS_WORDS, {"language": self.language, "query": _storable(query)})
        if has_words:
            return None
        return f"stop words alone, which language={self.language!r} leaves out, and an index with language=simple keeps"

    def search_table(self, record: ServerRecord, queries: Sequence[str], k: int, allowed: Mask | None) -> Hits:
        n_cut = sum(len(query) > _MOST_CHARACTERS for query in queries)
        warn_of_cut(self.name, n_cut, len(queries), _LIMIT, "shorten them", "queries")
        condition, values = condition_of(allowed)
        statement = sql(_SEARCH, table=self.named(record.table), condition=condition)
        values |= {"language": self.language, "k": k}
        return self.answers(statement, [values | {"query": _storable(query)} for query in queries])


def _storable(text: str) -> str:
    """Return a text as PostgreSQL can hold it: no NUL, and no more words than fit into one value."""
    return text[:_MOST_CHARACTERS].replace("\0", " ")
