"""``nlp-retrieval evidence``: sources, claims and citations."""
