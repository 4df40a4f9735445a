"""Fetchers: the page at an address."""
