"""Tests of nlp_retrieval.loaders."""
