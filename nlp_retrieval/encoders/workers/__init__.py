"""Passages encoded by other processes: of this machine, or of a Ray cluster."""
