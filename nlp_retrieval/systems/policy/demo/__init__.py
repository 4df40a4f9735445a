"""Climate plans of twelve invented countries, two of each, with the answers to each question and the changes."""
