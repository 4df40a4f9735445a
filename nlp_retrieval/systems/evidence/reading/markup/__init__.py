"""Pages of HTML and Markdown to plain text: what is hidden in them, and what is read."""
