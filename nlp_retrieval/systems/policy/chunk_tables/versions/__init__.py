"""Versions of the chunk tables, in order; each upgrades from the one before."""
