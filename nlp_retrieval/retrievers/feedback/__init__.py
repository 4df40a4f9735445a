"""Pseudo-relevance feedback: what the first hits of a query have in common finds further ones."""
