"""Multi-hop retrieval along links between passages."""
