"""Answers by searcher: ``python -m bench.qa DATA MODEL BASE_URL [QUESTIONS]`` writes ``bench/QA.md``.

MODEL (``openai/<model>``) and BASE_URL name a language model and its server; QUESTIONS is how many HotpotQA questions are
drawn, 50 by default. Answers are kept in the work folder, so that a second run asks nothing.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

from bench.common import Data
from bench.sweeps import Figures, configured, language_model, read_sweep, run, script
from bench.writing import page, table
from nlp_retrieval import BeirLoader, Gold, Query
from nlp_retrieval.core.components.component import Config

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "QA.md"
_PASSAGES = 5
_FLOOR, _CEILING = "no passages", "gold passages"
_MEASURES = {"answer_em": "EM", "answer_f1": "F1"}
_READS = ("BM25", "dense", "RRF of both", "link graph", _CEILING)


def written(data: Data, arguments: list[str]) -> str:
    """Return the page."""
    model, base_url, size = arguments[0], arguments[1], int(arguments[2]) if arguments[2:] else 50
    loader = BeirLoader(data.root / "wiki" / "hotpotqa")
    queries = loader.queries()
    drawn = sorted(random.Random(0).sample(range(len(queries)), min(size, len(queries))))
    gold = loader.gold()
    folder = data.work / "qa"
    questions = _questions(folder / "questions", [queries[place] for place in drawn], [gold[place] for place in drawn])
    values = {
        "corpus": str(data.corpus),
        "questions": str(questions),
        "gold": str(questions / "gold.trec"),
        "index": str(data.work / "wiki-index"),
        "stages": str(folder / "stages"),
        "lm": language_model(data, model, base_url),
    }
    found = _measured(folder / "read", read_sweep(_HERE / "systems.yaml", **values, passages=_PASSAGES))
    floor = read_sweep(_HERE / "systems.yaml", **values, passages=0)
    floor["searchers"] = {_FLOOR: floor["searchers"]["BM25"]}
    found = found.beside(_measured(folder / "memory", floor))
    with data.corpus.open(encoding="utf-8") as lines:
        n_items = sum(1 for _ in lines)
    return page(
        (_HERE / "page.md").read_text("utf-8"),
        arguments=f"DATA MODEL BASE_URL {size}",
        model=model,
        passages=_PASSAGES,
        n_questions=len(drawn),
        n_all=f"{len(queries):,}",
        n_items=f"{n_items:,}",
        table=_table(found, _left_open(folder / "read", folder / "memory")),
        gains=_gains(found),
    )


def _measured(folder: Path, settings: Config) -> Figures:
    return run(configured(settings, folder), folder)


def _questions(folder: Path, queries: list[Query], gold: list[Gold]) -> Path:
    """Some questions in BEIR's layout, and their gold as a run file."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    rows = [{"_id": one.query_id, "text": one.text, "metadata": one.metadata} for one in queries]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    grades = [(one.query_id, item_id, grade) for one in gold for item_id, grade in one.relevance.items() if grade > 0]
    lines = [f"{query_id}\t{item_id}\t{grade}\n" for query_id, item_id, grade in grades]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), "utf-8")
    run_lines = [f"{query_id} Q0 {item_id} {rank} {-rank} gold\n" for rank, (query_id, item_id, _) in enumerate(grades, 1)]
    (folder / "gold.trec").write_text("".join(run_lines), "utf-8")
    return folder


def _left_open(*folders: Path) -> dict[str, list[str]]:
    """By configuration, how many questions were told to have no answer, and how many were left without a usable one."""
    lines = [line for folder in folders for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]
    told = Counter((one["configuration"], one["failed"]) for one in map(json.loads, lines) if not one["text"])
    return {name: [str(told[name, False]), str(told[name, True])] for name in (_FLOOR, *_READS)}


def _table(found: Figures, left_open: dict[str, list[str]]) -> str:
    heads = ["read", *_MEASURES.values(), "recall@5", "no answer", "failed", "tokens in", "tokens out"]
    rows = {}
    for name in (_FLOOR, *_READS):
        recall = "-" if name == _FLOOR else f"{found.mean(name, 'recall@5'):.3f}"
        rows[name] = [*(found.cell(name, measure) for measure in _MEASURES), recall, *left_open[name], *_tokens(found, name)]
    return table(heads, rows)


def _tokens(found: Figures, name: str) -> list[str]:
    cost = found.results[name].cost
    if cost is None or cost.language_model is None:
        return ["-"] * 2
    asked = cost.language_model
    return [f"{asked.query_tokens_in:,.0f}", f"{asked.query_tokens_out:,.0f}"]


def _gains(found: Figures) -> str:
    heads = ["F1", f"above {_FLOOR}", "above BM25", f"below {_CEILING}"]
    rows = {
        name: [
            *(found.gain(name, other, "answer_f1") if name != other else "-" for other in (_FLOOR, "BM25")),
            found.gain(_CEILING, name, "answer_f1") if name != _CEILING else "-",
        ]
        for name in _READS
    }
    return table(heads, rows)


if __name__ == "__main__":
    sys.exit(script("bench.qa DATA MODEL BASE_URL [QUESTIONS]", [2, 3], _PAGE, written, needs="wiki/corpus.jsonl"))
