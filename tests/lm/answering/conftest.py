"""The index of the demonstration, as a fixture."""

from demo_index import index

__all__ = ["index"]
