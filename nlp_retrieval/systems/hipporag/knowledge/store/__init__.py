"""What passages say, kept in a database: as it was extracted, and how far the extraction is."""
