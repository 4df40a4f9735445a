"""Queries and gold in files: TREC topics and judgements, CSV, TSV, JSON lines."""
