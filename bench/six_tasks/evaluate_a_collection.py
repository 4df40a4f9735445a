"""nDCG@10 and recall@100 of BM25 on a collection."""

from bench.six_tasks.data import corpus, qrels, topics
from nlp_retrieval import Searcher, evaluate

bm25 = Searcher(["bm25"])
bm25.index(corpus, "index")
result = evaluate(bm25.search(topics, k=100), qrels, ["nDCG@10", "R@100"])
