"""Retrieval along typed relations between passages, and of changes between versions."""
