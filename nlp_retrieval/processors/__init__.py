"""Query processors: each turns a query into the sub-queries to search for."""
