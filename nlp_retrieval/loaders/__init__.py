"""Loaders: they read items, queries and gold from files and databases."""
