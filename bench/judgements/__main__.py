"""Write ``bench/JUDGEMENTS.md``: ``python -m bench.judgements DATA [REPETITIONS]``."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

from bench.common import Data
from bench.judgements.collections import NAMES, worlds
from bench.judgements.simulation import JUDGES, Cell, coverage, coverage_of_pairs, stopping, until_decided

WHOLE = ["precision@10", "recall@10", "ndcg@10", "mrr@10", "perfect_recall@10"]
ERRORS = (0.0, 0.05)
BOUNDED = ("kappa 0.6", "perfect")
FEWER = 4  # designs of single pairs are simulated this many times less often


def figures(cells: list[Cell]) -> tuple[float, float, float, float, float, int]:
    """Return lowest coverage alone and with the judge, share of cells below .93, and widths: median and largest ratio."""
    alone = [float(np.mean(held)) for cell in cells for held in cell.people.values()]
    both = [float(np.mean(held)) for cell in cells for held in cell.both.values()]
    means = [np.mean(widths, axis=0).tolist() for cell in cells for widths in cell.widths.values()]
    ratios = [wide / narrow for narrow, wide in means if narrow > 1e-9]
    low = sum(value < 0.93 for value in alone + both) / len(alone + both)
    return min(alone), min(both), low, median(ratios), max(ratios), len(both)


def needed(cell: Cell, student: Cell) -> str:
    """Return the columns that compare intervals with those that hold the truth in exactly 95%, and with Student's.

    Args:
        cell: of one judge.
        student: of the same judge, with no family that nobody has seen.
    """
    exact = np.array([2 * np.quantile(np.abs(errors), 0.95, axis=0) for errors in cell.errors.values()])
    found, alone = (np.array([np.mean(widths, axis=0) for widths in one.widths.values()]) for one in (cell, student))
    ratios = [np.median(widths[:, 1] / widths[:, 0]) for widths in (exact, alone, found)]
    wider = np.median(found / exact, axis=0)
    lowest = [min(figures([one])[:2]) for one in (student, cell)]
    return " | ".join([*(f"{value:.2f}" for value in (*ratios, *wider)), *(f"{value:.3f}" for value in lowest)])


def main(root: str, repetitions: int = 1000) -> None:
    """Simulate everything, and write the page."""
    data, began = Data.of(root), time.monotonic()
    known = worlds(data, data.work)
    every = list(known.values())
    lines = []
    fewer = max(1, repetitions // FEWER)
    often, seldom = max(1, repetitions // 5), max(1, repetitions // 20)
    with ProcessPoolExecutor(2) as workers:
        looking = {name: [workers.submit(stopping, world, m, often, 7) for m in WHOLE[:4]] for name, world in known.items()}
        deciding = {name: workers.submit(until_decided, world, 0.05, seldom, 7) for name, world in known.items()}
        exact = {
            name: [workers.submit(coverage, world, WHOLE, 0.0, BOUNDED, often, 7, unseen) for unseen in (1.0, 0.0)]
            for name, world in known.items()
        }
        for wrong in ERRORS:
            whole = [workers.submit(coverage, world, WHOLE, wrong, JUDGES, repetitions, 7) for world in every]
            single = {
                design: [
                    workers.submit(coverage_of_pairs, world, design, "precision@10", wrong, JUDGES, fewer, 7) for world in every
                ]
                for design in ("stratified", "decisive")
            }
            for design, done, times in (
                ("depth-k", whole, repetitions),
                *((name, done, fewer) for name, done in single.items()),
            ):
                cells = [future.result() for future in done]
                lines += [_row(design, wrong, name, [own[name] for own in cells], times) for name in JUDGES]
                print(*lines[-len(JUDGES) :], sep="\n", flush=True)
        looks = {name: max(future.result() for future in futures) for name, futures in looking.items()}
        decided = {name: future.result() for name, future in deciding.items()}
    bounds = [
        f"| {NAMES[name]} | {judge} | {needed(*(future.result()[judge] for future in futures))} |"
        for name, futures in exact.items()
        for judge in BOUNDED
    ]
    stops = [
        f"| {NAMES[name]} | {looks[name]:.3f} | {median(found['depth-k']):,.0f} | {median(found['decisive']):,.0f} | "
        f"{median(found['decisive']) / median(found['depth-k']):.2f} |"
        for name, found in decided.items()
    ]
    page = (Path(__file__).parent / "page.md").read_text("utf-8")
    for mark, text in (
        ("coverage", "\n".join(lines)),
        ("needed", "\n".join(bounds)),
        ("stopping", "\n".join(stops)),
        ("repetitions", f"{repetitions:,}"),
        ("fewer", f"{fewer:,}"),
        ("looks", f"{often:,}"),
        ("minutes", f"{(time.monotonic() - began) / 60:.0f}"),
    ):
        page = page.replace(f"<{mark}>", text)
    (Path(__file__).parents[1] / "JUDGEMENTS.md").write_text(page, "utf-8")


def _row(design: str, wrong: float, judge: str, cells: list[Cell], repetitions: int) -> str:
    alone, both, low, middle, widest, count = figures(cells)
    return (
        f"| {design} | {wrong:.0%} | {judge} | {alone:.3f} | {both:.3f} | {low:.0%} of {2 * count} | {middle:.2f} | "
        f"{widest:.2f} | {repetitions:,} |"
    )


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
