"""Entities, the sentences that name them, and the passages of the sentences, as one graph without relations."""
