"""Synonyms as a graph grows: ``python -m bench.hipporag.growth DATA MODEL`` writes a section of ``bench/HIPPORAG.md``.

The entities are titles and names of DATA's wiki collection, 10,000 to 200,000 of them, with static vectors that are distilled
from MODEL. Each size is measured in a process of its own, by all pairs and by cells. What is missed is counted for 1,000
entities drawn once, whose best hundred are found here by one product of matrices.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Data, aside, peak_bytes
from bench.evidence.speed_page import write_section
from bench.hipporag.filter import PAGE
from bench.writing import table
from nlp_retrieval import BeirLoader, StaticEncoder
from nlp_retrieval.encoders import Vectors, distill_static
from nlp_retrieval.retrievers import Hashes
from nlp_retrieval.retrievers.link_graph.tables import hash_of
from nlp_retrieval.systems.hipporag import synonyms
from nlp_retrieval.systems.hipporag.knowledge import phrase_of
from nlp_retrieval.text import entities_by_rules

TITLE = "Synonyms as a graph grows"
_SIZES = (10_000, 50_000, 100_000, 200_000)
_ALL_PAIRS_UP_TO = 100_000
_AT_LEAST = 0.8
_SAMPLE = 1_000


def vectors_of_names(data: Data, model: str) -> tuple[Vectors, Hashes]:
    """Return vectors and hashes of the names with the lowest hashes, which are a sample of all; made where they are missing."""
    kept = data.work / f"names-{Path(model).name}"
    if not (kept / "hashes.npy").exists():
        loader = BeirLoader(str(data.root / "wiki"))
        static = kept / "static"
        if not static.exists():
            distill_static(model, loader.stream(), static, dimension=384, most_words=10_000)
        phrases = {
            hash_of(phrase): phrase
            for item in loader.stream()
            for phrase in map(phrase_of, {item.title, *entities_by_rules(item.content)})
            if len(phrase.replace(" ", "")) >= synonyms.SHORTEST
        }
        hashes = sorted(phrases)[: max(_SIZES)]
        np.save(kept / "vectors.npy", StaticEncoder(static).encode_passages([phrases[key] for key in hashes]))
        np.save(kept / "hashes.npy", np.array(hashes, np.uint64))
    return np.load(kept / "vectors.npy", mmap_mode="r"), np.load(kept / "hashes.npy")


def measured(data: Data, model: str, size: int, way: str) -> dict[str, float]:
    """Return seconds of the processor, megabytes and pairs of one size, and the share of the sample's pairs that is found."""
    all_vectors, all_hashes = vectors_of_names(data, model)
    vectors, hashes = all_vectors[:size], all_hashes[:size]
    synonyms.EXACT_PAIRS = size**2 if way == "pairs" else 0
    before, begin = peak_bytes(), time.process_time()
    found = synonyms.synonyms_of(vectors, hashes, [], _AT_LEAST)
    seconds, peak = time.process_time() - begin, peak_bytes()
    sample = np.random.default_rng(0).permutation(size)[:_SAMPLE]
    lengths = np.linalg.norm(vectors, axis=1)
    scaled = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    true = 0
    missed = 0
    for one in sample:
        cosines = scaled @ scaled[one]
        cosines[one] = 0
        best = np.flatnonzero(cosines >= _AT_LEAST)
        best = best[np.argsort(-cosines[best])][: synonyms.MOST_SYNONYMS]
        partners = np.r_[found.targets[found.sources == hashes[one]], found.sources[found.targets == hashes[one]]]
        true += len(best)
        missed += int((~np.isin(hashes[best], partners)).sum())
    share = 1 - missed / max(true, 1)
    return {"seconds": seconds, "mb": (peak - before) / 1e6, "pairs": len(found.sources), "share": share, "true": true}


def write(data: Data, model: str) -> None:
    """Measure every size, and write the section."""
    vectors_of_names(data, model)
    rows: dict[str, list[str]] = {}
    for size in _SIZES:
        ways: dict[str, Any] = {
            way: aside("bench.hipporag.growth", data.root, model, size, way, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            for way in ("pairs", "cells")
            if way == "cells" or size <= _ALL_PAIRS_UP_TO
        }
        print(size, ways, flush=True)
        cells = ways["cells"]
        built = ways.get("pairs", cells)
        of_pairs = _cost(ways["pairs"]) if "pairs" in ways else ["-", "-"]
        rows[f"{size:,}"] = [
            f"{built['pairs']:,}",
            f"{built['pairs'] / size:.1f}",
            *of_pairs,
            *_cost(cells),
            f"{cells['share']:.1%} of {cells['true']:,}",
        ]
    heads = ["entities", "synonyms", "per entity", "all pairs, s", "MB", "cells, s", "MB", "found by cells"]
    text = (Path(__file__).parent / "growth.md").read_text("utf-8")
    write_section(PAGE, TITLE, text, model=Path(model).name, table=table(heads, rows))


def _cost(figures: dict[str, float]) -> list[str]:
    return [f"{figures['seconds']:,.1f}", f"{figures['mb']:,.0f}"]


def main(arguments: list[str]) -> int:
    """Measure, and write the section; with a size and a way, print only this one's figures."""
    if len(arguments) not in (2, 4) or not (Path(arguments[0]) / "wiki" / "corpus.jsonl").is_file():
        print("usage: python -m bench.hipporag.growth DATA MODEL   (DATA holds wiki/)")
        return 2
    warnings.simplefilter("ignore")
    data, model = Data.of(arguments[0]), arguments[1]
    if len(arguments) == 4:
        print(json.dumps(measured(data, model, int(arguments[2]), arguments[3])))
    else:
        write(data, model)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
