"""What reorders candidates against the original query."""
