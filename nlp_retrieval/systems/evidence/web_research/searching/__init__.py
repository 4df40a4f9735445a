"""Search engines: which pages of the web a query finds."""
