"""What each signal is worth on ``policy/cat``, by folds over countries: ``python -m bench.policy.worth DATA MODEL``.

Weights are fitted on four fifths of the countries and judged on the fifth. "Before": word vectors as they were trained
at first, on words and not on stems, ten passes, without abbreviations, and not centred.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec

from bench.common import Data
from bench.policy.remembering import RememberingEncoder
from bench.writing import table
from nlp_retrieval import (
    BeirLoader,
    FaissRetriever,
    MultiSignalReranker,
    SearchableItem,
    Searcher,
    WordVectorEncoder,
    tune_signals,
)
from nlp_retrieval.encoders import train_word_vectors
from nlp_retrieval.encoders.word_vectors import write_word_vectors
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS
from nlp_retrieval.text import stems_of_language

_FILTER, _FOLDS, _MEASURE = {"country": "country"}, 5, "recall@10"


def trained_before(items: Iterable[SearchableItem], folder: Path) -> None:
    """Train word vectors as at first."""
    texts = [stems_of_language(None).words(item.text) for item in items]
    trained = Word2Vec(texts, vector_size=300, window=5, epochs=10, min_count=2, seed=0, sg=1, workers=1).wv
    frequencies = Counter(word for words in texts for word in set(words))
    idf = [math.log((len(texts) + 1) / frequencies[word]) for word in trained.index_to_key]
    write_word_vectors(folder, trained.index_to_key, np.asarray(trained.vectors, np.float32), idf)


def measured(data: Data, model: str) -> str:
    """Return a table: each signal alone, and the sum without it, with word vectors as before and as they are now."""
    loader = BeirLoader(str(data.root / "policy" / "cat"))
    queries = [query.model_copy(update={"family": str(query.metadata["country"])}) for query in loader.queries()]
    dense = FaissRetriever(RememberingEncoder(model))
    columns: dict[str, list[str]] = {}
    for moment in ("before", "now"):
        words = data.work / f"policy-worth-{moment}"
        if not words.exists() and moment == "before":
            trained_before(loader.stream(), words)
        elif not words.exists():
            train_word_vectors(loader.stream(), words, language="english")

        reranker = MultiSignalReranker("climate", word_vectors=WordVectorEncoder(words), min_similarity=0.0)
        searcher = Searcher([dense], reranker=reranker, depth="all")
        searcher.index(loader, data.work / "policy-cat")
        report = tune_signals(searcher, queries, loader.gold(), (10,), "country", _FOLDS, where_from=_FILTER)
        for signal in SIGNALS:
            mean, low, high = report.worth(signal, _MEASURE)
            alone = report.alone[signal].means()[_MEASURE]
            cells = [f"{alone:.3f}", f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]", f"{report.weights[signal]:.1f}"]
            columns.setdefault(signal, []).extend(cells)
        for name, found in (("all, weights as described", report.before), ("all, weights by folds", report.out_of_fold)):
            columns.setdefault(name, []).extend([f"{found.means()[_MEASURE]:.3f}", "", ""])
    heads = [
        "recall@10",
        *(f"{cell}, {moment}" for moment in ("before", "now") for cell in ("alone", "lost without", "weight")),
    ]
    return table(heads, columns)


def main(arguments: list[str]) -> int:
    """Print the table."""
    if len(arguments) != 2:
        sys.stdout.write("usage: python -m bench.policy.worth DATA MODEL   (DATA holds the folder policy)\n")
        return 2
    warnings.simplefilter("ignore")
    sys.stdout.write(measured(Data.of(arguments[0]), arguments[1]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
