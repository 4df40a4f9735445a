"""From a question to sources: searching the web, fetching and adding pages, and reading a text with a language model."""
