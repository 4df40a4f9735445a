"""Query in, sub-queries out."""
