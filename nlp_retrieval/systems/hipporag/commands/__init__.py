"""The commands of ``nlp-retrieval hipporag``."""
