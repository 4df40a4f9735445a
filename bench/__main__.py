"""``python -m bench DATA [part ...]``: prints the table, and writes it to ``bench/RESULTS.md``.

``python -m bench real-files FOLDER`` reads public topic, judgement and run files; see :mod:`bench.real_files`.
``python -m bench house [FOLDER]`` counts lines, files and names of a checkout; see :mod:`bench.house`.
``python -m bench reading [FOLDER]`` follows a sweep, a query, an item and a citation through it; see :mod:`bench.reading`.
``python -m bench same DATA BEFORE WORK`` compares the answers and files of two checkouts; see :mod:`bench.same`.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench.common import Data, Row
from nlp_retrieval.benchmarks.environment import describe_environment

_PARTS = (
    "startup", "lucene", "composition", "evaluation", "memory", "updates",
    "encoders", "token_encoders", "gpu", "quality", "links", "multihop", "colbert", "sweep", "loaders",
)  # fmt: skip
_SCRIPTS = {"multihop": "bench.multihop.__main__"}
_HERE = Path(__file__).parent
_MARKS = {True: "met", False: "**missed**", None: "-"}


def main(arguments: list[str]) -> int:
    """Measure the parts named, or all; parts that are not measured keep the rows of the last time."""
    if arguments[:1] in (["real-files"], ["house"], ["reading"], ["same"]):
        return int(import_module(f"bench.{arguments[0].replace('-', '_')}").main(arguments[1:]))
    if not arguments or not (data := Data.of(arguments[0])).corpus.is_file():
        print(f"usage: python -m bench DATA [part ...]   (DATA holds wiki/, scifact/, musique/; parts: {', '.join(_PARTS)})")
        return 2
    warnings.simplefilter("ignore")
    for part in arguments[1:] or _PARTS:
        rows = list(import_module(_SCRIPTS.get(part, f"bench.{part}")).measure(data))
        (data.work / f"{part}.json").write_text(json.dumps([asdict(row) for row in rows]))
        for row in rows:
            print(f"{_MARKS[row.met]:10} {row.what}: {row.measured} [{row.budget}]", flush=True)
    _write(data)
    return 0


def _write(data: Data) -> None:
    """Write the table: each part with the rows of its last time, or as it stands in the table where those are not at hand."""
    path = _HERE / "RESULTS.md"
    sections = path.read_text().split("\n## ")[1:] if path.exists() else []
    standing = {section.split("\n", 1)[0]: section.rstrip().split("\n")[2:] for section in sections}
    environment = describe_environment()
    hardware, versions = environment["hardware"], environment["versions"]
    shown = ("python", "numpy", "faiss-cpu", "bm25s", "pyserini", "torch", "sentence-transformers")
    whole = all((data.work / f"{part}.json").exists() for part in _PARTS)
    last, others = ("run", "") if whole else ("last run, of some parts", "; other rows are of earlier runs, here or elsewhere")
    lines = [
        "# Measured",
        "",
        "Written by `make bench DATA=path/to/collections`; ratios are of two things timed in turn in one run, best of each.",
        "What the collections are, and what each row measures, stands in [README.md](README.md).",
        "",
        f"- {last}: {datetime.now(UTC):%Y-%m-%d}, {hardware['cores']} cores ({hardware['cpu']}), "
        f"{hardware.get('memory_bytes', 0) / 2**30:.0f} GiB{others}",
        "- " + ", ".join(f"{name} {versions[name]}" for name in shown if name in versions),
    ]
    for part in _PARTS:
        if (data.work / f"{part}.json").exists():
            rows = [Row(**row) for row in json.loads((data.work / f"{part}.json").read_text())]
            table = ["| what | budget | measured | |", "|---|---|---|---|"]
            table += [f"| {row.what} | {row.budget} | {row.measured} | {_MARKS[row.met]} |" for row in rows]
            lines += ["", f"## {part}", "", *table]
        elif part in standing:
            lines += ["", f"## {part}", "", *standing[part]]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
