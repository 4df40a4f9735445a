"""Titles, names and other mentions in texts, and which characters of a text may be shown."""
