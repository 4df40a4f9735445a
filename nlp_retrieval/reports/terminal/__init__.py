"""Results for a terminal of any width."""
