"""The commands of ``nlp-retrieval policy``."""
