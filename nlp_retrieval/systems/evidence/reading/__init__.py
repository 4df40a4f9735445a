"""Reading sources: files, HTML and PDF to plain text, and how far a source is to be trusted."""
