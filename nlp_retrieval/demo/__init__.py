"""A small multi-hop collection, written for this project."""
