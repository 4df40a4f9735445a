"""Version 1: documents, their chunks with three vectors, and relations between chunks.

An adopted table of another program gets its missing columns; existing ones stay unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembic import op
from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB, UUID

from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS, ONE_PLACE, RELATIONS, VECTOR_COLUMNS
from nlp_retrieval.systems.policy.chunk_tables.rows import RELATION_TYPES
from nlp_retrieval.systems.policy.chunk_tables.statements import Vector

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    options = op.get_context().opts
    schema: str = options["chunk_schema"]

    def to(table: str) -> ForeignKey:
        return ForeignKey(f"{schema}.{table}.id", ondelete="CASCADE")

    def json() -> Column[object]:
        return Column("metadata", JSONB, nullable=False, server_default="{}")

    vectors = [Column(name, Vector(options["dimensions"][name], options["extension"])) for name in VECTOR_COLUMNS]
    one_country = CheckConstraint("country = btrim(country) AND country <> ''", name=ONE_PLACE)
    types = ", ".join(f"'{name}'" for name in RELATION_TYPES)
    _make(DOCUMENTS, schema, [Column("filename", Text), Column("country", Text), json()], [one_country])
    _make(
        CHUNKS,
        schema,
        [
            Column("content", Text, nullable=False),
            Column("doc_id", UUID, to(DOCUMENTS), nullable=False),
            Column("chunk_data", JSONB, nullable=False, server_default="{}"),
            *vectors,
        ],
        [CheckConstraint("NOT chunk_data ? 'country'", name=ONE_PLACE)],
    )
    _make(
        RELATIONS,
        schema,
        [
            Column("source_chunk_id", UUID, to(CHUNKS), nullable=False),
            Column("target_chunk_id", UUID, to(CHUNKS), nullable=False),
            Column("relationship_type", Text, CheckConstraint(f"relationship_type IN ({types})"), nullable=False),
            Column("confidence_score", Float, CheckConstraint("confidence_score BETWEEN 0 AND 1"), nullable=False),
            json(),
        ],
        [
            CheckConstraint("source_chunk_id <> target_chunk_id"),
            UniqueConstraint("source_chunk_id", "target_chunk_id", "relationship_type"),
        ],
    )
    for table, name in ((DOCUMENTS, "country"), (CHUNKS, "doc_id"), (RELATIONS, "target_chunk_id")):
        op.create_index(f"ix_{table}_{name}", table, [name], schema=schema, if_not_exists=True)


def _make(
    table: str, schema: str, columns: Sequence[Column[object]], rules: Sequence[CheckConstraint | UniqueConstraint] = ()
) -> None:
    """Create a table or, if it exists, add its missing columns, which are empty then."""
    existing = op.get_context().opts["found"]
    if table not in existing:
        op.create_table(table, Column("id", UUID, primary_key=True), *columns, *rules, schema=schema)
        return
    for column in columns:
        if column.name not in existing[table]:
            op.add_column(table, column, schema=schema)


__all__ = ["down_revision", "revision", "upgrade"]
