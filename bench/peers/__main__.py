"""Hybrid search over the wiki collection beside other libraries: ``python -m bench.peers DATA [LIBRARY ...]`` writes PEERS.md.

The other libraries are installed in a venv apart, ``bench/.work/peers-venv``; naming some measures those alone and prints.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.common import Data, python_with, record_of
from bench.peers.libraries import ALONE, AT_ONCE, LIBRARIES, LONGEST
from bench.writing import page, shown, table
from nlp_retrieval import BeirLoader, FaissRetriever, Searcher, SentenceTransformerEncoder

PACKAGES = {
    "langchain": ("langchain-classic", "langchain-community", "rank-bm25", "faiss-cpu"),
    "llama_index": ("llama-index-core", "llama-index-retrievers-bm25==0.7.1", "llama-index-vector-stores-faiss"),
    "haystack": ("haystack-ai",),
    "txtai": ("txtai",),
    "lancedb": ("lancedb",),
    "pyterrier": ("pyterrier", "pyterrier-pisa", "pyterrier-dr"),
}
CUTOFF = 5
Gold = list[set[int]]


def prepared(data: Data) -> tuple[Path, Gold]:
    """The folder that ``libraries.py`` reads, and the rows that answer each question."""
    encoder = SentenceTransformerEncoder()
    dense, index, folder = FaissRetriever(encoder), data.work / "wiki-index", data.work / "peers"
    corpus = BeirLoader(str(data.corpus))
    Searcher([dense]).index(corpus, index)
    questions = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
    rows = {item.item_id: row for row, item in enumerate(corpus.load())}
    asked = questions.queries()[:1000]
    answers = {one.query_id: one.relevance for one in questions.gold()}
    gold = [{rows[name] for name in answers[query.query_id]} for query in asked]
    folder.mkdir(exist_ok=True)
    texts = data.texts()
    (folder / "texts.json").write_text(json.dumps(texts), "utf-8")
    (folder / "questions.json").write_text(json.dumps([query.text for query in asked]), "utf-8")
    np.save(folder / "passages.npy", np.load(record_of(index, dense)[1] / "vectors.npy"))
    np.save(folder / "questions.npy", encoder.encode_queries([query.text for query in asked]))
    return folder, gold


def python_of(data: Data, library: str) -> Path:
    """The interpreter that has a library."""
    if library == "nlp_retrieval":
        return Path(sys.executable)
    return python_with(data.work / "peers-venv", library, ["torch==2.13.0", *PACKAGES[library]])


def measured(data: Data, library: str, folder: Path) -> dict[str, Any]:
    """What ``libraries.py`` says of a library."""
    script = Path(__file__).with_name("libraries.py")
    command = [python_of(data, library), "-W", "ignore", "-P", script, library, folder]  # -P: modules beside it have such names
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def row(told: dict[str, Any], gold: Gold, fewest: int) -> list[str]:
    """The cells of a library; all are compared by the first questions too, as many as the slowest had time for."""
    seconds, lists = told["seconds"], told["rows"]
    recall = [len(answers.intersection(found[:CUTOFF])) / len(answers) for found, answers in zip(lists, gold, strict=False)]
    return [
        shown(np.array(recall[:fewest]), [None] * fewest),
        f"{shown(np.array(recall), [None] * len(recall))}{'' if len(lists) == len(gold) else f' (of {len(lists)})'}",
        f"{seconds['import']:.1f} s",
        f"{seconds['build']:.1f} s",
        f"{len(lists) / sum(seconds['together']):,.0f} a second",
        f"{1000 * median(seconds['alone']):.1f} ms",
        f"{1000 * float(np.quantile(seconds['alone'], 0.95)):.1f} ms",
        f"{told['peak'] - told['before']:,.0f} MB",
    ]


def versions(data: Data) -> str:
    """The packages that were measured, as they are installed."""
    names = sorted({name.split("=")[0] for needed in PACKAGES.values() for name in needed})
    told = (
        "import sys; from importlib.metadata import version; print(', '.join(f'{one} {version(one)}' for one in sys.argv[1:]))"
    )
    command = [str(python_of(data, "txtai")), "-c", told, *names]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main(root: str, libraries: list[str]) -> None:
    """Measure the libraries, all by default, and write the page if none is named."""
    data = Data.of(root)
    folder, gold = prepared(data)
    told = {name: measured(data, name, folder) for name in libraries or LIBRARIES}
    fewest = min(len(one["rows"]) for one in told.values())
    rows = {f"{name}: {LIBRARIES[name].__doc__}": row(one, gold, fewest) for name, one in told.items()}
    recalls = f"recall@{CUTOFF} of the first {fewest}", f"of all {len(gold):,}"
    heads = ["", *recalls, "import", "index", "many questions", "one question", "p95", "memory"]
    written = table(heads, rows)
    print(written)
    if not libraries:
        text = Path(__file__).with_name("page.md").read_text("utf-8")
        values = {
            "table": written,
            "alone": ALONE,
            "at_once": AT_ONCE,
            "longest": LONGEST,
            "cutoff": CUTOFF,
            "versions": versions(data),
        }
        (Path(__file__).parent.parent / "PEERS.md").write_text(page(text, **values), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
