"""HoVer, system by system: ``python -m bench.hover DATA CROSS_ENCODER [MODEL BASE_URL [WALKER]]`` writes ``bench/HOVER.md``.

CROSS_ENCODER is a folder with ``tokenizer.json`` and ``model.onnx``. MODEL and BASE_URL name a language model
(``openai/<model>``) and its server, WALKER another there, for the multi-hop program, which asks it to read hundreds of
passages; without them, systems that ask one are left out. Answers are kept in the work folder, so that a second run asks
nothing. What is chosen is chosen on claims of two hops that share no family with a deeper one, and judged on three.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.sweeps import Figures, configured, language_model, read_sweep, run, script
from bench.writing import page, shown, table
from nlp_retrieval import Searcher
from nlp_retrieval.benchmarks.entrants import Entry
from nlp_retrieval.benchmarks.settings import BenchmarkConfig
from nlp_retrieval.core import BaseUserQueryProcessor
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher

_HERE = Path(__file__).parent
_PERFECT, _FEWER = "perfect_recall@21", "perfect_recall@10"
_FOLDS = 5
_BM25, _GRAPH = "BM25, plain", "link graph, plain"
_RERANKERS = {"overlap": "overlap", "late_interaction": "late interaction", "cross_encoder": "cross-encoder"}

Policy = tuple[bool, str, str, int | None]
"""What becomes of a claim's sub-queries: whether the claim is searched too, the scope, the merge, and the quota."""


class WalkedQueries(BaseUserQueryProcessor):
    """The queries that a multi-hop program wrote, by claim, as sub-queries; another claim is searched as it is."""

    name = "walked-queries"

    def __init__(self, queries: dict[str, list[str]]) -> None:
        self.queries = queries

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [self.queries.get(nlq, [nlq]) for nlq in nlqs]


class Study:
    """The sweeps, run one after the other, and what came out.

    ``models`` are the settings of the language model and of the one that the multi-hop program asks; none: none is asked.
    """

    def __init__(self, data: Data, cross_encoder: Path, models: list[Config]) -> None:
        self.data, self.models = data, models
        self.values: dict[str, Any] = {
            "corpus": str(data.corpus),
            "claims": str(data.claims),
            "index": str(data.work / "wiki-index"),
            "stages": str(data.work / "hover" / "stages"),
            "cross_encoder": str(cross_encoder),
        }
        self.blends, self.policies = self._choose()
        best = max(self.policies, key=lambda policy: self.policies[policy])
        self.values |= dict(zip(("keep_query", "scope", "merge", "quota"), best, strict=True))
        for name, scores in self.blends.items():
            self.values["cross_encoder_blend" if name == "cross_encoder" else name] = max(scores, key=lambda one: scores[one])
        rules = {"name": "entity_phrases", "keep_query": best[0]}
        plain = self.sweep("systems")
        self.all = plain.beside(self.sweep("phrases", "rules", processor=rules, hops=None).named("EntityPhrases: {}"))
        self.asked = self._asked() if models else None
        self.deep = self.all.group("hops=3")
        if self.asked is not None:
            self.deep = self.deep.beside(self.asked.group("hops=3"))

    def sweep(
        self, name: str, folder: str = "", change: Callable[[BenchmarkConfig], BenchmarkConfig] | None = None, **values: Any
    ) -> Figures:
        """Run a sweep in a folder of its own."""
        place = self.data.work / "hover" / (folder or name)
        config = configured(read_sweep(_HERE / f"{name}.yaml", **self.values, **values), place)
        return run(change(config) if change else config, place)

    def choosing(self, two_hops: Figures) -> Figures:
        """Of the claims of two hops those that share no family with a deeper one."""
        return two_hops.only(np.array([family not in self.deeper for family in two_hops.families]))

    def _choose(self) -> tuple[dict[str, dict[str, float]], dict[Policy, float]]:
        self.deeper = {claim.family for claim in self.data.hover() if int(str(claim.metadata["hops"])) > 2}
        blends: dict[str, dict[str, float]] = {name: {} for name in _RERANKERS}
        found = self.choosing(self.sweep("rerankers"))
        for (name, blend), score in _means(found, lambda config: (config["reranker"]["name"], config["reranker"]["blend"])):
            blends[name][blend] = score
        return blends, dict(_means(self.choosing(self.sweep("subqueries")), _policy))

    def _asked(self) -> Figures:
        """Everything that asks a language model, on the claims of three and four hops."""
        lm, walker = self.models
        decomposition = {"name": "claim_decomposition", "lm": lm, "keep_query": self.values["keep_query"]}
        asked = self.sweep("phrases", "decomposed", processor=decomposition, hops=[3, 4]).named("ClaimPhrases: {}")
        asked = asked.beside(self.sweep("programs", lm=lm, walker=walker))
        walked = self.sweep("phrases", "walked", self._walked, processor=None, hops=[3, 4])
        return asked.beside(walked.named("queries of HoverMultiHop: {}"))

    def _walked(self, config: BenchmarkConfig) -> BenchmarkConfig:
        """Let searchers ask the queries that the multi-hop program wrote; its answers are kept, and no model is asked."""
        settings = read_sweep(_HERE / "programs.yaml", **self.values, lm=self.models[0], walker=self.models[1])
        walker = configured(settings, self.data.work / "hover" / "programs").searchers["HoverMultiHop: BM25, plain"]
        assert isinstance(walker, MultiHopSearcher)
        program = walker.open(config.index_path).as_program()
        texts = [query.text for query in config.loaded().queries]
        processor = WalkedQueries({text: list(dict.fromkeys(program(claim=text).queries)) for text in texts})
        made: dict[str, Entry] = {}
        for name, one in config.searchers.items():
            assert isinstance(one, Searcher)
            settings = {"scope": one.scope, "depth": one.depth, "quota": one.quota}
            made[name] = Searcher(one.retrievers, processor=processor, reranker=one.reranker, **settings)
        return replace(config, searchers=made)

    def chosen_in_folds(self) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
        """Per fold of three-hop claims the row that is best on the others: its values on that fold, and the rows' names."""
        numbers = family_numbers(self.deep.families)
        order = list(range(int(numbers.max()) + 1))
        random.Random(0).shuffle(order)
        folds = np.array(order)[numbers] % _FOLDS
        values = {name: np.zeros(len(folds)) for name in (_PERFECT, _FEWER)}
        names = []
        for fold in range(_FOLDS):
            names.append(top_k(self.deep.only(folds != fold)))
            for name, held in values.items():
                held[folds == fold] = self.deep.values[names[-1]][name][folds == fold]
        return values, names


