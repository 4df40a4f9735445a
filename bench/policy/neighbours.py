"""What finding neighbours costs and misses: ``python -m bench.policy.neighbours DATA [ROWS ...]``.

DATA holds the folder ``policy``. The passages of its collections, and beyond their number copies of them with a fifth of the
words drawn anew, a country to every 100; their vectors are random projections of their weighted words. Seconds are those of
one processor. The recall is that of the 5 neighbours of other countries, of 500 passages, against comparing all pairs.
"""

from __future__ import annotations

import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import BeirLoader
from nlp_retrieval.systems.policy.hop import neighbours
from nlp_retrieval.systems.policy.hop.neighbours import Pairs, neighbours_before

DIMENSION, OF_A_COUNTRY, ACROSS, LEAST, SAMPLED = 384, 100, 5, 0.6, 500
_WORDS = 2**15


def vectors_of(data: Path, n_rows: int) -> NDArray[np.float32]:
    """Vectors of passages, ``[n_rows, DIMENSION]``."""
    folders = [str(corpus.parent) for corpus in sorted(data.glob("policy/*/corpus.jsonl"))]
    texts = [item.text for folder in folders for item in BeirLoader(folder).stream()]
    words = [[zlib.crc32(word.encode()) % _WORDS for word in re.findall(r"\w+", text.lower())] for text in texts]
    seen = Counter(word for some in words for word in set(some))
    weights = np.array([np.log(len(texts) / (1 + seen[word])) for word in range(_WORDS)]).clip(0)
    draw = np.random.default_rng(0)
    directions = draw.standard_normal((_WORDS, DIMENSION), np.float32)
    rows = np.empty((n_rows, DIMENSION), np.float32)
    for row in range(n_rows):
        some = np.array(words[row % len(texts)] or [0])
        if row >= len(texts):
            others = np.array(words[draw.integers(len(texts))] or [0])
            some = np.where(draw.random(len(some)) < 0.2, draw.choice(others, len(some)), some)
        terms, counts = np.unique(some, return_counts=True)
        rows[row] = (np.sqrt(counts) * weights[terms]) @ directions[terms]
    return rows


def measured(vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> tuple[Pairs, float]:
    """The neighbours of some rows, and the seconds that they took."""
    apart = np.arange(len(vectors)) // OF_A_COUNTRY
    begin = time.process_time()
    found = neighbours_before(rows, np.arange(len(vectors)), vectors.__getitem__, ACROSS, LEAST, apart)
    return found, time.process_time() - begin


def main(arguments: Sequence[str]) -> int:
    """Print a line for each number of passages."""
    if not arguments or not (Path(arguments[0]) / "policy").is_dir():
        sys.stdout.write("usage: python -m bench.policy.neighbours DATA [ROWS ...]   (DATA holds the folder policy)\n")
        return 2
    for n_rows in [int(text) for text in arguments[1:]] or [1_000, 10_000, 100_000]:
        vectors = vectors_of(Path(arguments[0]), n_rows)
        found, seconds = measured(vectors, np.arange(n_rows))
        sample = np.sort(np.random.default_rng(1).choice(n_rows, min(SAMPLED, n_rows), replace=False))
        neighbours._ALL_PAIRS, kept = n_rows**2, neighbours._ALL_PAIRS
        all_pairs, of_sample = measured(vectors, sample)
        neighbours._ALL_PAIRS = kept
        wanted = set(zip(all_pairs.rows.tolist(), all_pairs.before.tolist(), strict=True))
        met = wanted & set(zip(found.rows.tolist(), found.before.tolist(), strict=True))
        sys.stdout.write(
            f"{n_rows:>9,} passages: {seconds:.1f} s, {len(found.rows):,} pairs, recall {len(met) / max(1, len(wanted)):.3f}; "
            f"all pairs, reckoned from {len(sample)}: {of_sample * n_rows / len(sample):.1f} s\n"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
