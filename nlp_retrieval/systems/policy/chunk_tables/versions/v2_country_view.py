"""Version 2: a view of each chunk with its country, which is stored only with the document."""

from __future__ import annotations

from alembic import op
from psycopg import sql

from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS, VIEW
from nlp_retrieval.systems.policy.chunk_tables.server import driver_of

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make the view."""
    schema = op.get_context().opts["chunk_schema"]
    chunks, documents, view = (sql.Identifier(schema, name) for name in (CHUNKS, DOCUMENTS, VIEW))
    statement = sql.SQL(
        "CREATE VIEW {} AS SELECT chunk.id, chunk.content, chunk.doc_id, chunk.chunk_data, document.filename, "
        "coalesce(nullif(btrim(document.country), ''), nullif(btrim(chunk.chunk_data::jsonb ->> 'country'), '')) AS country "
        "FROM {} AS chunk LEFT JOIN {} AS document ON document.id = chunk.doc_id"
    )
    driver_of(op.get_bind()).execute(statement.format(view, chunks, documents))


__all__ = ["down_revision", "revision", "upgrade"]
