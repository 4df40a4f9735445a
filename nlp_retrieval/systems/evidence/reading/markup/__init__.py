"""Pages of HTML and Markdown to plain text: finding hidden text, and reading the rest."""
