"""Valid small inputs of the targets of evidence, knowledge, models and parts of indexes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.encoders.made_models import MADE_FILE
from nlp_retrieval.encoders.word_vectors import VECTORS_FILE, WORDS_FILE, write_word_vectors
from nlp_retrieval.hipporag import HippoRagRetriever
from nlp_retrieval.policy import HopRetriever
from nlp_retrieval.rerankers.multi_signal.profile import profile_path

from .inputs import SEPARATOR, a_file, scratch
from .models import BLOCK, kept_here, made_files
from .parts import KNOWLEDGE, PLACES, RELATIONS

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
_ROBOTS = (
    "User-agent: us\nUser-agent: *\nAllow: /a\nDisallow: /x # not\n\nuser-agent: xx\nDisallow: /\nSitemap: https://e.org/s"
)
_SEARXNG = {
    "results": [
        {"url": "https://example.org/a", "title": "A\u200b fox", "content": "It\nruns.", "engine": "x"},
        {"url": "ftp://example.org/b", "title": None},
        {"title": "no address"},
    ]
}
_RULES = """default: D
rules:
  - {grade: A, suffix: [gov, ac.uk], why: public}
  - {grade: B, domain: example.org, path: /a*}
  - {grade: E, host: "*.docs?.example.*"}
"""
_STANCES = ["1 supports, 2 contradicts\n30: refutes", '[{"passage": 1, "stance": "supports"}, [2, "no"]]', "[1, 2]"]
_ANSWER = {"answer": "Two foxes [1.2]", "reasoning": "Because\nit says so.", "citations": ["1.1", "passage 2, sentence 1", 3]}
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
_PROFILE = """name: foxes
subject: country
groups: {size: [weight, "body length"], food: [mouse]}
patterns: {size: ['\\d+ ?kg']}
questions:
  - {number: 1, text: "How heavy is a fox of {subject}?", keywords: [heavy], groups: [size]}
  - {number: 2, text: "What does it eat?"}
weights: {transformer: 0.5, fuzzy: 0}
top_k: 5
n_per_document: 2
language: english
"""
_STUDY = """profile: guidelines
index: indexes/x
searcher: {retrievers: [bm25s], reranker: multi_signal}
hop: {retrievers: [{name: hop, start: bm25s}]}
corpus: {loader: jsonl, path: x.jsonl}
where: {year: 2020}
keywords: false
"""
_BODIES = [
    {"query": "fox", "k": 5.0, "where": {"year": {"gte": 2015}}},
    {"queries": ["fox", "tree"], "k": 3},
    {"documents": [{"content": "A fox.", "url": "https://example.org/a", "title": "T", "quality": "B"}], "build": False},
    {"query": "fox", "min_quality": "C"},
    {"claim": "Foxes fly."},
    {"report": "# R\n\nA fox [1].\n"},
]
_COLLECTION = {
    "token": "0" * 32, "rows": 3, "ids": "-7", "format": 1, "server": "2.5", "database": "",
    "collection": f"nlpr_{'0' * 12}_{'1' * 12}_{'2' * 12}_{'3' * 16}", "dimension": 4, "words": True, "index_type": "flat",
    "sample": "1", "content": "2",
}  # fmt: skip
_TABLE = {
    "token": "0" * 32, "rows": 3, "ids": "-7", "format": 1, "server": "123", "database": "d", "schema_name": "s",
    "table": "nlpr_pgvector_0123456789abcdef", "column": "embedding", "type": "halfvec(4)", "content": "1", "approximate": True,
}  # fmt: skip
_PASSAGES: list[tuple[str, str, dict[str, Any]]] = [
    ("a", "Erik Hort was born in Montebello.", {"document": "x", "position": 0, "country": "A", "year": 2019}),
    ("b", "Montebello lies near Oslo because storms reduce power.", {"document": "x", "position": 1, "country": "A"}),
    ("c", "Erik Hort was born in Montebello. Oslo.", {"document": "y", "position": 0, "country": "B", "year": 2020}),
]


def _joined(folder: Path, names: tuple[str, ...]) -> bytes:
    return SEPARATOR.join((folder / name).read_bytes() for name in names)


def _word_folder() -> list[bytes]:
    folder = scratch() / "seed-words"
    write_word_vectors(folder, ["fox", "tree"], np.array([[1, 0], [0.5, 2]], np.float32), [1.0, 2.5])
    return [_joined(folder, (WORDS_FILE, VECTORS_FILE))]


def _word_vectors() -> list[Any]:
    binary = b"2 2\nfox " + np.array([1, 0], "<f4").tobytes() + b"\ntree " + np.array([0.5, 2], "<f4").tobytes() + b"\n"
    return ["2 2\nfox 1 0\ntree 0.5 2\n", "fox 1 0\nthe tree 0.5 -2e-3\n", binary]


def _made() -> list[bytes]:
    return [(kept_here()[0] / MADE_FILE).read_bytes()]


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
    return [_joined(files, KNOWLEDGE)]


def _relations() -> list[bytes]:
    folder = scratch() / "seed-hop"
    Searcher([HopRetriever(FaissRetriever(HashedWords(4)), encoder=HashedWords(4), min_similarity=0.4)]).index(_items(), folder)
    (files,) = folder.glob("hop-*")
    return [_joined(files, RELATIONS)]


def _places() -> list[bytes]:
    folder = scratch() / "seed-places"
    folder.mkdir(exist_ok=True)
    (folder / PLACES[0]).write_text('["A", "B"]')
    columns = np.array([0, 1, -1]), np.array([5, 5, 0]), np.array([0.0, 1.0, 0.0])
    for name, column in zip(PLACES[1:], columns, strict=True):
        np.save(folder / name, column)
    return [_joined(folder, PLACES)]


def _each(*values: object) -> Callable[[], list[Any]]:
    return lambda: [json.dumps(value) for value in values]


FURTHER: dict[str, Callable[[], list[Any]]] = {
    "cited_report": lambda: [_REPORT],
    "page": lambda: [_PAGE, _REPORT, "A fox.\r\n\r\nIt runs\u200b."],
    "robots": lambda: [_ROBOTS],
    "searxng": _each(_SEARXNG),
    "web_target": lambda: ["https://EXAMPLE.org:443/a b?x=\u00e9#f\n../c", "http://[::1]:8080/\n//host/x"],
    "quality_rules": lambda: [_RULES],
    "stances": lambda: _STANCES,
    "cited_answer": _each(_ANSWER),
    "calibration": _each(_CALIBRATION),
    "openie": lambda: [json.dumps(_OPENIE[0]), json.dumps(_OPENIE[1])],
    "knowledge_answers": lambda: [f"```json\n{json.dumps(_KNOWLEDGE)}\n```", json.dumps(_KNOWLEDGE["1"])],
    "hipporag": lambda: [_HIPPORAG],
    "profiles": lambda: [_PROFILE, profile_path("guidelines").read_bytes()],
    "studies": lambda: [_STUDY],
    "bodies": _each(*_BODIES),
    "static_model": lambda: [made_files("static")],
    "pair_model": lambda: [made_files("pairs")],
    "word_vectors": _word_vectors,
    "word_folder": _word_folder,
    "worker_block": _each(BLOCK),
    "made_model": _made,
    "knowledge_tables": _knowledge_tables,
    "relations": _relations,
    "places": _places,
    "server_records": _each(_COLLECTION, _TABLE),
}
