"""Rerankers: they score candidates against the original query and reorder them."""
