"""Are questions better with their keywords? ``python -m bench.policy.keywords DATA``: a folder of climate policy collections.

Asks the eight questions of the profile ``climate`` of every country, by sentence vectors and by all signals, with and without
the keywords of each; what answers any query of a question's number is gold. Recall@10, at most 10 of the gold counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from nlp_retrieval import BeirLoader, FaissRetriever, MultiSignalReranker, Searcher
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.systems.policy.demo.writing import write_collection
from nlp_retrieval.systems.policy.study import PolicyStudy

Gold = dict[tuple[str, int], set[str]]


def gold_of(loader: BeirLoader) -> Gold:
    """By country and question number, what answers one of the queries of that number."""
    gold: Gold = defaultdict(set)
    queries = {query.query_id: query.metadata for query in loader.queries()}
    for one in loader.gold():
        about = queries[one.query_id]
        if about.get("kind", "question") == "question":
            key = str(about["country"]), int(str(about["question_number"]))
            gold[key] |= {name for name, grade in one.relevance.items() if grade > 0}
    return gold


def recalls(study: PolicyStudy, gold: Gold, folder: Path) -> dict[tuple[str, int], float]:
    """Recall@10 by country and question."""
    found = {}
    for file in study.run(folder, min_similarity=0.0).answers():
        for answer in file.questions.values():
            key = file.metadata.subject, answer.question_number
            if wanted := gold.get(key):
                first = {chunk.id for chunk in (answer.top_k_chunks or [])[:10]}
                found[key] = len(wanted & first) / min(10, len(wanted))
    return found


def measure(name: str, collection: Path, folder: Path) -> None:
    """Print recall with and without keywords, and the gain with an interval over countries."""
    loader, profile = BeirLoader(collection), load_profile("climate")
    dense = Searcher([FaissRetriever()])
    signals = Searcher([FaissRetriever()], reranker=MultiSignalReranker("climate", word_vectors_weight=0, min_similarity=0))
    signals.index(loader, folder / "index")
    dense.open(folder / "index")
    gold, draw = gold_of(loader), np.random.default_rng(0)
    for label, searcher in (("sentence vectors", dense), ("signals", signals)):
        without, with_them = (
            recalls(PolicyStudy(profile, searcher, keywords=on), gold, folder / f"{label} {on}") for on in (False, True)
        )
        gains = defaultdict(list)
        for (country, number), value in with_them.items():
            gains[country].append(value - without[country, number])
        means = np.array([np.mean(values) for values in gains.values()])
        low, high = np.percentile([draw.choice(means, len(means)).mean() for _ in range(5000)], [2.5, 97.5])
        before, after = (float(np.mean(list(values.values()))) for values in (without, with_them))
        sys.stdout.write(
            f"{name}, {label}: {before:.3f} without, {after:.3f} with; gain by country {low:+.3f} to {high:+.3f}\n"
        )


def main() -> None:
    """Measure the invented plans, and the collections that are there."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        measure("invented plans", write_collection(folder / "plans"), folder / "invented")
        for name in ("cat", "ndc"):
            measure(name, Path(sys.argv[1]) / name, folder / name)


if __name__ == "__main__":
    main()
