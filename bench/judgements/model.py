"""A language model judges for real: ``python -m bench.judgements.model DATA URL MINUTES``.

Claims of SciFact, drawn once, each with the first five passages of BM25 and of BM25 over the first 25 words. The gold is
"people". A further call goes on where it stopped: answers are stored.
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.common import Data
from bench.judgements.collections import FIRST_WORDS, SYSTEMS, first_words
from nlp_retrieval import BeirLoader, LanguageModel, Query, SearchableItem, Searcher
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.judging import JudgingProject, ModelJudge, measure_agreement
from nlp_retrieval.judging.report import report_of
from nlp_retrieval.lm import ModelEndpoint

ASKED, DEPTH, CHARACTERS = 60, 5, 1500
INSTRUCTIONS = "Does the passage help to decide whether the claim is true or false?"
_MODEL = "openai/local"


def runs_of(items: list[SearchableItem], queries: Sequence[Query], work: Path) -> dict[str, dict[str, Ranking]]:
    """Return what the two systems find, by query id."""
    texts = {"bm25": items, FIRST_WORDS: first_words(items)}
    runs = {}
    for name, searched in texts.items():
        searcher = Searcher([SYSTEMS[name]])
        searcher.index(searched, work / name.replace(" ", "-"))
        hits = searcher.search([query.text for query in queries], DEPTH)
        runs[name] = {
            query.query_id: [(hit.item.item_id, hit.score) for hit in found] for query, found in zip(queries, hits, strict=True)
        }
    return runs


def judge(data: Data, lm: LanguageModel, seconds: float) -> None:
    """Let the model judge claim by claim until the time is over; print how it agrees with the gold, and what follows."""
    loader, work = BeirLoader(data.root / "scifact"), data.work / "judging-model"
    shutil.rmtree(work, ignore_errors=True)
    items, gold = loader.load(), {each.query_id: each.relevance for each in loader.gold()}
    asked = random.Random(0).sample([query for query in loader.queries() if query.query_id in gold], ASKED)
    runs, by_model = runs_of(items, asked, work), ModelJudge(lm, most_characters=CHARACTERS)

    def project(name: str, queries: Sequence[Query]) -> JudgingProject:
        own = {system: {query.query_id: lists[query.query_id] for query in queries} for system, lists in runs.items()}
        return JudgingProject.create(work / name, queries, own, items, depth=DEPTH, instructions=INSTRUCTIONS)

    began, done = time.monotonic(), list[Query]()
    for query in asked:
        if time.monotonic() - began > seconds:
            break
        by_model.judge(project(f"claim-{query.query_id}", [query]))
        done.append(query)
        print(f"{len(done)} claims, {(time.monotonic() - began) / 60:.1f} min", flush=True)
    whole = project("whole", done)
    said = by_model.judge(whole)  # every answer is stored
    pool = whole.pool()
    pairs = [(pool.query_ids[query], item) for query, item in zip(pool.pair_query, pool.item_ids, strict=True)]
    grades = {pair: int(gold[pair[0]].get(pair[1], 0) > 0) for pair in pairs}
    model = {pair: int(grade) for pair, grade in zip(pairs, pool.model.tolist(), strict=True) if not math.isnan(grade)}
    agreement = measure_agreement({"gold": grades, "model": model}).pairs[0]
    print(f"{len(pairs)} pairs of {len(done)} claims; not judged: {dict(said.not_judged)}; by grade {dict(said.by_grade)}")
    print(
        f"kappa {agreement.kappa:.2f} [{agreement.kappa_interval[0]:.2f}, {agreement.kappa_interval[1]:.2f}]; same "
        f"{agreement.same:.2f}; called relevant: gold {agreement.means[0]:.2f}, model {agreement.means[1]:.2f}"
    )
    for number, pair in enumerate(pairs):
        whole.judge(number, grades[pair], by="gold")
    report = report_of(whole).model
    for bias in report.biases if report else ():
        print(f"bias, {bias.part}: {bias.bias:+.2f} of {bias.pairs} pairs")


def main(root: str, url: str, minutes: str) -> None:
    """Judge until the time is over."""
    data = Data.of(root)
    lm = LanguageModel(_MODEL, base_url=url, max_tokens=200, endpoint=ModelEndpoint(timeout=600, calls_at_once=1))
    judge(data, lm, 60 * float(minutes))


if __name__ == "__main__":
    main(*sys.argv[1:])
