"""A small project about the tram of a town that there is not, and a report that cites it."""

from __future__ import annotations

import json
from pathlib import Path

from cli.commands import run

SOURCES = [
    {
        "url": "https://stats.altbrunn.example/tram",
        "title": "Tram in figures",
        "content": "The tram of Altbrunn carried 2.4 million passengers in 2019.\n\nIt has 22 stops.",
        "quality": "A",
        "fetch_date": "2026-01-19T14:30:00Z",
    },
    {
        "url": "https://gazette.example/tram",
        "title": "The Gazette",
        "content": "Ida Rehm drew the plans of the depot in 1911. The tram of Altbrunn carried 2.4 million passengers in 2019.",
        "quality": "D",
        "fetch_date": "2026-02-02",
    },
]
CLAIM = "The tram of Altbrunn carried 2.4 million passengers in 2019."
REPORT = """# The tram

The tram of Altbrunn carried 2.4 million passengers in 2019 [1]. It carried 7.4 million passengers in 2019 [1].
It has 22 stops, and it opened in 1902 [2].

[1]: https://stats.altbrunn.example/tram
[2]: https://elsewhere.example/tram
"""


def make_project(folder: Path) -> Path:
    """Write sources and a report into a folder, and make a project of the sources beside them."""
    (folder / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SOURCES))
    (folder / "report.md").write_text(REPORT)
    done = run("evidence", "add", "project", "sources.jsonl", "-r", "bm25", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder
