"""Questions split by their clauses: ``python -m bench.multihop.clauses DATA`` writes a section of ``MULTIHOP.md``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from unittest.mock import patch

import numpy as np

from bench.common import Data
from bench.multihop.relations import HEADING as NEXT_HEADING
from bench.writing import page, shown, table
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, LinkGraphRetriever, SearchableItem, Searcher
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.evaluation.gold import relevant_documents, rows_of
from nlp_retrieval.evaluation.resampling import bootstrap_interval
from nlp_retrieval.retrievers.link_graph import retriever as link_graph
from nlp_retrieval.retrievers.link_graph.clauses import Clause, clauses_of, names_in
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS

HEADING = "## Questions split by their clauses"
_AT, _DRAWN, _ASKED, _FOREMOST = 5, 60, 40, 11


@dataclass(frozen=True)
class Judged:
    """A collection with its questions."""

    index: Path
    corpus: Path

    def recalls(self, *, clauses: bool) -> tuple[Scores, float]:
        """Recall@5 of each question, and the seconds of processor time that one takes."""
        generation = open_generation(self.index)
        opened = LinkGraphRetriever([Bm25Retriever(), FaissRetriever()], clauses=clauses).open(generation)
        loader = BeirLoader(self.corpus)
        queries, gold = loader.queries(), {one.query_id: one for one in loader.gold()}
        documents = relevant_documents([gold[query.query_id] for query in queries])
        places = rows_of({key for one in documents for key in one}, generation.items.ids(), generation.items.titles())
        began, recalls = process_time(), []
        for keys, pool in zip(documents, opened.pools([query.text for query in queries], at_least=_AT), strict=True):
            first = pool.ranked(DEFAULT_WEIGHTS, _AT)[0]
            recalls.append(float(np.mean([np.isin(places[key], first).any() for key in keys])))
        return np.array(recalls), (process_time() - began) / len(queries)


def outer_first(query: str) -> list[Clause]:
    """The clauses in the wrong order: what is left of the question is asked first, and its answer stands before the clause."""
    return [Clause(clause.answered_by(""), "", f" {clause.inner}") for clause in clauses_of(query)]


def names_of_others(generation: Generation) -> Callable[[SearchableItem, str, int], list[str]]:
    """As many names, from a passage at random."""
    items, draw = list(generation.items.stream({"title"})), np.random.default_rng(0)
    return lambda _, clause, most: names_in(items[draw.integers(len(items))], clause, most)


def hard_hotpotqa(data: Data) -> tuple[Judged, list[str]]:
    """40 comparisons and 40 bridge questions of HotpotQA over their gold and the foremost that a link graph over BM25 finds."""
    folder = data.work / "clauses-hotpotqa"
    left_out = {query.family for query in data.hover()}
    source = data.root / "wiki" / "hotpotqa"
    lines = [json.loads(line) for line in (source / "queries.jsonl").read_text("utf-8").splitlines()]
    rows: list[dict[str, str]] = []
    draw = np.random.default_rng(1)
    for kind in ("comparison", "bridge"):
        free = [line for line in lines if line["metadata"]["type"] == kind and line["_id"] not in left_out]
        drawn = np.sort(draw.permutation(len(free))[:_DRAWN])[:_ASKED]
        rows += [free[place] | {"kind": kind} for place in drawn.tolist()]
    judged = Judged(data.work / "clauses-hotpotqa-index", folder)
    if not (folder / "qrels" / "test.tsv").exists():
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        searcher = Searcher([LinkGraphRetriever([Bm25Retriever()])])
        searcher.index(BeirLoader(data.corpus), data.work / "wiki-bm25")
        found = searcher.search([row["text"] for row in rows], k=_FOREMOST)
        gold = {one.query_id: one.relevance for one in BeirLoader(source).gold()}
        needed = {hit.item.item_id for hits in found for hit in hits} | {key for row in rows for key in gold[row["_id"]]}
        passages = [line for line in data.corpus.read_text("utf-8").splitlines(True) if json.loads(line)["_id"] in needed]
        asked = [json.dumps({"_id": row["_id"], "text": row["text"]}) + "\n" for row in rows]
        grades = [f"{row['_id']}\t{key}\t1\n" for row in rows for key in gold[row["_id"]]]
        (folder / "corpus.jsonl").write_text("".join(passages), "utf-8")
        (folder / "queries.jsonl").write_text("".join(asked), "utf-8")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades), "utf-8")
    return judged, [row["kind"] for row in rows]


def section(data: Data) -> str:
    """The section as it is written."""
    musique = Judged(data.work / "musique", data.root / "musique")
    hotpotqa, kinds = hard_hotpotqa(data)
    for one in (musique, hotpotqa):
        Searcher([LinkGraphRetriever([Bm25Retriever(), FaissRetriever()])]).index(BeirLoader(one.corpus), one.index)
    without, seconds = musique.recalls(clauses=False)
    with_them, longer = musique.recalls(clauses=True)
    order = np.random.default_rng(0).permutation(len(without))
    halves = {"for choosing": np.sort(order[: len(order) // 2]), "judging": np.sort(order[len(order) // 2 :])}
    rows = {f"MuSiQue, {name}": _cells(without[part], with_them[part]) for name, part in halves.items()}
    rows["MuSiQue"] = _cells(without, with_them)
    controls: dict[str, tuple[str, object]] = {
        "the outer question first": ("clauses_of", outer_first),
        "names of other passages": ("names_in", names_of_others(open_generation(musique.index))),
    }
    for name, (function, instead) in controls.items():
        with patch.object(link_graph, function, instead):
            rows[f"MuSiQue, {name}"] = _cells(without, musique.recalls(clauses=True)[0])
    before, after = hotpotqa.recalls(clauses=False)[0], hotpotqa.recalls(clauses=True)[0]
    for kind in dict.fromkeys(kinds):
        part = np.array(kinds) == kind
        rows[f"HotpotQA, {kind}"] = _cells(before[part], after[part])
    heads = ["", "questions", "without clauses", "with them", "difference"]
    text = (Path(__file__).parent / "clauses.md").read_text("utf-8")
    return page(text, quality=table(heads, rows), seconds=f"{seconds:.2f}", longer=f"{longer:.2f}")


def _cells(before: Scores, after: Scores) -> list[str]:
    families: list[str | None] = [str(number) for number in range(len(before))]
    low, high = bootstrap_interval(after - before, families, bounds=(-1, 1))
    gain = f"{(after - before).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    return [str(len(before)), shown(before, families), shown(after, families), gain]


def main(arguments: list[str]) -> int:
    """Measure, and write the section anew."""
    if len(arguments) != 1 or not (data := Data.of(arguments[0])).corpus.is_file() or not (data.root / "musique").is_dir():
        print("usage: python -m bench.multihop.clauses DATA   (DATA holds wiki/ and musique/)")
        return 2
    warnings.simplefilter("ignore")
    write(data)
    return 0


def write(data: Data) -> None:
    """Write the section in ``bench/MULTIHOP.md``, before that of relations."""
    path = Path(__file__).parents[1] / "MULTIHOP.md"
    before, _, after = path.read_text("utf-8").partition(f"{NEXT_HEADING}\n")
    kept = before.split(f"{HEADING}\n")[0].rstrip("\n")
    path.write_text(f"{kept}\n\n{section(data)}\n{NEXT_HEADING}\n{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
