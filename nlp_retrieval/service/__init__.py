"""The HTTP service: an index, or a project of sources, searched by other programs."""
