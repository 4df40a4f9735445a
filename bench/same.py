"""``python -m bench same DATA BEFORE WORK``: whether this checkout answers as another one does, byte for byte.

Runs in both: the three demos, and 24 configurations over the HoVer claims and the wiki collection of DATA. Compares what holds
no times: results.json, TREC files, index files (but Lucene's, which are never twice the same), audit.json, policy answers.
BEFORE is the other checkout; WORK keeps both runs, which are used again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parents[1]
_RUNS = (
    ("demo", "--no-wandb", "--output", "demo"),
    ("evidence", "demo", "--output", "evidence"),
    ("policy", "demo", "--output", "policy"),
    ("benchmark", "hover.yaml"),
)
_TIMES = re.compile(rb'"(?:created|written|at|time|seconds|asked_at|started|finished|fetch_date)": ?("[^"]*"|[0-9.e+-]+)')
_COMPARED = ("results.json", "*.trec", "qrels.txt", "audit.json", "answers*.json", "*.npy", "*.bin", "*.faiss", "*.parquet")
_RETRIEVERS = {
    "bm25": ["{name: bm25}"],
    "bm25 1.6 .75": ["{name: bm25, k1: 1.6, b: 0.75}"],
    "two": ["{name: bm25}", "{name: link_graph, seeds: [bm25], damping: 0.3}"],
    "link graph": ["{name: link_graph, seeds: [bm25]}"],
}
_PROCESSORS = ("null", "clauses")
_RERANKERS = ("null", "overlap", "{name: overlap, blend: rank}")


def _hover(data: Path) -> str:
    """Return a sweep of 24 configurations as YAML."""
    lines = [
        f"corpus: {{loader: beir, path: {json.dumps(str(data / 'wiki'))}}}",
        f"queries: {{loader: hover, path: {json.dumps(str(data / 'wiki' / 'hover' / 'hover_dev_subset.json'))}}}",
        "index: hover/index\noutput: hover/run\nlatency_queries: 2\nk: [5, 10, 21]\nsearchers:",
    ]
    for (name, retrievers), processor, reranker in itertools.product(_RETRIEVERS.items(), _PROCESSORS, _RERANKERS):
        settings = f"retrievers: [{', '.join(retrievers)}], processor: {processor}, reranker: {reranker}"
        lines.append(f"  {json.dumps(f'{name}, {processor}, {reranker}')}: {{{settings}}}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run both checkouts where that is still to do, and print each file that differs."""
    if len(arguments) != 3:
        print("usage: python -m bench same DATA BEFORE WORK")
        return 2
    data, before, work = (Path(argument).resolve() for argument in arguments)
    folders = {"before": before, "after": _HERE}
    for name, checkout in folders.items():
        _run(checkout, work / name, data)
    first, second = (_digests(work / name) for name in folders)
    differing = sorted(file for file in first.keys() | second.keys() if first.get(file) != second.get(file))
    print("\n".join(differing))
    print(f"{len(first):,} files compared, {len(differing):,} differ")
    return int(bool(differing))


def _run(checkout: Path, folder: Path, data: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hover.yaml").write_text(_hover(data), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    for command in _RUNS:
        finished = folder / f"{command[0]}.finished"
        if finished.exists():
            continue
        subprocess.run([sys.executable, "-m", "nlp_retrieval", *command], cwd=folder, env=environment, check=True)
        finished.touch()


def _digests(folder: Path) -> dict[str, str]:
    """Return a digest of each compared file, by its path; generations of an index have random names, which are left out."""
    files = sorted(file for pattern in _COMPARED for file in folder.rglob(pattern) if file.is_file())
    digests: dict[str, list[str]] = {}
    for file in files:
        name = re.sub(r"[0-9a-f]{12,}", "*", file.relative_to(folder).as_posix())

        content = file.read_bytes()
        if file.suffix == ".json":
            content = _TIMES.sub(b"", content)
        digests.setdefault(name, []).append(hashlib.sha256(content).hexdigest())
    return {name: " ".join(sorted(those)) for name, those in digests.items()}
