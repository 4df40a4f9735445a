"""Shared code of engines whose data lives in a server: their base, records, checksums, and embedded servers in folders."""
