"""Engines whose data lives in a server: their base, PostgreSQL, and servers that run in the folder of an index."""
