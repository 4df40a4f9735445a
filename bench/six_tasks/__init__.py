"""Six tasks in the fewest honest lines; bench/SIX_TASKS.md has the same by hand in other libraries."""
