"""What computes a model of sentence-transformers: torch, or onnxruntime with graphs that are exported here."""
