"""Reading sources: files, HTML and PDF to plain text, and grades of trustworthiness."""
