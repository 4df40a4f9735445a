"""Evidence: an index of the sources that were read, claims verified against it, and every citation of a report audited."""
