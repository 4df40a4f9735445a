"""Late interaction over compressed token vectors."""
