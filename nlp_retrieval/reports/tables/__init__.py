"""Results as tables in files: Markdown, LaTeX, Parquet."""
