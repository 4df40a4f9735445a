"""Questions split by their clauses: ``python -m bench.multihop.clauses DATA`` writes a section of ``MULTIHOP.md``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from bench.common import Data
from bench.multihop.relations import HEADING as NEXT_HEADING
from bench.multihop.relations import questions
from bench.writing import page, shown, table
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, LinkGraphRetriever, SearchableItem, Searcher
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.encoders.base import Vectors
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

    def recalls(self, *, clauses: bool) -> tuple[Scores, Scores]:
        """Recall@5 of each question, and the number of texts encoded for it."""
        generation = open_generation(self.index)
        opened = LinkGraphRetriever([Bm25Retriever(), FaissRetriever()], clauses=clauses).open(generation)
        loader = BeirLoader(self.corpus)
        queries, gold = loader.queries(), {one.query_id: one for one in loader.gold()}
        documents = relevant_documents([gold[query.query_id] for query in queries])
        places = rows_of({key for one in documents for key in one}, generation.items.ids(), generation.items.titles())
        encode, texts = FaissRetriever.encode, np.zeros(len(queries))
        recalls = []
        for number, (query, keys) in enumerate(zip(queries, documents, strict=True)):

            def counted(retriever: FaissRetriever, encoded: list[str], number: int = number) -> Vectors:
                texts[number] += len(encoded)
                return encode(retriever, encoded)

            with patch.object(FaissRetriever, "encode", counted):
                (pool,) = opened.pools([query.text], at_least=_AT)
            first = pool.ranked(DEFAULT_WEIGHTS, _AT)[0]
            recalls.append(float(np.mean([np.isin(places[key], first).any() for key in keys])))
        return np.array(recalls), texts


def outer_first(query: str) -> list[Clause]:
    """The clauses in the wrong order: what is left of the question is asked first, and its answer stands before the clause."""
    return [Clause(clause.answered_by(""), "", f" {clause.inner}") for clause in clauses_of(query)]


def names_of_others(generation: Generation) -> Callable[[SearchableItem, str, int], list[str]]:
    """As many names, from a passage at random."""
    items, draw = list(generation.items.stream({"title"})), np.random.default_rng(0)
    return lambda _, clause, most: names_in(items[draw.integers(len(items))], clause, most)


@dataclass(frozen=True)
class Asked:
    """A question, its kind, and the passages that answer it."""

    query_id: str
    text: str
    kind: str
    gold: list[str]


def of_hotpotqa(data: Data) -> list[Asked]:
    """40 comparisons and 40 bridge questions of HotpotQA."""
    left_out = {query.family for query in data.hover()}
    source = data.root / "wiki" / "hotpotqa"
    lines = [json.loads(line) for line in (source / "queries.jsonl").read_text("utf-8").splitlines()]
    gold = {one.query_id: list(one.relevance) for one in BeirLoader(source).gold()}
    asked: list[Asked] = []
    draw = np.random.default_rng(1)
    for kind in ("comparison", "bridge"):
        free = [line for line in lines if line["metadata"]["type"] == kind and line["_id"] not in left_out]
        drawn = np.sort(draw.permutation(len(free))[:_DRAWN])[:_ASKED]
        rows = [free[place] for place in drawn.tolist()]
        asked += [Asked(row["_id"], row["text"], f"HotpotQA, {kind}", gold[row["_id"]]) for row in rows]
    return asked


def of_relations(data: Data) -> list[Asked]:
    """Every sixth question that asks for a relation."""
    items = list(BeirLoader(data.corpus).load())
    ids = {item.title: item.item_id for item in items}
    named = {"one": "relation of one thing", "two": "relations of two compared"}
    return [
        Asked(query.query_id, query.text, named[query.query_id.split("-")[1]], [ids[title] for title in gold.relevance])
        for _, query, gold in list(questions(items))[::6]
    ]


def hard(data: Data, name: str, asked: list[Asked]) -> Judged:
    """Questions over their gold and the foremost that a link graph over BM25 finds."""
    folder = data.work / f"clauses-{name}"
    if not (folder / "qrels" / "test.tsv").exists():
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        searcher = Searcher([LinkGraphRetriever([Bm25Retriever()])])
        searcher.index(BeirLoader(data.corpus), data.work / "wiki-bm25")
        found = searcher.search([one.text for one in asked], k=_FOREMOST)
        needed = {hit.item.item_id for hits in found for hit in hits} | {key for one in asked for key in one.gold}
        passages = [line for line in data.corpus.read_text("utf-8").splitlines(True) if json.loads(line)["_id"] in needed]
        lines = [json.dumps({"_id": one.query_id, "text": one.text}) + "\n" for one in asked]
        grades = [f"{one.query_id}\t{key}\t1\n" for one in asked for key in one.gold]
        (folder / "corpus.jsonl").write_text("".join(passages), "utf-8")
        (folder / "queries.jsonl").write_text("".join(lines), "utf-8")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades), "utf-8")
    return Judged(data.work / f"clauses-{name}-index", folder)


def section(data: Data) -> str:
    """The section as it is written."""
    musique = Judged(data.work / "musique", data.root / "musique")
    asked = {"hotpotqa": of_hotpotqa(data), "relations": of_relations(data)}
    small = {name: hard(data, name, questions) for name, questions in asked.items()}
    for one in (musique, *small.values()):
        Searcher([LinkGraphRetriever([Bm25Retriever(), FaissRetriever()])]).index(BeirLoader(one.corpus), one.index)
    without, _ = musique.recalls(clauses=False)
    with_them, texts = musique.recalls(clauses=True)
    order = np.random.default_rng(0).permutation(len(without))
    halves = {"for choosing": np.sort(order[: len(order) // 2]), "judging": np.sort(order[len(order) // 2 :])}
    rows = {f"MuSiQue, {name}": _cells(without[part], with_them[part], texts[part]) for name, part in halves.items()}
    rows["MuSiQue"] = _cells(without, with_them, texts)
    controls: dict[str, tuple[str, object]] = {
        "the outer question first": ("clauses_of", outer_first),
        "names of other passages": ("names_in", names_of_others(open_generation(musique.index))),
    }
    for name, (function, instead) in controls.items():
        with patch.object(link_graph, function, instead):
            rows[f"MuSiQue, {name}"] = _cells(without, *musique.recalls(clauses=True))
    for name, of_set in asked.items():
        before, (after, texts) = small[name].recalls(clauses=False)[0], small[name].recalls(clauses=True)
        for kind in dict.fromkeys(one.kind for one in of_set):
            part = np.flatnonzero([one.kind == kind for one in of_set])
            rows[kind] = _cells(before[part], after[part], texts[part])
    heads = ["", "questions", "without clauses", "with them", "difference", "texts encoded"]
    text = (Path(__file__).parent / "clauses.md").read_text("utf-8")
    return page(text, quality=table(heads, rows))


def _cells(before: Scores, after: Scores, texts: Scores) -> list[str]:
    families: list[str | None] = [str(number) for number in range(len(before))]
    low, high = bootstrap_interval(after - before, families, bounds=(-1, 1))
    gain = f"{(after - before).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    return [str(len(before)), shown(before, families), shown(after, families), gain, f"{texts.mean():.0f}"]


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
