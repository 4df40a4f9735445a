"""HoVer, system by system: what is measured, and how a configuration is chosen without looking at what it is judged by."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.haystack import RememberedQueries, wiki_index
from bench.hover_systems import POLICIES, Parts, Policy, System, rerankers
from bench.stored_tokens import MODEL, StoredTokens, exact_index, tokens_folder
from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import Query, RetrievalResult
from nlp_retrieval.core.search.reranker import BaseReranker, Blend
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.evaluation.bootstrap import bootstrap_interval, family_numbers
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.lm.counting import CallCounts, record_calls
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.loaders.beir import BeirLoader
from nlp_retrieval.loaders.hover import HoverLoader

K = 21
CUTOFFS = (5, 10, K)
PERFECT = "perfect_recall@21"
FOLDS = 5
PASSAGE_CHARACTERS = 400
"""Of each passage that the language model is shown: a small model on two cores reads 50 tokens a second."""
_BLENDS: tuple[Blend, ...] = ("rank", "score")

Values = dict[str, NDArray[np.float64]]
"""A measure per claim, by the measure's name; NaN where the claim was not searched for."""


class WalkedQueries(BaseUserQueryProcessor):
    """The queries that a multi-hop program wrote, as sub-queries for other systems.

    ``queries`` has them by claim, the claim first; another claim is searched as it is.
    """

    name = "walked-queries"

    def __init__(self) -> None:
        self.queries: dict[str, list[str]] = {}

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [self.queries.get(nlq, [nlq]) for nlq in nlqs]


@dataclass(frozen=True)
class Measured:
    """One row.

    Args:
        system: name.
        reranker: name, or "".
        values: per claim.
        asks: whether a language model was asked.
        counts: what it was asked.
        seconds: of the search.
    """

    system: str
    reranker: str
    values: Values
    asks: bool
    counts: CallCounts
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.system} + {self.reranker}" if self.reranker else self.system


