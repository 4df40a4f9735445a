"""Measurements on documents of climate policy."""
