"""Graphs over passages: links on disk, and random walks along them."""
