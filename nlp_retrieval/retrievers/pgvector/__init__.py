"""Dense retrieval in PostgreSQL, with the extension pgvector."""
