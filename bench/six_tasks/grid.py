"""BM25 with nine pairs of parameters, measured and tested against the first."""

from bench.six_tasks.data import corpus, qrels, topics
from nlp_retrieval import Benchmarker, Searcher, compare_systems

systems = Benchmarker.grid(Searcher(["bm25"]), {"retrievers.bm25.k1": [0.6, 0.9, 1.2], "retrievers.bm25.b": [0.2, 0.4, 0.75]})
result = compare_systems(systems, topics, qrels, corpus, measures=["nDCG@10"])
