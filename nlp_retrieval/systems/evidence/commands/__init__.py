"""The commands ``nlp-retrieval evidence``."""
