"""BM25 with and without RM3, and whether their difference is significant, corrected for the number of comparisons."""

from bench.six_tasks.data import corpus, qrels, topics
from nlp_retrieval import Bm25Retriever, compare_systems

systems = [Bm25Retriever(), Bm25Retriever(feedback="rm3")]
result = compare_systems(systems, topics, qrels, corpus, measures=["nDCG@10"])
