"""What a sweep costs that shares its stages: 24 configurations against each distinct stage by hand, once."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from bench.common import Data, Row, at_most, noted
from nlp_retrieval import (
    BaseFusion,
    BaseReranker,
    BaseRetriever,
    BeirLoader,
    Benchmarker,
    Bm25sRetriever,
    CombMNZ,
    CombSUM,
    FaissRetriever,
    OverlapReranker,
    ReciprocalRankFusion,
    RetrievalWarning,
    WeightedSum,
)
from nlp_retrieval.benchmarks.cost.measuring import Sample
from nlp_retrieval.core.candidates import CandidateBatch, Rows
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.search.results import to_results

Sets = Mapping[str, Mapping[str, BaseRetriever]]

K_VALUES = (10, 20)
DEPTH = 100
TIMED = 200
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
    lexical, tuned, dense = Bm25sRetriever(backend="numba"), Bm25sRetriever(k1=1.6, b=0.75, backend="numba"), FaissRetriever()
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
    by_hand = _StagesByHand(sets, next(iter(searchers.values())).opened, [query.text for query in queries])
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
    hand_s, timed_s = by_hand.seconds(), by_hand.timed_seconds()
    own_s = by_hand.own_seconds()
    sweep_s = run(stages)
    again_s = run(stages)
    shutil.rmtree(stages)
    detail = (
        f"{sweep_s:.1f} s; retrieving and scoring {hand_s:.1f} s for all queries, and {timed_s:.1f} s to time {TIMED} of them "
        f"one by one; fusing, blending and items of each configuration {own_s:.1f} s for both; "
        f"{len(searchers)} configurations, {len(queries):,} queries, evaluation counted"
    )
    again = f"{again_s:.1f} s: opening, and fusing, blending, cutting, items and evaluation for each configuration"
    return [
        at_most("a sweep against its distinct stages by hand, each once", 1.3, sweep_s / (hand_s + timed_s + own_s), detail),
        noted("the same sweep again, all stages on disk", f"{again_s / sweep_s:.2f} of the first ({again})"),
    ]


class _StagesByHand:
    """Every distinct stage of a sweep, by the components themselves."""

    def __init__(self, sets: Sets, generation: Generation, questions: list[str]) -> None:
        self._sets = sets
        self._generation = generation
        self._questions = questions
        self._opened = {label: one.open(generation) for made in sets.values() for label, one in made.items()}
        self._sample = Sample.draw(questions, TIMED, SEED)
        self._found: dict[str, CandidateBatch] = {}
        _ = [self._retrieve(label, questions[:2]) for label in self._opened]  # models are open now

    def seconds(self) -> float:
        """Candidates of each retriever for all questions, and scores of each reranker for the pairs of all sets."""
        begin = time.perf_counter()
        self._found = {label: self._retrieve(label, self._questions) for label in self._opened}
        retrieving = time.perf_counter() - begin
        pools = [self._pool(list(self._opened), number) for number in range(len(self._questions))]
        asked = [question for question, rows in zip(self._questions, pools, strict=True) for _ in rows]
        rows = np.concatenate(pools)
        begin = time.perf_counter()
        for reranker in RERANKERS.values():
            reranker.scored(asked, self._generation.items.items(rows))
        return retrieving + time.perf_counter() - begin

    def timed_seconds(self) -> float:
        """The same for the sample, one question at a time; scores for the pairs of each set."""
        seconds = 0.0
        for label in self._opened:
            seconds += self._one_by_one(partial(self._retrieve_one, label))
        for made, reranker in product(self._sets.values(), RERANKERS.values()):
            seconds += self._one_by_one(partial(self._score_one, reranker, list(made)))
        return seconds

    def own_seconds(self) -> float:
        """Fusing for each set and fusion, and blending and items for each configuration: in one call, and one by one."""
        seconds = 0.0
        for made, fusion in product(self._sets.values(), FUSIONS.values()):
            found = {label: self._found[label] for label in made}
            seconds += self._composed(found, fusion)
            for place in self._sample.places:
                alone = {}
                for label, batch in found.items():
                    begin, end = batch.offsets[[place, place + 1]]
                    alone[label] = batch.take(np.arange(begin, end), np.array([0, end - begin]))
                seconds += self._composed(alone, fusion)
        return seconds

    def _composed(self, found: Mapping[str, CandidateBatch], fusion: BaseFusion) -> float:
        """Seconds of what follows retrieval, scores of rerankers being at hand."""
        begin = time.perf_counter()
        batch = fusion.fuse(found)
        for reranker in RERANKERS.values():
            to_results(reranker.reordered(batch, {"score": batch.scores}).head(K_VALUES[-1]), self._generation.items)
        return time.perf_counter() - begin

    def _one_by_one(self, run: Callable[[int], object]) -> float:
        begin = time.perf_counter()
        for place in self._sample.places:
            run(place)
        return time.perf_counter() - begin

    def _retrieve(self, label: str, questions: Sequence[str]) -> CandidateBatch:
        return self._opened[label].candidates([[question] for question in questions], DEPTH, len(self._generation.items))

    def _retrieve_one(self, label: str, place: int) -> CandidateBatch:
        return self._retrieve(label, [self._questions[place]])

    def _score_one(self, reranker: BaseReranker, labels: list[str], place: int) -> None:
        rows = self._pool(labels, place)
        reranker.scored([self._questions[place]] * len(rows), self._generation.items.items(rows))

    def _pool(self, labels: list[str], number: int) -> Rows:
        """The rows that retrievers found for a question, each once."""
        parts = []
        for label in labels:
            begin, end = self._found[label].offsets[[number, number + 1]]
            parts.append(self._found[label].rows[begin:end])
        pool: Rows = np.unique(np.concatenate(parts))
        return pool
