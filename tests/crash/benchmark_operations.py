"""What is written beside indexes: sweeps with their cache."""

from __future__ import annotations

import json
import random
import warnings
from functools import partial
from pathlib import Path

from hashed_words import InMemory

from crash.index_operations import WORDS, corpus, index_of, index_scratch, nothing, retrievers
from crash.operation import Operation, State
from nlp_retrieval import Benchmarker, Gold, OverlapReranker, Query, Searcher
from nlp_retrieval.benchmarks.runs import REPORT, read_run_folder
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.reports.write import write_run_files

UNFINISHED = "no finished run"


def _sweep(world: Path, seed: int = 0) -> None:
    items = corpus(1)
    asked = random.Random(seed)
    queries = [Query(query_id=f"q{n}", text=" ".join(asked.choices(WORDS, k=3))) for n in range(6)]
    gold = [Gold(query_id=f"q{n}", relevance={f"d{asked.randrange(len(items))}": 1, f"d{n}": 1}) for n in range(6)]
    benchmark = Benchmarker(
        {
            "bm25": Searcher(retrievers("bm25")),
            "both": Searcher(retrievers("bm25", "flat"), reranker=OverlapReranker()),
        },
        InMemory([item.content for item in items]),
        queries,
        gold,
        [3, 5],
        index_path=index_of(world),
        latency_queries=1,
        stage_folder=world / "stages",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        write_run_files(benchmark.run(), world / "runs" / "wiki")


def _swept(world: Path) -> State:
    """The results of a finished run, read as its users read them."""
    folder = world / "runs" / "wiki"
    if not (folder / REPORT).is_file():
        return UNFINISHED
    run = read_run_folder(folder)
    told = json.loads((folder / "results.json").read_text())["configurations"]
    if {one.name: one.measures for one in run.report.configurations} != {name: one["measures"] for name, one in told.items()}:
        return "report.json and results.json are of different runs"
    trec = {path.name: path.read_text() for path in sorted((folder / "trec").iterdir()) if not path.name.startswith(".")}
    lists = {name: [[list(one) for one in ranking] for ranking in run.lists.rankings(name)] for name in run.lists.listings}
    measures = {name: {key: values.tolist() for key, values in one.per_query.items()} for name, one in run.evaluations.items()}
    return json.loads(json.dumps([(folder / "results.json").read_text(), trec, lists, measures]))


def _scratch(world: Path) -> list[str]:
    hidden = [path for folder in ("runs", "stages") for path in (world / folder).rglob(".*")]
    return index_scratch(world, ("bm25", "flat")) + sorted(str(path.relative_to(world)) for path in hidden)


def _unfinished(found: State, old: State, new: State) -> bool:
    return found == UNFINISHED


SWEEPS = [
    Operation("sweep", nothing, _sweep, _swept, _scratch, between=_unfinished),
    Operation("sweep over an earlier one", partial(_sweep, seed=5), _sweep, _swept, _scratch, between=_unfinished),
]
"""A benchmark with its stage cache and its run folder, the first of its folder and one after another."""
