"""Finished runs: saving, reading, comparing and repeating them."""
