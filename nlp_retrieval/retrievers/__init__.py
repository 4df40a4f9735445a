"""One engine per file."""
