"""Retrieval over the sentences that name entities."""
