"""Parts of collections that are encoded in minutes: some questions, the passages that they need, and others at random."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

from bench.common import Data
from nlp_retrieval import BeirLoader, HoverLoader

QUESTIONS = 150
_SEED = 20261124


def wiki_sample(data: Data, size: int) -> BeirLoader:
    """The passages of all HoVer claims of two and three hops and of some HotpotQA questions that no claim was written from."""
    claims = HoverLoader(data.claims, hops=[2, 3])
    titles = {_plain(title) for one in claims.gold() for title in one.relevance}
    sources = {str(claim.family) for claim in claims.queries()}
    questions = BeirLoader(data.root / "wiki" / "hotpotqa")
    return _sample(data.work / f"sample-wiki-{size}", data.corpus, size, questions, titles, sources)


def _sample(
    folder: Path, corpus: Path, size: int, judged: BeirLoader, titles: Collection[str] = (), left_out: Collection[str] = ()
) -> BeirLoader:
    """Write a sample as a collection of its own, if it is not there."""
    if (folder / "qrels" / "test.tsv").exists():
        return BeirLoader(folder)
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(_SEED)
    free = [query for query in judged.queries() if query.query_id not in left_out]
    chosen = [free[place] for place in sorted(generator.permutation(len(free))[:QUESTIONS].tolist())]
    gold = {one.query_id: one.relevance for one in judged.gold()}
    ids = {key for query in chosen for key in gold[query.query_id]}
    lines = corpus.read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    needed = np.array([row["_id"] in ids or _plain(row["title"]) in titles for row in rows])
    others = generator.permutation(np.flatnonzero(~needed))[: size - int(needed.sum())]
    kept = sorted([*np.flatnonzero(needed).tolist(), *others.tolist()])
    (folder / "corpus.jsonl").write_text("".join(f"{lines[row]}\n" for row in kept), "utf-8")
    asked = [json.dumps({"_id": query.query_id, "text": query.text}) for query in chosen]
    (folder / "queries.jsonl").write_text("".join(f"{line}\n" for line in asked), "utf-8")
    grades = [f"{query.query_id}\t{key}\t{grade}\n" for query in chosen for key, grade in gold[query.query_id].items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades), "utf-8")
    return BeirLoader(folder)


def _plain(title: str) -> str:
    return " ".join(title.casefold().replace("_", " ").split())
