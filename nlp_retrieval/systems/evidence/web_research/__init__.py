"""A question to sources: searching the web, fetching what is found, adding it, and reading a text with a language model."""
