"""Valid small inputs of every target of a system: where a fuzzer begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fuzz.inputs import a_file, each, joined, scratch
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever
from systems.hipporag.fuzzed import KNOWLEDGE
from systems.policy.fuzzed import RELATIONS

from .targets import TARGETS

_REPORT = """# Foxes

A fox weighs 7 kg [1], as 2 reports say [2-3]. It sleeps[^n] and <https://example.org/a> tells [why](https://example.org/b "T").

| a | b |
|---|---|
| 12 foxes [1] | [x][label] |

[label]: https://example.org/c
[^n]: Note, https://example.org/d.

## References

1. Fox. https://example.org/a
[2] Tree, doi: 10.1000/x
3. www.example.org/e
"""
_PAGE = """<html><head><title>Fox</title><style>.h{display:none}</style></head><body><nav>menu</nav><article><h1>Fox</h1>
<p>A fox&#8203; runs <span class="h">hidden</span>m<sup>2</sup> far.</p><ul><li>one<li>two</ul>
<table><tr><td>a<td>b</table></article></body></html>"""
_SEARXNG = {
    "results": [
        {"url": "https://example.org/a", "title": "A\u200b fox", "content": "It\nruns.", "engine": "x"},
        {"url": "ftp://example.org/b", "title": None},
        {"title": "no address"},
    ]
}
_CALIBRATION = {
    "signals": ["overlap", "negation"], "mean": [0.5, 0.1], "scale": [0.2, 1.0], "weights": [[1.5, -2.0], [-1.0, 2.5]],
    "intercepts": [0.1, -0.2], "threshold": 0.6, "fitted_on": "12 pairs",
}  # fmt: skip
_SAID = {"extracted_entities": ["Fox", "Tree"], "extracted_triples": [["Fox", "sleeps under", "Tree"], ["Fox", "is", 7]]}
_OPENIE = [
    {"docs": [{"idx": "x", "passage": "Fox\nA fox runs."} | _SAID, {"passage": "Trees."} | _SAID]},
    {"doc_id": "d1", "title": "Fox", "text": "A fox runs."} | _SAID,
]
_KNOWLEDGE = {
    "1": {"entities": [["Fox", "concept"], "Tree"], "triples": [["Fox", "sleeps under", "Tree"]]},
    "2": {"entities": [], "triples": []},
}
_HIPPORAG = """pipeline: {name: hipporag2}
llm: {provider: openai-compatible, model_name: qwen, base_url: "http://localhost:8000/v1", api_key: "${KEY}"}
embedding: {provider: sentence_transformers, model_name: a/b, dimension: 384}
retrieval: {passage_top_k: 5, linking: entities, graph_expansion_hops: 1}
indexing: {retry_backoff_base: 1, batch_size: 10}
storage: {save_dir: "iris://user@host:1972", iris_namespace: USER, index_dir: x}
"""
_STUDY = """profile: guidelines
index: indexes/x
searcher: {retrievers: [bm25], reranker: multi_signal}
hop: {retrievers: [{name: hop, start: bm25}]}
corpus: {loader: jsonl, path: x.jsonl}
where: {year: 2020}
keywords: false
"""
_PASSAGES: list[tuple[str, str, dict[str, Any]]] = [
    ("a", "Erik Hort was born in Montebello.", {"document": "x", "position": 0, "country": "A", "year": 2019}),
    ("b", "Montebello lies near Oslo because storms reduce power.", {"document": "x", "position": 1, "country": "A"}),
    ("c", "Erik Hort was born in Montebello. Oslo.", {"document": "y", "position": 0, "country": "B", "year": 2020}),
]
_PROJECT_BODIES = [
    {"documents": [{"content": "A fox.", "url": "https://example.org/a", "title": "T", "quality": "B"}], "build": False},
    {"query": "fox", "min_quality": "C"},
    {"claim": "Foxes fly."},
    {"report": "# R\n\nA fox [1].\n"},
]


def _items() -> list[SearchableItem]:
    return [SearchableItem(item_id=name, content=text, metadata=about) for name, text, about in _PASSAGES]


def _knowledge_tables() -> list[bytes]:
    said = [["Erik Hort", "was born in", "Montebello"], ["Montebello", "lies near", "Oslo"]]
    lines = [
        {"doc_id": name, "extracted_entities": [], "extracted_triples": said[:number]}
        for number, (name, *_) in enumerate(_PASSAGES)
    ]
    path = a_file("seed-openie.jsonl", "\n".join(map(json.dumps, lines)).encode())
    folder = scratch() / "seed-hipporag"
    Searcher([HippoRagRetriever(HashedWords(4), str(path))]).index(_items(), folder)
    (files,) = folder.glob("hipporag-*")
    return [joined(files, KNOWLEDGE)]


def _relations() -> list[bytes]:
    folder = scratch() / "seed-hop"
    Searcher([HopRetriever(FaissRetriever(HashedWords(4)))]).index(_items(), folder)
    (files,) = folder.glob("hop-*")
    return [joined(files, RELATIONS)]


SEEDS: dict[str, Callable[[], list[Any]]] = {
    "cited_report": lambda: [_REPORT],
    "page": lambda: [_PAGE, _REPORT, "A fox.\r\n\r\nIt runs\u200b."],
    "searxng": each(_SEARXNG),
    "web_target": lambda: ["https://EXAMPLE.org:443/a b?x=\u00e9#f\n../c", "http://[::1]:8080/\n//host/x"],
    "calibration": each(_CALIBRATION),
    "openie": lambda: [json.dumps(_OPENIE[0]), json.dumps(_OPENIE[1])],
    "knowledge_answers": lambda: [f"```json\n{json.dumps(_KNOWLEDGE)}\n```", json.dumps(_KNOWLEDGE["1"])],
    "hipporag": lambda: [_HIPPORAG],
    "studies": lambda: [_STUDY],
    "knowledge_tables": _knowledge_tables,
    "relations": _relations,
    "project_bodies": each(*_PROJECT_BODIES),
}
assert set(SEEDS) == set(TARGETS)
