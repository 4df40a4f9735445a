"""From a DataFrame of passages and one of questions to a DataFrame of results."""

from bench.six_tasks.data import corpus, topics
from nlp_retrieval import Searcher

bm25 = Searcher(["bm25"])
bm25.index(corpus, "index")
results = bm25.search(topics, k=100).to_pandas()
