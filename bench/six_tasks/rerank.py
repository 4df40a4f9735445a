"""The first ten of BM25, reranked by a cross-encoder."""

from bench.six_tasks.data import corpus, topics
from nlp_retrieval import Bm25Retriever, CrossEncoderReranker

searcher = Bm25Retriever() >> CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2") % 10
searcher.index(corpus, "index")
results = searcher.search(topics).to_pandas()
