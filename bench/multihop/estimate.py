"""How far the vectors of distractors are off: ``python -m bench.multihop.estimate DATA MODEL [PASSAGES]`` prints it.

In the haystacks of :mod:`bench.haystack` the vector of a distractor is the mean of those of the two passages that it is made
of. Here a tenth of the distractors are encoded for real, for each way of naming them, and stand beside the collection in dense
retrieval: once with the estimated vectors, once with the real ones. PASSAGES takes so many of the collection
(:mod:`bench.samples`), with their distractors, in place of all: what takes hours then takes minutes.
"""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.haystack import Naming, haystack
from bench.samples import wiki_sample
from bench.writing import shown, table
from nlp_retrieval import BeirLoader, HoverLoader, SentenceTransformerEncoder
from nlp_retrieval.core import BaseQueryLoader
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.evaluation.gold import relevant_documents, rows_of
from nlp_retrieval.evaluation.resampling import bootstrap_interval

_PART = 10
_AT = 5
_SEED = 20261124


class Estimate:
    """A tenth of the distractors of a collection, by their estimated and by their real vectors.

    Args:
        passages: the collection.
        vectors: of its passages.
        encoder: that gave them.
        naming: of the distractors.
    """

    def __init__(
        self, passages: list[SearchableItem], vectors: Vectors, encoder: SentenceTransformerEncoder, naming: Naming
    ) -> None:
        distractors = list(haystack(passages, naming))[len(passages) :]
        chosen = np.random.default_rng(_SEED).permutation(len(distractors))[: len(distractors) // _PART]
        made = [distractors[row] for row in np.sort(chosen).tolist()]
        ones, others = np.array([rows for _, rows in made]).T
        self.estimated = _directions(vectors[ones] + vectors[others])
        self.real = _directions(encoder.encode_passages([item.text for item, _ in made]))
        self.cosines = np.einsum("ij,ij->i", self.estimated, self.real)

    def recalls(self, vectors: Vectors, queries: Vectors, gold: list[list[list[int]]]) -> tuple[NDArray[np.float64], ...]:
        """Return recall among the collection and these distractors, estimated and real, per query."""
        return tuple(_recalls(np.concatenate([vectors, more]), queries, gold) for more in (self.estimated, self.real))


def _directions(vectors: Vectors) -> Vectors:
    directions: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return directions


def _recalls(vectors: Vectors, queries: Vectors, gold: list[list[list[int]]]) -> NDArray[np.float64]:
    recalls = []
    for query, documents in zip(queries, gold, strict=True):
        first = set(np.argsort(-(vectors @ query), kind="stable")[:_AT].tolist())
        recalls.append(sum(not first.isdisjoint(rows) for rows in documents) / len(documents))
    return np.array(recalls)


def main(arguments: list[str]) -> int:
    """Encode what is not encoded yet, and print two tables."""
    if len(arguments) not in (2, 3) or not all(map(str.isdigit, arguments[2:])) or not Data.of(arguments[0]).corpus.is_file():
        print("usage: python -m bench.multihop.estimate DATA MODEL [PASSAGES]   (DATA holds wiki/)")
        return 2
    data, encoder = Data.of(arguments[0]), SentenceTransformerEncoder(arguments[1])
    corpus = wiki_sample(data, int(arguments[2])) if len(arguments) == 3 else BeirLoader(data.corpus)
    sources = {str(claim.family) for claim in HoverLoader(data.claims).queries()}
    sets: dict[str, BaseQueryLoader] = {
        "HotpotQA": corpus if len(arguments) == 3 else BeirLoader(data.root / "wiki" / "hotpotqa")
    }
    sets["HoVer"] = HoverLoader(data.claims, hops=[2, 3])
    passages = list(corpus.stream())
    kept = data.work / f"estimate-{len(passages)}.npy"
    if not kept.exists():
        np.save(kept, encoder.encode_passages([item.text for item in passages]))
    vectors = _directions(np.load(kept))
    print(f"{len(passages):,} passages, {9 * len(passages) // _PART:,} distractors", flush=True)
    likeness, found = {}, {}
    ids, titles = [item.item_id for item in passages], [item.title for item in passages]
    for naming in get_args(Naming):
        estimate = Estimate(passages, vectors, encoder, naming)
        low, middle, high = np.percentile(estimate.cosines, [5, 50, 95])
        likeness[f"{naming} names"] = [f"{estimate.cosines.mean():.3f}", f"{low:.3f}", f"{middle:.3f}", f"{high:.3f}"]
        for name, loader in sets.items():
            asked = [query for query in loader.queries() if query.query_id not in sources]
            judged = {one.query_id: one for one in loader.gold()}
            documents = relevant_documents([judged[query.query_id] for query in asked])
            rows = rows_of({key for one in documents for key in one}, ids, titles)
            gold = [[list(map(int, rows[key])) for key in one] for one in documents]
            queries = _directions(encoder.encode_queries([query.text for query in asked]))
            families = [query.family for query in asked]
            estimated, real = estimate.recalls(vectors, queries, gold)
            low, high = bootstrap_interval(estimated - real, families, bounds=(-1, 1))
            gain = f"{(estimated - real).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
            alone = _recalls(vectors, queries, gold)
            found[f"{name}, {naming} names"] = [
                f"{alone.mean():.3f}",
                *(shown(one, families) for one in (estimated, real)),
                gain,
            ]
    print(table(["cosine of estimated and real", "mean", "5%", "50%", "95%"], likeness))
    print(table([f"dense, recall@{_AT}", "collection alone", "estimated", "real", "estimated minus real"], found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
