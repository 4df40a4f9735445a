"""Rerankers behind an endpoint."""
