"""What engines share whose data lives in a server: their base, records, checksums, and servers of our own in folders."""
