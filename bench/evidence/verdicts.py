"""How often ``verify`` refutes true claims, and finds false ones, in a project that holds the passages of all of a set."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from pathlib import Path

from bench.evidence.measures import mean_of, with_interval
from bench.writing import table
from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.fitting import JudgedPair, read_pairs
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

SETS = ("healthver", "scifact", "fever")
STATUSES = ("VERIFIED", "SUPPORTED", "WEAK", "DISPUTED", "REFUTED", "UNVERIFIED")
_LABELS = {"support": "true", "contradict": "false"}


def verdicts_of(data: Path, part: str, claims: int = 200) -> str:
    """Return a table of the shares by status of true and of false claims of a part of each set."""
    rows: dict[str, list[str]] = {}
    for name in SETS:
        drawn = drawn_claims(data / name / part, claims)
        found = statuses_of(drawn, LexicalVerifier())
        for label, truth in _LABELS.items():
            of = [(row.family, status) for row, status in zip(drawn, found, strict=True) if row.label == label]
            families = [family for family, _ in of]
            shares = [mean_of([float(status == other) for _, status in of]) for other in STATUSES]
            rows[f"{name}, {truth}"] = [str(len(of)), *(with_interval(share, families) for share in shares)]
    return table(["claims", "n", *STATUSES], rows)


def drawn_claims(path: Path, most: int) -> list[JudgedPair]:
    """Return at most ``most`` supported and as many contradicted pairs; no claim twice, and none with two labels."""
    rows = read_pairs(path)
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        labels[row.claim].add(row.label)
    random.Random(0).shuffle(rows)
    drawn: list[JudgedPair] = []
    for label in _LABELS:
        once = {row.claim: row for row in rows if row.label == label and not {"support", "contradict"} <= labels[row.claim]}
        drawn += list(once.values())[:most]
    return drawn


def statuses_of(rows: list[JudgedPair], verifier: BaseVerifier) -> list[str]:
    """Return the status of each claim in a project with the passages of all."""
    with tempfile.TemporaryDirectory() as folder:
        index = EvidenceIndex(folder, Searcher([Bm25Retriever()]))
        for number, row in enumerate({row.passage: row for row in rows}.values()):
            index.add_document(row.passage, f"https://source{number}.example/", "", "A")
        index.build_index()
        claims = ClaimVerifier(index, verifier)
        return [claims.verify(row.claim).verification_status for row in rows]
