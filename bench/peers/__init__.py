"""Hybrid search of other libraries beside ours, over the same passages, vectors and questions."""
