"""Measurements of the project itself: ``python -m bench DATA`` (or ``make bench DATA=...``) writes ``bench/RESULTS.md``."""
