"""Dense retrieval over FAISS indexes."""
