"""Engines, a folder each; they find items for queries."""
