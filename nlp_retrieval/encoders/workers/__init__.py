"""Blocks of work done by other processes, of this machine or of a Ray cluster; above all, passages encoded."""
