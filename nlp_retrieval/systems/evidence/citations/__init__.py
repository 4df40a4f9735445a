"""Citations: reading them in a report, auditing each against its own source, and showing what was found."""
