"""Graphs over passages: kinds of links, links on disk, and walks along them."""
