"""What verifiers and the audit of citations are worth, on collections that people judged."""
