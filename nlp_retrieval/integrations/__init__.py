"""Searchers inside other frameworks, and their documents as items: one module per framework, which must be installed."""
