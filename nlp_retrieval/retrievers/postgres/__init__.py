"""PostgreSQL: a server of our own in a folder, connections, and the tables of engines whose data lives in a server."""
