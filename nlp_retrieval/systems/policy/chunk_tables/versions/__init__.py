"""The versions of the chunk tables, in order; each says how the one before becomes it."""
