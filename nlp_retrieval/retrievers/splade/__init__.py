"""Learned sparse retrieval: weights of terms by a model, in an inverted index."""
