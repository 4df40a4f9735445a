"""SciFact as an open task: which searcher finds the evidence, and whether what is found is called right.

A prediction is a claim, an abstract and a label; it is right where people gave that abstract that label. How many abstracts
are read, and how sure a call must be, is chosen on claims of the training part whose families the model was not trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.evidence.measures import Figure, mean_of, with_interval
from bench.evidence.pairs import Judged, judged
from nlp_retrieval import Bm25Retriever, FaissRetriever, Searcher, SentenceTransformerEncoder
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair

_DEPTHS = (3, 10)
_READ = (1, 2, 3)
_CUTS = tuple(np.round(np.arange(0.3, 0.96, 0.05), 2))
_LABELS = ("support", "contradict")

Called = list[list[tuple[str, str]]]
"""Per claim, the abstracts that are called and their labels."""


@dataclass(frozen=True)
class Claim:
    """A claim, and the label that people gave to each abstract that holds evidence."""

    text: str
    family: str
    gold: dict[str, str]


def claims_of(data: Path, split: str, families: set[str] | None = None) -> list[Claim]:
    """The claims of a split, of some families or of all."""
    rows = [json.loads(line) for line in (data / "scifact" / "claims.jsonl").read_text("utf-8").splitlines()]
    return [
        Claim(row["claim"], row["family"], {key: one["label"] for key, one in row["evidence"].items()})
        for row in rows
        if row["split"] == split and (families is None or row["family"] in families)
    ]


def abstracts(data: Path) -> dict[str, dict[str, Any]]:
    """All abstracts by their id."""
    rows = map(json.loads, (data / "scifact" / "corpus.jsonl").read_text("utf-8").splitlines())
    return {str(row["_id"]): row for row in rows}


def searchers(base: str, folder: Path, data: Path) -> dict[str, Searcher]:
    """By name: both fused, lexical, and dense by the model that training began with; one index in a folder serves all."""
    lexical, dense = Bm25Retriever(), FaissRetriever(SentenceTransformerEncoder(base))
    fused = Searcher([lexical, dense])
    if not folder.exists():
        items = [
            SearchableItem(item_id=key, content=row["text"], metadata={"title": row["title"]})
            for key, row in abstracts(data).items()
        ]
        fused.index(items, folder)
    return {"bm25s": Searcher([lexical]), "dense": Searcher([dense]), "bm25s and dense, fused": fused}


def found(searcher: Searcher, folder: Path, claims: Sequence[Claim]) -> list[list[str]]:
    """The ids of the first abstracts of each claim."""
    results = searcher.open(folder).search([claim.text for claim in claims], k=max(_DEPTHS))
    return [[one.item.item_id for one in rows] for rows in results]


def recall_rows(claims: Sequence[Claim], ranked: Sequence[Sequence[str]]) -> list[str]:
    """Recall of the abstracts with evidence, at each depth, over the claims that have some."""
    some = [number for number, claim in enumerate(claims) if claim.gold]
    cells = []
    for depth in _DEPTHS:
        shares = [len(claims[n].gold.keys() & set(ranked[n][:depth])) / len(claims[n].gold) for n in some]
        cells.append(with_interval(mean_of(shares), [claims[n].family for n in some]))
    return cells


def judged_first(
    verifier: BaseVerifier, data: Path, claims: Sequence[Claim], ranked: Sequence[Sequence[str]], kept: Path
) -> Judged:
    """What a verifier says of each claim beside its first abstracts."""
    texts = abstracts(data)
    pairs = [
        JudgedPair(claim.text, texts[key]["text"], "neutral", family=claim.family, pair_id=f"{number}/{key}")
        for number, (claim, keys) in enumerate(zip(claims, ranked, strict=True))
        for key in keys[: max(_READ)]
    ]
    return judged(verifier, pairs, kept)


def called(n_claims: int, of: Judged, probabilities: NDArray[np.float64], read: int, cut: float) -> Called:
    """Which of the first ``read`` abstracts are called, where support or contradict is at least ``cut``."""
    calls: Called = [[] for _ in range(n_claims)]
    seen = [0] * n_claims
    for pair, row in zip(of.pairs, probabilities, strict=True):
        number, _, key = pair.pair_id.partition("/")
        claim = int(number)
        seen[claim] += 1
        if seen[claim] <= read and max(row[0], row[1]) >= cut:
            calls[claim].append((key, _LABELS[int(row[1] > row[0])]))
    return calls


def abstract_f1(claims: Sequence[Claim], calls: Called) -> Figure:
    """F1 over (claim, abstract, label)."""
    right = np.array(
        [sum(claim.gold.get(key) == label for key, label in row) for claim, row in zip(claims, calls, strict=True)]
    )
    both = np.array([len(claim.gold) + len(row) for claim, row in zip(claims, calls, strict=True)])
    return lambda rows: float(2 * right[rows].sum() / both[rows].sum()) if both[rows].sum() else 0.0


def chosen(claims: Sequence[Claim], of: Judged, probabilities: NDArray[np.float64]) -> tuple[int, float]:
    """How many abstracts to read, and the cut, with the highest F1."""
    everything = np.arange(len(claims))

    def f1(read: int, cut: float) -> float:
        return abstract_f1(claims, called(len(claims), of, probabilities, read, cut))(everything)

    return max(product(_READ, _CUTS), key=lambda one: f1(*one))
