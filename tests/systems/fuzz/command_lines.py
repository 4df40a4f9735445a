"""Command lines of systems as nobody should write them, as :mod:`fuzz.command_lines` has them for the library."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from fuzz import command_lines

GOOD: dict[str, list[list[str]]] = {
    "policy ask": [
        ["--profile", "climate", "--index", "index", "--output", "answers", "-q", "1", "--country", "Japan", "--no-page"],
        ["--profile", "broken.yaml", "--index", "index", "--method", "both", "--top-k", "3", "--min-similarity", "0.1"],
        ["-p", "guidelines", "--index", "index", "--hop", "--where", '{"year": {"gte": 3}}', "--log-file", "ask.log"],
        ["hostile.yaml", "--output", "answers", "--n-per-document", "1"],
        ["sweep.yaml", "--question", "9", "--log-level", "DEBUG"],
    ],
    "hover optimize": [["sweep.yaml", "--output", "program.json", "--searcher", "bm25", "--budget", "1"]],
    "evidence": [
        ["add", "project", "sources.jsonl", "-r", "bm25"],
        ["add", "project", "report.md", "folder", "--quality", "B", "--date", "2026-01-19T14:30:00Z", "--no-build"],
        ["add", "new", "report.md", "--url", "https://d.example/1", "-r", "bm25"],
        ["delete", "project", "https://a.example/1", "https://b.example/1"],
        ["search", "project", "fox", "-k", "2", "--min-quality", "B"],
        ["search", "project", "fox", "--json", "-r", "bm25"],
        ["verify", "project", "A fox sleeps 9 hours.", "--type", "C1", "--threshold", "0.7", "--verifier", "lexical"],
        ["verify", "project", "fox", "--json", "--verifier", "pair_model:model=folder"],
        ["verify", "project", "fox", "--verifier", "language_model:lm={model: openai/small, base_url: 'http://127.0.0.1:9'}"],
        ["audit", "project", "report.md", "--html", "page.html", "--json", "audit.json", "--fail-on", "not-indexed"],
        ["audit", "project", "report.md", "--threshold", "0.4", "--verifier", "lexical:calibration=broken.json"],
        ["research", "project", "Where do foxes sleep?", "--search", "searxng:url=http://127.0.0.1:9", "--fetch", "http"],
        ["research", "new", "fox", "--search", "searxng:url=http://127.0.0.1:9", "--fetch", "http:max_redirects=2", "-r",
         "bm25", "--pages", "2", "-k", "2", "--json"],
        ["stats", "project", "--json"],
        ["export", "project", "-o", "exported", "--judged", "judged.jsonl"],
        ["calibrate", "pairs.jsonl", "-o", "calibration.json", "--limit", "50"],
        ["train-verifier", "broken.json", "-o", "model", "--base", "folder", "--epochs", "1"],
        ["--help"],
    ],
    "hipporag": [
        ["index", "corpus.jsonl", "--config", "hipporag2.yaml", "--json"],
        ["index", "claims.json", "-l", "hover", "--replace", "-c", "hipporag2.yaml"],
        ["ask", "Who?", "fox", "--config", "hipporag2.yaml", "--json"],
        ["evaluate", "claims.json", "--first", "3", "--config", "hipporag2.yaml"],
        ["evaluate", "-c", "hostile.yaml"],
    ],
    "serve": [
        ["folder", "--as", "project", "--set", "verifier=lexical", "--max-body", "1", "--allowed-host", "example.org"],
        ["folder", "--as", "project", "-r", "bm25", "--mcp-http", "--port", "0"],
    ],
}  # fmt: skip

MORE = {
    "evidence": [
        "add", "audit", "delete", "stats", "project", "project/10_graph", "report.md", "sources.jsonl", "pairs.jsonl", "C1",
        "https://a.example/1", "file:///", "javascript:1", "lexical:calibration=empty", "--no-build", "--json",
    ],
}  # fmt: skip
"""Words for one command alone."""

ALWAYS = {
    "serve": ["--check", "--check"],
}
"""Put behind a command line, so that it serves nobody and waits for nobody."""


def make_world(folder: Path) -> None:
    """Write what command lines are about into a folder; no index, run or project."""
    command_lines.make_world(folder)
    sources = [{"url": f"https://{name}.example/1", "content": f"A {name} sleeps 9 hours in 24."} for name in ("fox", "cat")]
    (folder / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sources))
    (folder / "report.md").write_text("A fox sleeps 9 hours [1]. A dog sleeps 12 hours [2].\n\n[1]: https://fox.example/1\n")
    quoted = {"claim": "A fox sleeps.", "url": "https://fox.example/1", "quote": "sleeps 9 hours"}
    (folder / "judged.jsonl").write_text(json.dumps(quoted) + "\n")
    pair = {"claim": "A fox sleeps.", "passage": "A fox sleeps 9 hours.", "label": "support"}
    (folder / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    nobody = {"model_name": "small", "base_url": "http://127.0.0.1:1/v1"}
    described = {"llm": nobody | {"provider": "vllm"}, "embedding": nobody | {"provider": "custom"}}
    described |= {"indexing": {"retry_attempts": 0}, "storage": {"save_dir": "hipporag2"}}
    (folder / "hipporag2.yaml").write_text(yaml.safe_dump(described))
