"""What passages say, as entities and triples: where it comes from, and how it is kept."""
