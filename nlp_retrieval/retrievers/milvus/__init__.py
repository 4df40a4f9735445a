"""Dense retrieval and BM25 in Milvus: a server, a cluster, or Milvus Lite in a folder."""
