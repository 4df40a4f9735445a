"""BM25 and dense retrieval, fused by reciprocal rank."""

from bench.six_tasks.data import corpus, topics
from nlp_retrieval import Bm25Retriever, FaissRetriever

hybrid = Bm25Retriever() % 100 + FaissRetriever() % 100
hybrid.index(corpus, "index")
results = hybrid.search(topics).to_pandas()