class Study:
    """All measurements.

    Args:
        data: where the collections are.
        cross_encoder: folder of the cross-encoder.
        lm: the language model, if there is one.
        walker: the one that the multi-hop program asks.
    """

    def __init__(self, data: Data, cross_encoder: Path, lm: LanguageModel | None, walker: LanguageModel | None = None) -> None:
        self.begin = time.perf_counter()
        self.lm = lm
        self.walker = walker or lm
        loader = HoverLoader(str(data.root / "wiki" / "hover" / "hover_dev_subset.json"))
        self.claims: list[Query] = loader.queries()
        _, exact, items = exact_index(data)
        texts = [item.text for item in items]
        tokens = StoredTokens(ColbertEncoder(MODEL), str(tokens_folder(exact)), texts=texts)
        dense = RememberedQueries(SentenceTransformerEncoder())
        self.parts = Parts(dense, tokens)
        self.path = wiki_index(data, dense)
        Searcher(self.parts.colbert()).index(BeirLoader(str(data.corpus)), self.path)
        table = open_generation(self.path).items
        self.row_of = {item_id: row for row, item_id in enumerate(table.ids())}
        self.evaluator = RetrievalEvaluator(loader.gold(), table.ids(), table.titles(), CUTOFFS)
        self.hops = np.array([int(str(query.metadata["hops"])) for query in self.claims])
        self.families = [query.family for query in self.claims]
        deep = {family for family, hops in zip(self.families, self.hops, strict=True) if hops > 2}
        #: where configurations are chosen: two hops, no family in common with deeper claims
        self.choosing = np.array([h == 2 and f not in deep for f, h in zip(self.families, self.hops, strict=True)])
        self.rerankers = rerankers(tokens, cross_encoder, data.work)
        self.blends: dict[str, dict[str, float]] = {}
        self.policies: dict[str, float] = {}
        self.rows: list[Measured] = []

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    def tell(self, what: str) -> None:
        print(f"[{self.seconds:5.0f} s] {what}", flush=True)

    def choose_blends(self) -> None:
        """Take for each reranker the blend that is best on the two-hop claims, over BM25 and over BM25 + dense."""
        plain = {system.name: system for system in self.parts.plain()}
        for name, reranker in self.rerankers.items():
            self.blends[name] = {}
            for blend in _BLENDS:
                reached = [
                    self._chosen_by(self.search(plain[system].searcher(reranker.blended(blend))))
                    for system in ("BM25", "BM25 + dense")
                ]
                self.blends[name][blend] = float(np.mean(reached))
                reranker.save()
            best = max(_BLENDS, key=lambda blend: self.blends[name][blend])
            self.rerankers[name] = reranker.blended(best)
            self.tell(f"{name}: {self.blends[name]}")

    def choose_policy(self) -> Policy:
        """Take what becomes of sub-queries from the two-hop claims, with phrases found by rules."""
        scores: dict[Policy, float] = {}
        for policy in POLICIES:
            over = self.parts.phrases_by_rules(policy)[:2]
            scores[policy] = float(np.mean([self._chosen_by(self.search(system.searcher())) for system in over]))
            self.policies[str(policy)] = scores[policy]
            self.tell(f"{policy}: {scores[policy]:.3f}")
        return max(scores, key=lambda policy: scores[policy])

    def _chosen_by(self, values: Values) -> float:
        return float(sum(values[name][self.choosing].mean() for name in (PERFECT, "recall@21")) / 2)

    def search(self, searcher: Searcher, deep: bool = False) -> Values:
        """What a searcher is worth, on all claims or on those of more than two hops."""
        asked = [query.text for query, hops in zip(self.claims, self.hops, strict=True) if not deep or hops > 2]
        return self.judged(searcher.open(self.path).search(asked, K), deep)

    def judged(self, found: Sequence[Sequence[RetrievalResult]], deep: bool) -> Values:
        """Judge what was found; the claims that were left out have NaN."""
        asked = self.hops > 2 if deep else np.ones(len(self.claims), bool)
        lists: list[list[int]] = [[] for _ in self.claims]
        for place, results in zip(np.flatnonzero(asked).tolist(), found, strict=True):
            lists[place] = [self.row_of[result.item.item_id] for result in results]
        values = self.evaluator.evaluate_lists(lists).per_query
        return {name: np.where(asked, one, np.nan) for name, one in values.items()}

    def keep(self, system: str, reranker: str, asks: bool, search: Callable[[], Values]) -> None:
        begin = time.perf_counter()
        with record_calls() as calls:
            values = search()
        for one in self.rerankers.values():
            one.save()
        row = Measured(system, reranker, values, asks, calls.counts, time.perf_counter() - begin)
        self.rows.append(row)
        self.tell(f"{row.name}: 3 hops {values[PERFECT][self.hops == 3].mean():.3f}, {calls.counts}")

    def measure(self, system: System) -> None:
        """Measure a system without a reranker, or with its own, and with each of the others."""
        chosen: dict[str, BaseReranker | None] = {**self.rerankers}
        chosen = chosen | {"overlap": system.reranker} if system.reranker else {"": None, **chosen}
        for name, reranker in chosen.items():
            self.keep(system.name, name, system.asks, partial(self.search, system.searcher(reranker), system.asks))

    def walk(self, lm: LanguageModel, policy: Policy) -> None:
        """Measure the multi-hop program over BM25, and what its queries find elsewhere."""
        from nlp_retrieval.pipelines.hover.hops import walk
        from nlp_retrieval.pipelines.hover.multi_hop import HOPS, PER_HOP, HoverMultiHop

        searcher = Searcher(self.parts.bm25()).open(self.path)
        asked = [query.text for query, hops in zip(self.claims, self.hops, strict=True) if hops > 2]
        program = HoverMultiHop(searcher, lm, HOPS, PER_HOP, PASSAGE_CHARACTERS)
        wrote = WalkedQueries()
        found: list[list[RetrievalResult]] = []

        def first() -> Values:
            for one in walk(asked, searcher.search, program.summarize, program.ask, lm, PER_HOP, PASSAGE_CHARACTERS):
                wrote.queries[one.claim] = list(dict.fromkeys(one.queries))
                found.append(one.results()[:K])
            return self.judged(found, deep=True)

        self.keep("HoverMultiHop: BM25", "", True, first)
        for name, reranker in self.rerankers.items():
            self.keep("HoverMultiHop: BM25", name, True, partial(self._reranked, reranker, asked, found))
        for system in self.parts.by_phrases("queries of HoverMultiHop", wrote, policy, asks=True):
            self.measure(system)

    def _reranked(self, reranker: BaseReranker, asked: list[str], found: list[list[RetrievalResult]]) -> Values:
        return self.judged(reranker.rerank(asked, found, K), deep=True)

    def folds(self, hops: int = 3) -> NDArray[np.int64]:
        """The fold of each claim with so many hops; families stay together."""
        numbers = family_numbers([family for family, h in zip(self.families, self.hops, strict=True) if h == hops])
        order = list(range(int(numbers.max()) + 1))
        random.Random(0).shuffle(order)
        return np.array(order)[numbers] % FOLDS

    def chosen_in_folds(self, rows: Sequence[Measured]) -> tuple[Values, list[str]]:
        """Per fold of three-hop claims, the row that is best on the others; its values on that fold, and the rows' names."""
        deep, folds = self.hops == 3, self.folds()
        values = {name: np.zeros(int(deep.sum())) for name in rows[0].values}
        names = []
        for fold in range(FOLDS):
            best = max(rows, key=lambda row: _rank(row.values, deep, folds != fold))
            names.append(best.name)
            for name, held in values.items():
                held[folds == fold] = best.values[name][deep][folds == fold]
        return values, names

    def chosen_on_two_hops(self) -> Measured:
        """The best row on two-hop claims, of those that were measured there."""
        rows = [row for row in self.rows if not row.asks]
        return max(rows, key=lambda row: _rank(row.values, self.choosing))


def _rank(values: Values, *masks: NDArray[np.bool_]) -> tuple[float, ...]:
    found = []
    for name in (PERFECT, "recall@21", "perfect_recall@10", "perfect_recall@5"):
        kept = values[name]
        for mask in masks:
            kept = kept[mask]
        found.append(float(kept.mean()))
    return tuple(found)


def paired(row: Measured, other: Measured, name: str, study: Study) -> tuple[float, float, float]:
    """How much higher a row stands on three-hop claims, and the interval of that over families."""
    deep = study.hops == 3
    difference = (row.values[name] - other.values[name])[deep]
    families = [family for family, kept in zip(study.families, deep, strict=True) if kept]
    return float(difference.mean()), *bootstrap_interval(difference, families, bounds=(-1, 1))


def study(data: Data, cross_encoder: Path, lm: LanguageModel | None, walker: LanguageModel | None) -> Study:
    """Measure everything."""
    done = Study(data, cross_encoder, lm, walker)
    done.choose_blends()
    policy = done.choose_policy()
    for system in [*done.parts.plain(), *done.parts.phrases_by_rules(policy)]:
        done.measure(system)
    if lm is not None:
        for system in done.parts.phrases_by_model(lm, policy):
            done.measure(system)
        done.walk(walker or lm, policy)
    return done
