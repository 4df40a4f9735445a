"""Retrieval over a knowledge graph of passages and the entities that they mention."""
