"""How several ranked lists become one: those of sub-queries, of retrievers, of one query's parts side by side."""
