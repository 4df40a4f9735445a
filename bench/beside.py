"""``python -m bench beside DATA BEFORE WORK``: the time of everyday work in this checkout beside another one.

Each workload runs in a process of its own, in both checkouts in turn; the table shows the least seconds and their ratio. BEFORE
is the other checkout. WORK is the folder of ``python -m bench same``: each checkout opens the index that it made there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parents[1]
_TURNS = 3
_COMMANDS = {"help": ("--help",), "version": ("--version",)}
_WORKLOADS = r"""
import json, sys, time, warnings
warnings.simplefilter("ignore")
name, data, index = sys.argv[1:]

def best(work, turns=3):
    seconds = []
    for _ in range(turns):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)

begin = time.perf_counter()
import nlp_retrieval
from nlp_retrieval import Searcher
if name == "import of the searcher":
    print(time.perf_counter() - begin)
    sys.exit()

def texts(file, key, n):
    with open(f"{data}/{file}", encoding="utf-8") as lines:
        return [json.loads(line)[key] for line, _ in zip(lines, range(n))]

questions = texts("wiki/hotpotqa/queries.jsonl", "text", 300)
bm25 = {"name": "bm25"}
if name == "bm25, 300 queries":
    searcher = Searcher([bm25]).open(index)
    searcher.search(questions[:3], 10)
    print(best(lambda: searcher.search(questions, 10)))
elif name == "bm25, one query":
    searcher = Searcher([bm25]).open(index)
    print(best(lambda: [searcher.search([question], 10) for question in questions[:60]]) / 60)
elif name == "opening":
    print(best(lambda: Searcher([bm25]).open(index), 9))
elif name == "link graph, 60 queries":
    searcher = Searcher([{"name": "link_graph", "seeds": [bm25]}]).open(index)
    searcher.search(questions[:3], 10)
    print(best(lambda: searcher.search(questions[:60], 10)))
elif name == "two retrievers fused and reranked, 60 queries":
    parts = [bm25, {"name": "link_graph", "seeds": [bm25]}]
    searcher = Searcher(parts, reranker="overlap").open(index)
    searcher.search(questions[:3], 10)
    print(best(lambda: searcher.search(questions[:60], 10)))
elif name == "building bm25, 5,000 passages":
    import tempfile
    from nlp_retrieval import BeirLoader
    small = tempfile.mkdtemp()
    with open(f"{data}/wiki/corpus.jsonl", encoding="utf-8") as lines, open(f"{small}/corpus.jsonl", "w") as out:
        out.writelines(line for line, _ in zip(lines, range(5000)))
    print(best(lambda: Searcher([bm25]).index(BeirLoader(small), tempfile.mkdtemp())))
elif name == "evaluation, 1,000 queries":
    import random
    import numpy
    from nlp_retrieval import Gold
    from nlp_retrieval.evaluation import RetrievalEvaluator
    draw = random.Random(0)
    gold = [Gold(query_id=f"q{n}", relevance={f"d{draw.randrange(500)}": 1 for _ in range(3)}) for n in range(1000)]
    rankings = numpy.array([draw.sample(range(500), 100) for _ in gold])
    evaluator = RetrievalEvaluator(gold, [f"d{row}" for row in range(500)], None, [10, 100])
    print(best(lambda: evaluator.evaluate(rankings), 9))
elif name == "encoding, 256 passages":
    from nlp_retrieval import SentenceTransformerEncoder
    encoder = SentenceTransformerEncoder()
    passages = texts("wiki/corpus.jsonl", "text", 256)
    encoder.encode_passages(passages[:8])
    print(best(lambda: encoder.encode_passages(passages), 2))
"""
_NAMES = (
    "import of the searcher", "opening", "bm25, one query", "bm25, 300 queries", "link graph, 60 queries",
    "two retrievers fused and reranked, 60 queries", "building bm25, 5,000 passages", "evaluation, 1,000 queries",
    "encoding, 256 passages",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Print the table."""
    if len(arguments) != 3:
        print("usage: python -m bench beside DATA BEFORE WORK")
        return 2
    data, before, work = (Path(argument).resolve() for argument in arguments)
    checkouts = {"before": before, "after": _HERE}
    print(f"{'seconds':46} {'before':>9} {'after':>9} {'ratio':>6}")
    for name in (*_COMMANDS, *_NAMES):
        seconds: dict[str, list[float]] = {"before": [], "after": []}
        for _ in range(_TURNS):
            for which, checkout in checkouts.items():
                seconds[which].append(_seconds(name, checkout, data, work / which / "hover" / "index"))
        least = {which: min(values) for which, values in seconds.items()}
        print(f"{name:46} {least['before']:9.4f} {least['after']:9.4f} {least['after'] / least['before']:6.2f}", flush=True)
    return 0


def _seconds(name: str, checkout: Path, data: Path, index: Path) -> float:
    environment: Mapping[str, str] = os.environ | {"PYTHONPATH": str(checkout), "PYTHONWARNINGS": "ignore"}
    if name in _COMMANDS:
        timed = "import time; begin = time.perf_counter()\ntry:\n    from nlp_retrieval.cli.app import main; main()\n"
        timed += "finally:\n    import sys; print(time.perf_counter() - begin, file=sys.stderr)"
        command = [sys.executable, "-c", timed, *_COMMANDS[name]]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=checkout)
        return float(done.stderr.splitlines()[-1])
    command = [sys.executable, "-c", _WORKLOADS, name, str(data), str(index)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=checkout)
    if done.returncode:
        raise RuntimeError(f"{name} in {checkout}:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])
