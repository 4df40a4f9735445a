"""The vocabulary that all rooms share: items, hits, filters, candidates; the rooms in it stand on it and on one another."""
