"""Rooms only shrink: the lines of each are at most those of ``rooms.tsv``, which is written anew as they fall.

A change that needs more room in one place takes it from another, in the same commit: their sum may not grow.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import nlp_retrieval

PACKAGE = Path(nlp_retrieval.__file__).parent
MOST = 72_498
"""The sum of the figures in ``rooms.tsv``; it only falls."""


def test_no_room_is_larger_than_its_figure_and_their_sum_does_not_grow() -> None:
    with (Path(__file__).parents[1] / "rooms.tsv").open(encoding="utf-8", newline="") as file:
        figures = {row["room"]: int(row["lines"]) for row in csv.DictReader(file, delimiter="\t")}
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts[:-1]
        room = "/".join(parts[:2] if parts[:1] == ("systems",) else parts[:1]) or "root"
        lines[room] += path.read_text("utf-8").count("\n")
    grown = {room: count for room, count in lines.items() if count > figures.get(room, 0)}
    assert not grown, "cut there, or give another room's lines in tests/rooms.tsv"
    assert sum(figures.values()) <= MOST
