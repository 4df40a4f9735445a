"""``python -m bench reading [FOLDER]``: how many files a reader enters who follows one thing through the code of a checkout.

A reader follows calls and reads each function once, when it is first called. A step is such a function; the walk enters a file
with its first step there, and returns when a step lies in a file that was left before. Bodies of classes, which an import runs,
are no steps. Walks: a sweep from its settings to the first search, one query, one added item, one audited citation. Another
checkout is walked with its own code: its folder is the argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parents[1]

_WALKS = r"""
import inspect, json, os, sys, tempfile, threading, warnings
from pathlib import Path

warnings.simplefilter("ignore")
root = Path(sys.argv[1]) / "nlp_retrieval"
os.chdir(tempfile.mkdtemp())

from nlp_retrieval import SearchableItem, JsonlLoader, Searcher
try:
    from nlp_retrieval import Bm25Retriever as Lexical
except (ImportError, AttributeError):
    from nlp_retrieval import Bm25sRetriever as Lexical
from nlp_retrieval.cli.app import main
try:
    from nlp_retrieval import evidence
    evidence.EvidenceIndex
except (ImportError, AttributeError):
    import nlp_retrieval as evidence

class Arrived(BaseException):
    pass

def walk(run, stop=None):
    steps, seen = [], set()
    def trace(frame, event, argument):
        code = frame.f_code
        if event != "call" or code in seen or not code.co_filename.startswith(str(root)):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module or a class, which an import runs
            return
        if code.co_name.startswith("<") or code.co_name in ("__init__", "__eq__", "__hash__", "__repr__"):
            return
        seen.add(code)
        steps.append((str(Path(code.co_filename).relative_to(root)), code.co_qualname))
        if stop is not None and stop(steps[-1]):
            sys.setprofile(None)
            raise Arrived
    sys.setprofile(trace)
    try:
        run()
    except Arrived:
        pass
    finally:
        sys.setprofile(None)
    files = [file for file, _ in steps]
    moves = [file for file, last in zip(files, [None, *files]) if file != last]
    return {"steps": len(steps), "files": len(set(files)), "returns": len(moves) - len(set(moves)), "walk": steps}

Path("corpus.jsonl").write_text("".join(
    json.dumps({"id": f"d{n}", "title": f"Town {n}", "content": f"Town {n} lies on river {n % 3}. It has {n} bridges."}) + "\n"
    for n in range(9)))
Path("queries.jsonl").write_text("".join(json.dumps({"id": f"q{n}", "text": f"bridges of town {n}"}) + "\n" for n in range(4)))
Path("qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(4)))
Path("sweep.yaml").write_text(
    "corpus: {name: jsonl, path: corpus.jsonl}\n"
    "queries: {name: topics, path: queries.jsonl, qrels: qrels.txt}\n"
    "searchers:\n  a: {retrievers: [bm25]}\n  b: {retrievers: [{name: bm25, k1: 1.5}]}\nindex: index\nk: [1, 3]\n")

def sweep():
    sys.argv[1:] = ["benchmark", "sweep.yaml"]
    main()

def reached(step):
    return step[0].startswith("retrievers/") and step[1].endswith((".search", ".retrieve", "._search"))

found = {"a sweep, to its first search": walk(sweep, reached)}
loader = JsonlLoader("corpus.jsonl")
searcher = Searcher(retrievers=[Lexical()])
searcher.index(loader, "one")
searcher.search(["river"], 2)
found["one query"] = walk(lambda: searcher.search(["bridges of town 3"], 2))
found["one added item"] = walk(lambda: searcher.add([SearchableItem(item_id="new", content="Town with no bridge.")]))
sources = evidence.EvidenceIndex("project", Searcher([Lexical()]))
sources.add_document("The bridge at Torvik is 312 metres long. It opened in 1974.", "https://example.org/bridge")
sources.build_index()
auditor = evidence.CitationAuditor(sources, evidence.LexicalVerifier())
found["one citation"] = walk(lambda: auditor.audit("The bridge is 312 metres long [1].\n\n[1]: https://example.org/bridge\n"))
print(json.dumps(found))
"""


def main(arguments: list[str]) -> int:
    """Print the walks through a checkout; with ``--steps`` each step too."""
    folders = [argument for argument in arguments if not argument.startswith("--")]
    root = Path(folders[0]).resolve() if folders else _HERE
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", _WALKS, str(root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(done.stderr)
        return 1
    print(f"{'':30} {'steps':>7} {'files':>7} {'returns':>7}")
    for name, walk in json.loads(done.stdout.splitlines()[-1]).items():
        print(f"{name:30} {walk['steps']:7} {walk['files']:7} {walk['returns']:7}")
        if "--steps" in arguments:
            print("\n".join(f"    {file}: {function}" for file, function in walk["walk"]))
    return 0
