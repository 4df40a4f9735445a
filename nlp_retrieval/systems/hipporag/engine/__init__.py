"""Retrieval over a knowledge graph of passages and of what they say of each other's entities."""
