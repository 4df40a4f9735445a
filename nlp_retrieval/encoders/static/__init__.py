"""Static embeddings: a vector for each token, looked up and averaged; read from a folder, or distilled from an encoder."""
