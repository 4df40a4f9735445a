"""Kinds of links, and how each is found in a corpus."""
