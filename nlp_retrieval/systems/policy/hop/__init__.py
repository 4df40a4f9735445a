"""Retrieval along typed relations between passages, and of what versions change."""
