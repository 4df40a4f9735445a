"""Command lines as nobody should write them: a good one for each command, with words taken out, put in and replaced.

Nothing in them leads out of the folder that they run in: what is written may be written anywhere below it.
"""

from __future__ import annotations

import io
import json
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nlp_retrieval.cli.app import main
from nlp_retrieval.errors import RetrievalWarning

GOOD: dict[str, list[list[str]]] = {
    "index": [
        ["corpus.jsonl", "new", "-r", "bm25"],
        ["corpus.jsonl", "index", "-r", "bm25:k1=1.2,stemmer=none", "--loader", "jsonl", "-o", "id_field=id", "--replace"],
        ["claims.json", "new", "-l", "chunker", "-o", "size=3", "-r", "link_graph:seeds=[bm25]"],
    ],
    "add": [["more.jsonl", "index", "--update"], ["more.jsonl", "index", "-l", "beir", "-o", "split=test"]],
    "delete": [["index", "p1", "p2"], ["index", "--file", "ids.txt"], ["index", "-f", "-"]],
    "compact": [["index"]],
    "verify": [["index"]],
    "search": [
        ["index", "fox", "-k", "3"],
        ["index", "fox", "dog", "--where", '{"year": {"gte": 3}}', "--json"],
        ["index", "fox", "--config", "sweep.yaml", "--searcher", "bm25", "--explain"],
        ["index"],
    ],
    "answer": [
        ["index", "Who?", "--answerer", "language_model:lm=openai/small,passages=2", "-r", "bm25", "--json"],
        [
            "index", "fox", "--where", '{"year": {"gte": 3}}', "-a",
            "language_model:lm={model: openai/small, base_url: 'http://127.0.0.1:1/v1', endpoint: {retries: 0}, cache_dir: a}",
        ],
    ],
    "serve": [
        ["index", "--port", "0", "--workers", "2", "--seconds", "5"],
        ["index", "-r", "bm25", "--set", "fusion=rrf", "--token-file", "ids.txt", "--host", "0.0.0.0"],
        ["index", "-r", "bm25", "--mcp-http", "--port", "0"],
    ],
    "benchmark": [
        ["sweep.yaml", "--no-wandb", "--output", "out"], ["sweep.yaml", "--dry-run"],
        ["run/config.yaml", "--output", "again"],
    ],
    "compare": [
        ["run", "other.trec", "--measures", "P@2", "--output", "compared"],
        ["run:bm25", "run:reranked", "--qrels", "run/qrels.txt", "--baseline", "bm25"],
    ],
    "diff": [
        ["run:bm25", "run:reranked", "--query", "c1", "--k", "2"],
    ],
    "tune": [["sweep.yaml", "--folds", "2"]],
    "gate": [
        ["gate.yaml", "--update", "--reason", "x"],
        ["gate.yaml", "--markdown", "a.md", "--junit", "a.xml"],
    ],
    "judge": [
        ["new", "judging", "--config", "sweep.yaml", "--queries", "ids.txt"], ["report", "index"], ["export", "run"],
        ["new", "judging", "--runs", "run", "--compare", "bm25:reranked"],
        ["questions", "from-log", "ids.txt", "asked.jsonl", "--sample", "2"],
    ],
    "agents": [
        ["evaluate", "agents.jsonl", "--config", "sweep.yaml", "--page", "a.html"],
        ["evaluate", "agents.jsonl", "folder", "--qrels", "run/qrels.txt", "--tool", "kb=search"],
        ["replay", "agents.jsonl", "--index", "index", "-k", "2", "-o", "again.jsonl", "--where", '{"year": 3}'],
    ],
    "components": [["retrievers", "bm25"], []],
    "demo": [["--output", "demo"]],
}  # fmt: skip

WORDS = [
    "", " ", "-", "--", "\n", "..", "../..", "~", "~nobody/x", ".", "a/b/c", "\x1b[31m", "🦊", "%s {} $HOME", "None", "true",
    "NaN", "1e999", "-1", "0", "1.5", "9" * 30, "9" * 5000, "null", "[", "]", "{", "{}", "[]", "[[]]", "[1, 2]", '{"a": 1}',
    "=", "a=", "a=b", "path=5", "k1=1e400", 'path="\\ud800"', 'path="\\u0000"', "bm25:k1=[", "bm25:k1={a", "name:", "::",
    ",", "bm25", "overlap", "hover", "jsonl", "beir", "database", "chunker", "weighted_sum:weights=[-1]", "rrf:k=x",
    "retrievers", "fox", "x" * 300, "y" * 70_000, "corpus.jsonl", "more.jsonl", "claims.json", "sweep.yaml",
    "ids.txt", "agents.jsonl",
    "index", "run", "run:", "run:nope", "other.trec", "run/trec", "index/manifest.json", "run/results.json",
    "run/manifest.json", "folder", "empty", "binary", "broken.json", "broken.yaml", "nowhere", "loop",
    "sqlite:///binary", "sqlite:///corpus.db",
    "postgresql://nobody@127.0.0.1:1/x", "http://127.0.0.1:1/x", "\udcff",
]  # fmt: skip

