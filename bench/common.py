"""What the measurements share: the data, one timing rule, one row of the table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its budget, what came out, and whether that is within the budget."""

    what: str
    budget: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class Data:
    """The collections, and a folder for what takes long to make (indexes), which is kept between runs."""

    root: Path
    work: Path

    @property
    def corpus(self) -> Path:
        """The passages of the wiki collection, in BEIR's form."""
        return self.root / "wiki" / "corpus.jsonl"

    def texts(self) -> list[str]:
        """Title and text of every passage."""
        with self.corpus.open(encoding="utf-8") as lines:
            return [f"{item['title']}\n{item['text']}" for item in map(json.loads, lines)]

    def questions(self) -> list[str]:
        """The first 1,000 HotpotQA questions."""
        with (self.root / "wiki" / "hotpotqa" / "queries.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line)["text"] for line in lines][:1000]


def best_of_each(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Best seconds of each call; they take turns, so that whatever else the machine does hits all of them."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for number, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - begin)
    return best


def at_least(what: str, budget: float, ratio: float, detail: str) -> Row:
    """A row whose ratio has to be at least so much."""
    return Row(what, f"at least {budget:g} times", f"{ratio:.2f} times ({detail})", ratio >= budget)


def at_most(what: str, budget: float, ratio: float, detail: str) -> Row:
    """A row whose ratio may be at most so much."""
    return Row(what, f"at most {budget:g} times", f"{ratio:.2f} times ({detail})", ratio <= budget)
