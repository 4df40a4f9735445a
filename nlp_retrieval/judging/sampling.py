"""Designs: which pairs people judge, and with what probability each was to be chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.judging.pool import JudgingPool

Design = Literal["depth-k"]

DESIGNS: tuple[Design, ...] = ("depth-k",)


def choose(pool: JudgingPool, design: str, *, budget: int | None, seed: int) -> JudgingPool:
    """Return a pool with the pairs that people are to judge, and the probabilities with which they were chosen.

    "depth-k" judges all pairs of a question. With a budget below that, it draws families without replacement, each equally
    likely: as many as the budget allows on average, at least one.

    Args:
        pool: all pairs.
        design: "depth-k".
        budget: number of pairs; None for all.
        seed: of the draw.

    Raises:
        ConfigurationError: there is no such design.
    """
    if design not in DESIGNS:
        raise ConfigurationError(f"design={design!r}; take {', '.join(DESIGNS)}")
    if budget is None or budget >= len(pool.item_ids):
        return pool
    names = [name if name is not None else f"\0{number}" for number, name in enumerate(pool.families)]
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    family = np.array([number[name] for name in names])
    # the share is fixed before the draw, so that the probability does not depend on which families were drawn
    count = max(1, int(len(number) * budget / len(pool.item_ids)))
    drawn = np.isin(family, np.random.default_rng(seed).permutation(len(number))[:count])
    share = count / len(number)
    return replace(
        pool,
        chosen=drawn[pool.pair_query],
        inclusion=np.full(len(pool.item_ids), share),
        query_inclusion=np.full(len(pool.query_ids), share),
    )
