"""The index of sources: their texts, URLs, versions and grades, and the passages that a searcher finds."""