def _policy(config: Config) -> Policy:
    merge = next(iter(config["retrievers"].values()))["merge"]
    return config["processor"]["keep_query"], config["scope"], merge, config["quota"]


def _means(figures: Figures, key: Callable[[Config], Any]) -> Iterable[tuple[Any, float]]:
    """Per choice the mean of perfect recall and recall over the systems that it was tried in."""
    scores: dict[Any, list[float]] = {}
    for name, result in figures.results.items():
        reached = (figures.mean(name, _PERFECT) + figures.mean(name, "recall@21")) / 2
        scores.setdefault(key(result.config), []).append(reached)
    return [(choice, float(np.mean(reached))) for choice, reached in scores.items()]


def top_k(figures: Figures) -> str:
    """The name of the best configuration."""
    ranked = (_PERFECT, "recall@21", _FEWER, "perfect_recall@5")
    return max(figures.values, key=lambda name: tuple(figures.mean(name, measure) for measure in ranked))


def report(study: Study) -> str:
    """The whole document."""
    of = {hops: study.all.group(f"hops={hops}").families for hops in (2, 3, 4)}
    n_families = {hops: int(family_numbers(of[hops]).max()) + 1 for hops in (2, 3)}
    two_hops = study.choosing(study.all.group("hops=2"))
    best = top_k(two_hops)
    folds, names = study.chosen_in_folds()
    text = (_HERE / "page.md").read_text("utf-8")
    return page(
        text if study.asked else text.partition("## What the language model adds")[0],
        arguments=" MODEL BASE_URL WALKER" * bool(study.models),
        n_claims=len(study.all.families),
        n_items=f"{sum(1 for _ in study.data.corpus.open('rb')):,}",
        n_two=len(of[2]),
        n_three=len(of[3]),
        n_four=len(of[4]),
        families_two=n_families[2],
        families_three=n_families[3],
        model=_model(study, len(of[3]) + len(of[4])),
        n_choosing=len(two_hops.families),
        blends="; ".join(
            f"{_RERANKERS[name]}: " + ", ".join(f"{blend} {score:.3f}" for blend, score in scores.items())
            for name, scores in study.blends.items()
        ),
        policies=table(["sub-queries", "two-hop claims"], {_said(one): [f"{by:.3f}"] for one, by in study.policies.items()}),
        rows=_rows(study),
        chosen=best,
        chosen_perfect=study.deep.cell(best, _PERFECT),
        chosen_fewer=study.deep.cell(best, _FEWER),
        folds_perfect=shown(folds[_PERFECT], study.deep.families),
        folds_fewer=shown(folds[_FEWER], study.deep.families),
        picked="; ".join(f"{name} ({names.count(name)} of {_FOLDS})" for name in dict.fromkeys(names)),
        graph_perfect=study.deep.cell(_GRAPH, _PERFECT),
        graph_fewer=study.deep.cell(_GRAPH, _FEWER),
        added=_added(study),
    )


