"""Tables of documents, their chunks with vectors, and relations between chunks, in a PostgreSQL with pgvector."""
