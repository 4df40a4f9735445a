"""Display of the audit of a report's citations: a page, and a table for a terminal."""
