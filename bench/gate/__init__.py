"""The gate, measured."""
