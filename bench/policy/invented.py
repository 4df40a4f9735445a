"""What each signal is worth on the invented plans of ``ask --demo``: ``python -m bench.policy.invented MODEL``.

MODEL is a sentence-transformers model. Word vectors are trained on the plans,
which are too short for them. The eight questions to each of
the twelve countries: recall@10 and nDCG@10 over all, what nDCG@10 has over sentence vectors alone with a 95% interval over
countries, and nDCG@10 by question. "Without" leaves one signal out of the sum with the described weights.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from nlp_retrieval import (
    BeirLoader,
    FaissRetriever,
    MultiSignalReranker,
    Searcher,
    SentenceTransformerEncoder,
    WordVectorEncoder,
)
from nlp_retrieval.encoders import train_word_vectors
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS
from nlp_retrieval.systems.policy.demo.writing import gold_of, judged_answers, write_collection
from nlp_retrieval.systems.policy.study import PolicyStudy


def main(arguments: list[str]) -> int:
    """Print a line for each choice of signals."""
    if len(arguments) != 1:
        sys.stdout.write("usage: python -m bench.policy.invented MODEL\n")
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        loader = BeirLoader(str(write_collection(folder / "plans")))
        train_word_vectors(loader.stream(), folder / "words", language="english")
        dense, words = FaissRetriever(SentenceTransformerEncoder(arguments[0])), WordVectorEncoder(folder / "words")

        def scored(**weights: float) -> Searcher:
            reranker = MultiSignalReranker(
                "climate",
                word_vectors=words,
                min_similarity=0,
                weights="described",
                **weights,  # type: ignore[arg-type]
            )
            return Searcher([dense], reranker=reranker)

        chosen = {"sentence vectors alone": Searcher([dense]), "signals, as described": scored()}
        chosen |= {signal: scored(**{f"{one}_weight": float(one == signal) for one in SIGNALS}) for signal in SIGNALS}
        chosen |= {f"without {signal}": scored(**{f"{signal}_weight": 0.0}) for signal in SIGNALS}
        chosen["transformer .7, patterns .15, fuzzy .15"] = scored(
            transformer_weight=0.7, word_vectors_weight=0.0, patterns_weight=0.15, fuzzy_weight=0.15
        )
        chosen["signals, as described"].index(loader, folder / "index")
        gold, profile = gold_of(folder), load_profile("climate")
        sys.stdout.write(f"{'':<40} recall@10  nDCG@10  over sentence vectors    by question 1 to 8\n")
        draw, plain = np.random.default_rng(0), np.zeros(0)
        for number, (name, searcher) in enumerate(chosen.items()):
            study = PolicyStudy(profile, searcher.open(folder / "index"))
            answers = list(study.run(folder / f"answers-{number}", min_similarity=0.0).answers())
            (judged,) = judged_answers(answers, gold).values()
            keys = [(file.metadata.subject, one.question_number) for file in answers for one in file.questions.values()]
            questions = np.array([key[1] for key in keys if key in gold])
            means = [float(judged.per_query["ndcg@10"][questions == one].mean()) for one in range(1, 9)]
            whole, values = judged.means(), judged.per_query["ndcg@10"]
            plain = plain if len(plain) else values
            countries = np.array([key[0] for key in keys if key in gold])
            gains = np.array([(values - plain)[countries == one].mean() for one in np.unique(countries)])
            low, high = np.percentile([draw.choice(gains, len(gains)).mean() for _ in range(5000)], [2.5, 97.5])
            sys.stdout.write(f"{name:<40} {whole['recall@10']:.3f}      {whole['ndcg@10']:.3f}    ")
            sys.stdout.write(f"{gains.mean():+.3f} [{low:+.3f}, {high:+.3f}]  ")
            sys.stdout.write(" ".join(f"{mean:.2f}" for mean in means) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
