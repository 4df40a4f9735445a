"""Where items, queries and gold come from: one file per source."""
