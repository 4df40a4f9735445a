"""The audit of a report's citations, shown: a page, and a table for a terminal."""
