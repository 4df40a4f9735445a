"""Lexical retrieval by the full-text search of PostgreSQL."""
