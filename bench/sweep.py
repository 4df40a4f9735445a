"""What a sweep costs that shares its stages: 24 configurations against each distinct stage by hand, and their samples timed."""

from __future__ import annotations

import random
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np

from bench.common import Data, Row, at_most, noted
from nlp_retrieval import BeirLoader, Benchmarker, Bm25Retriever, FaissRetriever, OverlapReranker
from nlp_retrieval.core import BaseReranker, BaseRetriever
from nlp_retrieval.core.candidates import Hits, Rows
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.search.joining import BaseFusion, CombMNZ, CombSUM, ReciprocalRankFusion, WeightedSum
from nlp_retrieval.errors import RetrievalWarning

Sets = Mapping[str, Mapping[str, BaseRetriever]]

K_VALUES = (10, 20)
DEPTH = 100
TIMED = 100
SEED = 0

FUSIONS: dict[str, BaseFusion] = {
    "rrf": ReciprocalRankFusion(),
    "weighted": WeightedSum(normalization="zscore"),
    "combsum": CombSUM(),
    "combmnz": CombMNZ(),
}
RERANKERS: dict[str, BaseReranker] = {
    "overlap": OverlapReranker(blend="rank"),
    "entities": OverlapReranker(entity_weight=1.0, phrase_weight=0.0, blend="score"),
}


def measure(data: Data) -> list[Row]:
    """A sweep over the HotpotQA questions, and the same once more."""
    lexical, tuned, dense = Bm25Retriever(backend="numba"), Bm25Retriever(k1=1.6, b=0.75, backend="numba"), FaissRetriever()
    sets = {
        "lexical and dense": {"lexical": lexical, "dense": dense},
        "tuned and dense": {"tuned": tuned, "dense": dense},
        "all": {"lexical": lexical, "tuned": tuned, "dense": dense},
    }
    loader = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
    queries, gold = loader.queries()[:1000], loader.gold()
    settings = {"retrievers": sets["all"], "depth": DEPTH}
    searchers = Benchmarker.grid(settings, {"retrievers": sets, "fusion": FUSIONS, "reranker": RERANKERS})
    index, stages = data.work / "wiki-index", data.work / "stages"
    for searcher in searchers.values():
        searcher.index(BeirLoader(str(data.corpus)), index)
    asked = {query.query_id for query in queries}
    judged = [one for one in gold if one.query_id in asked]

    def run(folder: Path) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetrievalWarning)
            begin = time.perf_counter()
            Benchmarker(
                searchers,
                BeirLoader(str(data.corpus)),
                queries,
                judged,
                K_VALUES,
                index_path=index,
                latency_queries=TIMED,
                seed=SEED,
                stage_folder=folder,
            ).run()
            return time.perf_counter() - begin

    shutil.rmtree(stages, ignore_errors=True)
    spent = _by_hand(sets, open_generation(index), [query.text for query in queries])
    hand_s, timed_s, own_s = spent["all"], spent["timed"], spent["own"]
    sweep_s = run(stages)
    again_s = run(stages)
    shutil.rmtree(stages)
    detail = (
        f"{sweep_s:.1f} s; retrieving and scoring {hand_s:.1f} s for all queries, each stage once, and {timed_s:.1f} s for "
        f"{TIMED} of them one by one, by each configuration; fusing, blending and items of each {own_s:.1f} s for both; "
        f"{len(searchers)} configurations, {len(queries):,} queries, evaluation counted"
    )
    again = f"{again_s:.1f} s: opening, and fusing, blending, cutting, items and evaluation for each configuration"
    ratio = sweep_s / (hand_s + timed_s + own_s)
    return [
        at_most("a sweep against its distinct stages and timed samples by hand", 1.3, ratio, detail),
        noted("the same sweep again, all stages on disk", f"{again_s / sweep_s:.2f} of the first ({again})"),
    ]


def _by_hand(sets: Sets, generation: Generation, questions: list[str]) -> dict[str, float]:
    """Seconds of the stages of a sweep, by the components themselves.

    ``all``: candidates of each retriever for all questions, and scores of each reranker for the pairs of all sets; ``timed``:
    those of each configuration for the sample, one question at a time; ``own``: fusing for each set and fusion, and blending
    and items for each configuration, in one call and one by one, scores of rerankers being at hand.
    """
    opened = {label: one.open(generation) for made in sets.values() for label, one in made.items()}
    places, items = random.Random(SEED).sample(range(len(questions)), TIMED), generation.items
    spent = dict.fromkeys(("all", "timed", "own"), 0.0)

    @contextmanager
    def timing(what: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        spent[what] += time.perf_counter() - begin

    def retrieve(label: str, asked: Sequence[str]) -> Hits:
        return opened[label].candidates([[question] for question in asked], DEPTH)

    def pool(labels: Iterable[str], at: int) -> Rows:
        return np.unique(np.concatenate([found[label].rows[slice(*found[label].offsets[at : at + 2])] for label in labels]))

    def part(batch: Hits, at: int) -> Hits:
        begin, end = batch.offsets[[at, at + 1]]
        return batch.take(np.arange(begin, end), np.array([0, end - begin]))

    for label in opened:
        retrieve(label, questions[:2])  # models are open now
    with timing("all"):
        found = {label: retrieve(label, questions) for label in opened}
    pools = [pool(opened, at) for at in range(len(questions))]
    asked, rows = [questions[at] for at, pooled in enumerate(pools) for _ in pooled], np.concatenate(pools)
    with timing("all"):
        for reranker in RERANKERS.values():
            reranker.scored(asked, items.items(rows))
    with timing("timed"):
        for made, _, reranker, at in product(sets.values(), FUSIONS, RERANKERS.values(), places):
            for label in made:
                retrieve(label, [questions[at]])
            pooled = pool(made, at)
            reranker.scored([questions[at]] * len(pooled), items.items(pooled))
    for made, fusion in product(sets.values(), FUSIONS.values()):
        whole = {label: found[label] for label in made}
        for each in (whole, *({label: part(batch, at) for label, batch in whole.items()} for at in places)):
            with timing("own"):
                fused = fusion.fuse(each)
                for reranker in RERANKERS.values():
                    reranker.reordered(fused, {"score": fused.scores}).head(K_VALUES[-1]).results(items.items)
    return spent
