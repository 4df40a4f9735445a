"""Files: written atomically, checked on reading, and never trusted."""
