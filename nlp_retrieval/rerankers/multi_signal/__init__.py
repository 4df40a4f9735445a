"""Several signals of a passage's relevance, each between 0 and 1, and their weighted mean."""