def _model(study: Study, n_asked: int) -> str:
    if not study.models:
        return "No language model was given; rows that ask one are missing."
    lm, walker = study.models
    return (
        f"The language model is {lm['model']} on a server of this machine, temperature 0, at most {lm['max_tokens']} tokens an "
        f"answer; the multi-hop program asks {walker['model']} and shows it 400 characters of each passage, because the "
        f"machine reads slowly. Rows that ask a model are of the {n_asked} claims of three and four hops."
    )


def _said(policy: Policy) -> str:
    keep_query, scope, merge, quota = policy
    how = f"merged by {merge}" if scope == "pooled" else f"interleaved, quota {quota or 'even'}"
    return f"{'the claim and its phrases' if keep_query else 'phrases alone'}, {how}"


def _rows(study: Study) -> str:
    rows: dict[str, list[str]] = {}
    for figures in (study.all, *([study.asked] if study.asked else [])):
        two, three, four = (figures.group(f"hops={hops}") for hops in (2, 3, 4))
        for name, result in figures.results.items():
            system, _, reranker = name.rpartition(", ")
            cost = result.cost.language_model if result.cost else None
            rows[f"{system} | {'-' if reranker == 'plain' else reranker}"] = [
                *(two.cell(name, measure) if two.families else "-" for measure in (_PERFECT, "recall@21")),
                *(three.cell(name, measure) for measure in (_FEWER, _PERFECT, "recall@21")),
                f"{int(four.values[name][_PERFECT].sum())} of {len(four.families)}",
                f"{cost.search_answers / len(figures.families):.1f}" if cost else "-",
                str(cost.degraded) if cost else "-",
            ]
    of = {2: ("perfect@21", "recall@21"), 3: ("perfect@10", "perfect@21", "recall@21"), 4: ("complete",)}
    measured = [f"{hops} hops, {measure}" for hops, measures in of.items() for measure in measures]
    return table(["candidates", "reranker", *measured, "questions a claim", "degraded"], rows)


def _added(study: Study) -> str:
    rows = {}
    for name in study.asked.values if study.asked else ():
        moved = study.deep.values[name][_PERFECT] - study.deep.values[_BM25][_PERFECT]
        against = ((_BM25, _PERFECT), (_GRAPH, _PERFECT), (_GRAPH, _FEWER))
        gains = [study.deep.gain(name, other, measure) for other, measure in against]
        rows[name] = [*gains, f"{int((moved > 0).sum())} / {int((moved < 0).sum())}"]
    minus = ("BM25, perfect@21", "link graph, perfect@21", "link graph, perfect@10")
    return table(["", *(f"minus {other}" for other in minus), "gained / lost on BM25"], rows)


def _measured(data: Data, arguments: list[str]) -> str:
    cross_encoder, *asked = arguments
    models = (
        [language_model(data, model, asked[1]) for model in (asked[0], asked[-1] if asked[2:] else asked[0])] if asked else []
    )
    return report(Study(data, Path(cross_encoder).absolute(), models))


if __name__ == "__main__":
    told = "bench.hover DATA CROSS_ENCODER [MODEL BASE_URL [WALKER]]"
    sys.exit(script(told, [1, 3, 4], _HERE.parent / "HOVER.md", _measured))
