"""Numbers and units of measure in texts."""
