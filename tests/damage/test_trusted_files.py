"""What readers do with damaged files of whatever size: opening compares no contents.

The interpreter never dies and never hangs. What a header or a size can tell is a typed error; numbers that lead outside are
too. What is left are values that only ``verify`` can tell from right ones: then the answer is still well formed. FAISS's own
files are not among these: their reader trusts its input, so opening compares their contents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from nlp_retrieval.errors import IndexDamagedError

from .collection import SIZE, IndexFile, files_of, retrievers
from .damages import Damage, damaged, flips, structural
from .trials import Found, Trials

HEADER = 128
CROSS_CHECKED = ("rows.npy", "frequencies.npy", "lengths.npy")
"""Of bm25: any other number in one contradicts the others."""
PLAIN = [label for label in retrievers() if label not in ("hnsw", "ivfpq", "sq8")]
COMPILED = ("bm25", "colbert, 2 bits", "colbert, 4 bits", "splade")
CASES = [("items", "numpy"), *((label, "numpy") for label in PLAIN), *((label, "numba") for label in COMPILED)]


def every_damage(index: Path, file: IndexFile, effort: int) -> Iterator[tuple[Damage, bool]]:
    """Damages, and whether the answer may differ: one byte of the content may be another value."""
    path = index / file.path
    size = path.stat().st_size
    header = HEADER if file.name.endswith(".npy") else 0
    others = [index / other.path for other in files_of(index) if other.path != file.path]
    for damage in structural(path, others, effort):
        yield damage, damage.kind == "swapped with" and file.owner != "bm25"  # columns of one kind look alike
    for damage in flips(size, 3 * effort, len(file.path), (0, header)) if header else []:
        yield damage, False
    for damage in flips(size, 4 * effort, len(file.path) + 1, (header, size)):
        yield damage, file.owner != "bm25" or file.name not in CROSS_CHECKED


def well_formed(found: Found) -> bool:
    known = {f"d{row}" for row in range(SIZE)}
    return all(
        len({item for item, _ in hits}) == len(hits) <= 10
        and {item for item, _ in hits} <= known
        and all(math.isfinite(score) for _, score in hits)
        and all(one >= other for (_, one), (_, other) in pairwise(hits))
        for hits in found
    )


def check_reader(
    trials: Trials, index: Path, owner: str, effort: int, figures: Figures, label: str, backend: str = "numpy"
) -> None:
    """Damage the files of an owner, and check what the reader of a retriever makes of them."""
    healthy = trials.search(index, label, backend)
    assert well_formed(healthy)
    outcomes: Counter[str] = Counter()
    files = [file for file in files_of(index, effort) if file.owner == owner and file.name != "index.faiss"]
    for file in files:
        for damage, may_differ in every_damage(index, file, effort):
            try:
                with damaged(index / file.path, damage):
                    found = trials.search(index, label, backend)
            except IndexDamagedError:
                outcomes["refused"] += 1
                continue
            outcomes["without effect" if found == healthy else "other values"] += 1
            assert found == healthy or may_differ, f"{file} {damage}"
            assert well_formed(found), f"{file} {damage}"
        assert trials.search(index, label, backend) == healthy
    parts = ", ".join(f"{count:,} {what}" for what, count in outcomes.most_common())
    note = f"{len(files)} files: {parts}; no crash"
    figures.add("Damage", f"{owner}, {backend}: contents believed", outcomes.total(), outcomes.total(), note)


@pytest.mark.parametrize("case", mostly_soaked(CASES, 2), ids=str)
def test_no_reader_follows_damaged_numbers(
    case: tuple[str, str], index: Path, believing: Trials, effort: int, figures: Figures
) -> None:
    owner, backend = case
    check_reader(believing, index, owner, effort, figures, "bm25" if owner == "items" else owner, backend)
