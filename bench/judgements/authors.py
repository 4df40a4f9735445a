"""Compare prediction-powered estimates with the authors' package: ``python -m bench.judgements.authors DATA [PROJECTS]``.

It needs ``ppi-python``. Projects are those of the simulation: 120 questions, of which people judge 40 and the judge all.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import median

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from bench.common import Data
from bench.judgements.collections import NAMES, worlds
from bench.judgements.simulation import BASELINE, FAMILIES, FAVOURED, judge, part
from nlp_retrieval.judging.estimates import intervals, query_values

ALONE = ("scifact", "musique")
"""Collections in which every question is a family of its own, as the package assumes."""


def main(root: str, projects: int = 200) -> None:
    """Print a row for each collection, judge and figure."""
    data = Data.of(root)
    known = {name: world for name, world in worlds(data, data.work).items() if name in ALONE}
    print("| collection | judge | figure | values differ by | width | holds, here | holds, theirs |")
    print("|---|---|---|---|---|---|---|")
    for name, world in known.items():
        for who in ("perfect", "kappa 0.6", "useless", "overrates"):
            draw = np.random.default_rng(7)
            every = np.arange(len(world.gold))
            judged = replace(world.pool, grades=world.gold, model=judge(world, every, who, world.pool, draw))
            values = query_values(judged, "precision@10", BASELINE)
            for key in ((BASELINE, None), (FAVOURED, BASELINE)):
                row = values.rows.index(key)
                truth = values.people[row].mean()
                apart, ratio, ours, theirs = [], [], [], []
                for _ in range(projects):
                    queries, families = world.numbers(draw.integers(0, len(world.pairs_of), FAMILIES))
                    drawn = part(values, queries, families < FAMILIES // 3)
                    people, labelled = drawn.people[row, drawn.complete], drawn.model[row, drawn.complete]
                    rest = drawn.model[row, ~drawn.complete]
                    value, low, high = intervals(drawn, families)[1][row]
                    other = float(np.ravel(ppi_mean_pointestimate(people, labelled, rest))[0])
                    ends = [float(np.ravel(end)[0]) for end in ppi_mean_ci(people, labelled, rest, alpha=0.05)]
                    apart.append(abs(value - other) / (high - low))
                    ratio.append((high - low) / max(ends[1] - ends[0], 1e-9))
                    ours.append(low <= truth <= high)
                    theirs.append(ends[0] <= truth <= ends[1])
                shown = f"{key[0]} - {key[1]}" if key[1] else key[0]
                print(
                    f"| {NAMES[name]} | {who} | {shown} | {median(apart):.3f} | {median(ratio):.2f} | {np.mean(ours):.3f} | "
                    f"{np.mean(theirs):.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
