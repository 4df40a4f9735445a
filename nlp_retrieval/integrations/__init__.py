"""Searchers inside other frameworks, and their documents as items: a module each, which needs that framework."""
