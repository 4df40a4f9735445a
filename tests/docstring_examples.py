"""Examples in docstrings, and the names that they may use."""

from __future__ import annotations

import doctest
import re
from importlib import import_module

from nlp_retrieval._public_names import modules_of

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

SETUP = """
import json
from pathlib import Path

from nlp_retrieval import Gold, Query, SearchableItem

items = [
    SearchableItem(item_id="whale", content="It eats tons of Krill a day.", metadata={"title": "Blue whale", "year": 2021}),
    SearchableItem(item_id="krill", content="Small animals of the Southern Ocean.", metadata={"title": "Krill", "year": 2019}),
    SearchableItem(item_id="fox", content="It hunts lemmings in the snow.", metadata={"title": "Arctic fox", "year": 2021}),
]
queries = [Query(query_id="q1", text="who eats krill"), Query(query_id="q2", text="animals in the snow")]
gold = [Gold(query_id="q1", relevance={"whale": 1}), Gold(query_id="q2", relevance={"fox": 1})]

lines = [{"id": item.item_id, "content": item.content, **item.metadata} for item in items]
Path("animals.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
Path("animals.csv").write_text("id;name;text\\n1;Fox;It hunts.\\n")
Path("queries.tsv").write_text("".join(f"{query.query_id}\\t{query.text}\\n" for query in queries))
Path("bm25.trec").write_text("q1 Q0 whale 1 7.5 bm25\\nq2 Q0 krill 1 7.1 bm25\\nq2 Q0 fox 2 6.2 bm25\\n")
Path("benchmark.yaml").write_text('''
searchers: {bm25: {retrievers: [bm25]}, hybrid: {retrievers: [bm25, faiss]}}
corpus: {loader: jsonl, path: animals.jsonl}
queries: {loader: topics, path: queries.tsv, qrels: qrels.txt}
index: index
''')
Path("qrels.txt").write_text("q1 0 whale 1\\nq2 0 fox 1\\n")
"""
"""What every example finds: three items, two queries and their gold; and files of them, of a run and of a benchmark."""


def namespace(example: str, module: str) -> dict[str, object]:
    """The names of an example: those of ``SETUP``, of ``nlp_retrieval``, and of the module that it is in."""
    names: dict[str, object] = {"__name__": "example"}
    exec(SETUP, names)
    package = import_module("nlp_retrieval")
    used = set(re.findall(r"\w+", example))
    names |= {name: getattr(package, name) for name in modules_of("nlp_retrieval").keys() & used}
    own = vars(import_module(module))
    return names | {name: own[name] for name in own.keys() & used if not name.startswith("_") and name not in names}
