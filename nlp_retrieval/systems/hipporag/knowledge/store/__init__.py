"""Database of the knowledge extracted from passages, and of the progress of the extraction."""
