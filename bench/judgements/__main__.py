"""Write ``bench/JUDGEMENTS.md``: ``python -m bench.judgements DATA [REPETITIONS]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from bench.common import Data
from bench.judgements.collections import NAMES, worlds
from bench.judgements.simulation import stopping, until_decided

MEASURES = ["precision@10", "recall@10", "ndcg@10", "mrr@10"]


def main(root: str, repetitions: int = 200) -> None:
    """Simulate, and write the page."""
    data, began, rows = Data.of(root), time.monotonic(), []
    for name, world in worlds(data, data.work).items():
        missed = [max(stopping(world, measure, wrong, repetitions, 7) for measure in MEASURES) for wrong in (0.0, 0.05)]
        found = until_decided(world, 0.05, max(1, repetitions // 4), 7)
        every, few = (median(found[design]) for design in ("depth-k", "decisive"))
        rows.append(f"| {NAMES[name]} | {missed[0]:.3f} | {missed[1]:.3f} | {every:,.0f} | {few:,.0f} | {few / every:.2f} |")
        print(rows[-1], flush=True)
    page = (Path(__file__).parent / "page.md").read_text("utf-8")
    for mark, text in (
        ("stopping", "\n".join(rows)),
        ("repetitions", f"{repetitions:,}"),
        ("minutes", f"{(time.monotonic() - began) / 60:.0f}"),
    ):
        page = page.replace(f"<{mark}>", text)
    (Path(__file__).parents[1] / "JUDGEMENTS.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
