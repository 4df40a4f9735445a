"""A corpus for late interaction, in memory: repeated passages, empty passages, and queries."""

from __future__ import annotations

import random

import numpy as np
from hashed_tokens import HashedTokens

WORDS = [f"word{number}" for number in range(300)]


def some_texts(count: int = 900) -> list[str]:
    """Random texts; every ninth is empty, and every fourth repeats an earlier one, so that scores tie."""
    draw = random.Random(5)
    texts: list[str] = []
    for row in range(count):
        if row % 9 == 8:
            texts.append("")
        elif row % 4 == 3:
            texts.append(texts[draw.randrange(row)])
        else:
            texts.append(" ".join(draw.choices(WORDS, k=draw.randint(2, 30))))
    return texts


TEXTS = some_texts()
SPOKEN = np.array([bool(text) for text in TEXTS])
QUERIES = [" ".join(random.Random(seed).choices(WORDS, k=1 + seed % 7)) for seed in range(40)]
ASKED = [[query] for query in QUERIES]
ENCODER = HashedTokens(24)
