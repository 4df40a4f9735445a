"""Figures of quality on public collections, to compare with published ones and with other tools'."""

from __future__ import annotations

from bench.common import Data, Row, compared
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, HoverLoader, PyseriniRetriever, Searcher

# Pyserini's two-click reproductions of BEIR v1.0.0, flat index: https://castorini.github.io/pyserini/2cr/beir.html
_SCIFACT = {"ndcg@10": 0.6789, "recall@100": 0.9253}

# Perfect recall at 5, 10 and 21 on the same claims and corpus, measured with the engines by hand (bench/README.md)
_HOVER = {
    "bm25": {"hops=2": (0.756, 0.856, 0.922), "hops=3": (0.38, 0.48, 0.56)},
    "dense": {"hops=2": (0.633, 0.711, 0.800), "hops=3": (0.18, 0.24, 0.34)},
    "hybrid": {"hops=2": (0.767, 0.833, 0.889), "hops=3": (0.40, 0.48, 0.52)},
}
_HOVER["bm25s"] = _HOVER["bm25"]
_CUTOFFS = (5, 10, 21)


def measure(data: Data) -> list[Row]:
    """SciFact against Anserini's published figures, HoVer by hop against the engines by hand."""
    return [*_scifact(data), *_hover(data)]


def _scifact(data: Data) -> list[Row]:
    loader = BeirLoader(str(data.root / "scifact"))
    searchers = {"pyserini": Searcher([PyseriniRetriever()]), "bm25s": Searcher([Bm25Retriever()])}
    run = compared(searchers, loader, loader, (10, 100), data.work / "scifact-index")
    rows = []
    for result in run.report.configurations:
        allowed = 0.005 if result.name == "pyserini" else 0.01
        for measure_name, published in _SCIFACT.items():
            value = result.measures[measure_name]
            budget = f"within {allowed} of {published}"
            measured = f"{value:.4f}"
            rows.append(Row(f"SciFact {measure_name}, {result.name}", budget, measured, abs(value - published) <= allowed))
    return rows


def _hover(data: Data) -> list[Row]:
    bm25, dense = PyseriniRetriever(k1=0.9, b=0.4), FaissRetriever("sentence-transformers/all-MiniLM-L6-v2")
    searchers = {"bm25": Searcher([bm25]), "dense": Searcher([dense]), "hybrid": Searcher([bm25, dense])}
    searchers["bm25s"] = Searcher([Bm25Retriever(k1=0.9, b=0.4)])
    run = compared(searchers, BeirLoader(str(data.corpus)), HoverLoader(data.claims), _CUTOFFS, data.work / "wiki-index")
    rows = []
    for result in run.report.configurations:
        for group, expected in _HOVER[result.name].items():
            values = [result.groups[group][f"perfect_recall@{k}"] for k in _CUTOFFS]
            met = all(abs(value - known) <= 0.03 for value, known in zip(values, expected, strict=True))
            shown = " / ".join(f"{value:.3f}" for value in values)
            known = " / ".join(f"{value:.3f}" for value in expected)
            rows.append(Row(f"HoVer {group}, perfect recall@5/10/21, {result.name}", f"within 0.03 of {known}", shown, met))
    return rows
