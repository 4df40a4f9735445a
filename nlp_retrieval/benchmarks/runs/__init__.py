"""Finished runs: kept, read again, compared and repeated."""
