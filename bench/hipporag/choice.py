"""The choice among all link graphs that were ever tried here: ``python -m bench.hipporag.choice DATA MODEL`` prints it.

The six of the page were picked after a first look at these fourteen, over the same questions; here the choice among all
fourteen is made within the folds, so that look is paid for.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

from bench.common import Data
from bench.hipporag.nested import System, out_of_fold
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.retrievers import BaseLinkExtractor, SharedEntities, TitleMentions
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.hipporag.shared_knowledge import SharedKnowledge


def graphs(model: str, knowledge: str) -> dict[str, LinkGraphRetriever]:
    """Return all that were tried."""
    lexical, dense, published = Bm25Retriever(), FaissRetriever(model), HippoRagRetriever(model, knowledge)
    seeds: dict[str, list[BaseRetriever]] = {
        "BM25, dense": [lexical, dense],
        "dense": [dense],
        "dense, HippoRAG 2": [dense, published],
        "BM25, HippoRAG 2": [lexical, published],
        "BM25, dense, HippoRAG 2": [lexical, dense, published],
    }
    titles, entities = TitleMentions(), SharedEntities(weight=0.1)
    links: dict[str, list[BaseLinkExtractor]] = {
        "titles, entities": [titles, entities],
        "titles, entities, knowledge": [titles, entities, SharedKnowledge(knowledge)],
    }
    more: dict[str, list[BaseLinkExtractor]] = {
        "titles, entities, knowledge at .1": [titles, entities, SharedKnowledge(knowledge, weight=0.1)],
        "titles, knowledge": [titles, SharedKnowledge(knowledge)],
        "titles, knowledge at .1": [titles, SharedKnowledge(knowledge, weight=0.1)],
        "titles, entities, knowledge of up to 50": [titles, entities, SharedKnowledge(knowledge, max_passages=50)],
    }
    all_of = [(name, of, what, by) for name, of in seeds.items() for what, by in links.items()]
    all_of += [("BM25, dense", seeds["BM25, dense"], what, by) for what, by in more.items()]
    return {f"{name}; {what}": LinkGraphRetriever(of, links=by, encoder=dense.encoder) for name, of, what, by in all_of}


def main(arguments: list[str]) -> int:
    """Print what is chosen, and what it reaches."""
    data, model = Data.of(arguments[0]), arguments[1]
    corpus, index = BeirLoader(str(data.root / "musique")), data.work / "hipporag-index"
    warnings.simplefilter("ignore")
    systems = {}
    for name, graph in graphs(model, str(data.root / "musique" / "openie.jsonl")).items():
        Searcher([graph]).index(corpus, index)
        systems[name] = System.of(graph, index, corpus)
        print(name, {key: round(float(of.mean()), 3) for key, of in out_of_fold({name: systems[name]})[0].items()}, flush=True)
    values, chosen = out_of_fold(systems)
    print(f"chosen among {len(systems)}:", {key: round(float(of.mean()), 3) for key, of in values.items()}, Counter(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
