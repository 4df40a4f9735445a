"""What each query of a benchmark may find: filters made of the queries' own metadata, and searches by them."""