TYPED = [b"", b"fox\n", b"\xff\n", b"\x00\n", b"p3\np9\n", b"fox dog\r\n" * 300]

_ALWAYS = {
    "demo": ["--nothing"],
    "index": ["-r", "bm25"],
    "serve": ["--check", "--check"],
}
"""Put behind a command line, so that it starts no Java, loads no model, does not run all of the demo, serves nobody, and waits
for nobody; twice where an option before it may take the first for its value."""


class Ended(NamedTuple):
    """How a command ended."""

    code: object
    out: str
    err: str


def make_world(folder: Path) -> None:
    """Write what command lines are about into a folder: good files, bad ones, and a configuration; no index, run or project."""
    texts = ["red fox", "blue dog by the sea", "green cat", "a fox and a dog", "the sea", "cat and dog"]
    rows = [{"id": f"p{n}", "content": text, "title": f"T{n}", "year": n, "kind": "a"} for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "more.jsonl").write_text(json.dumps(rows[0] | {"id": "p9"}) + "\n")
    rest = {"label": "SUPPORTED", "num_hops": 2}
    claims = [
        {"uid": f"c{n}", "claim": text, "supporting_facts": [[f"T{n}", 0]], "hpqa_id": f"h{n}"} | rest
        for n, text in enumerate(texts[:4])
    ]
    (folder / "claims.json").write_text(json.dumps(claims))
    (folder / "ids.txt").write_text("p1\np2\n")
    steps = [{"question_id": f"c{n}", "query": text, "results": [f"p{n}", "p0"], "k": 2} for n, text in enumerate(texts[:4])]
    (folder / "agents.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    (folder / "words.txt").write_text("red 1 0\nfox 0 1\nsea 1 1\n")
    (folder / "sweep.yaml").write_text(yaml.safe_dump(settings()))
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(random.Random(0).randbytes(5000))
    (folder / "broken.json").write_text('{"a": [1, ')
    (folder / "broken.yaml").write_text("corpus: {loader: [jsonl\nk: *nothing\n")
    (folder / "loop").symlink_to("loop")


def settings() -> dict[str, Any]:
    """The configuration of a benchmark."""
    return {
        "corpus": {"loader": "jsonl", "path": "corpus.jsonl"},
        "queries": {"loader": "hover", "path": "claims.json", "hops": [2]},
        "k": [1, 2],
        "index": "index",
        "output": "out",
        "seed": 1,
        "latency_queries": 2,
        "searchers": {
            "bm25": {"retrievers": [{"name": "bm25", "k1": 0.9}]},
            "linked": {"retrievers": [{"name": "link_graph", "seeds": ["bm25"]}]},
            "reranked": {"retrievers": ["bm25"], "processor": "clauses", "reranker": {"name": "overlap"}, "depth": 3},
        },
    }


def command_line(command: str, chance: random.Random) -> list[str]:
    """Return a command and its words, up to three of them not as they should be."""
    words = list(chance.choice(GOOD[command]))
    for _ in range(chance.randint(0, 3)):
        place, kind = chance.randint(0, len(words)), chance.random()
        if kind < 0.75 and place < len(words):
            words[place] = chance.choice(WORDS)
        elif kind < 0.85:
            words.insert(place, chance.choice(WORDS))
        else:
            del words[place : place + chance.randint(1, 2)]
    return [command, *words, *_ALWAYS.get(command, [])]


def ended(words: Sequence[str], typed: bytes = b"") -> Ended:
    """Run a command line in this process, as the command does; what escapes it escapes here too."""
    with _standing_in(["nlp-retrieval", *words], typed) as (out, err), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", RetrievalWarning)
        code: object = "it returned"
        try:
            main()
        except SystemExit as end:
            code = end.code
    return Ended(code, *(stream.getvalue().decode("utf-8", "backslashreplace") for stream in (out, err)))


@contextmanager
def _standing_in(argv: list[str], typed: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.argv, sys.stdin = argv, io.TextIOWrapper(io.BytesIO(typed), "utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(stream, "utf-8", "backslashreplace", write_through=True) for stream in (out, err)
    )
    streams = sys.stdout, sys.stderr
    try:
        yield out, err
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams:
            stream.detach()
