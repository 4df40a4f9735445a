"""Kinds of links, each with its extractor."""
