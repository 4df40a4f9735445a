"""Reranking by a language model that orders passages, a window at a time."""
