"""HippoRAG 2 as one system from one file of settings: extraction, index, search and answers."""
