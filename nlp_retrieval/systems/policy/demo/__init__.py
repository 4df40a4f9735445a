"""Climate plans of twelve countries that do not exist, two of each, with what answers which question and what changed."""
