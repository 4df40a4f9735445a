"""Many configurations from one: what is varied in it, and how the results are named."""
