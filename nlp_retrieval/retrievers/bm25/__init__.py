"""BM25 without Java."""
