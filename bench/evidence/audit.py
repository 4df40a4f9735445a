"""The audit of citations whose truth is known: 40 reports, 400 citations, six ways to be wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.evidence.measures import Figure
from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

KINDS = ("contradicted", "wrong_source", "changed_number", "negated", "swapped_entity", "not_indexed")


@dataclass(frozen=True)
class Audited:
    """Citations with their truth, and the status and reason that the audit gave."""

    truth: list[dict[str, Any]]
    rows: list[dict[str, Any]]

    @property
    def families(self) -> list[str]:
        """Of each citation."""
        return [one["family"] for one in self.truth]


def sources(data: Path, folder: Path) -> EvidenceIndex:
    """Index the sources of the reports."""
    index = EvidenceIndex(folder, Searcher([Bm25Retriever()]))
    for one in map(json.loads, (data / "sources.jsonl").read_text("utf-8").splitlines()):
        index.add_document(one["text"], one["url"], one["title"], one["quality"], one["fetch_date"])
    index.build_index()
    return index


def audited(data: Path, index: EvidenceIndex, verifier: LexicalVerifier) -> Audited:
    """Audit all reports."""
    truth = [json.loads(line) for line in (data / "truth.jsonl").read_text("utf-8").splitlines()]
    auditor = CitationAuditor(index, verifier, verifier.threshold)
    by_place = {
        (report, row.citation.number): {"status": row.status, "reason": row.reason}
        for report in sorted({one["report"] for one in truth})
        for row in auditor.audit((data / "reports" / report).read_text("utf-8")).rows
    }
    missing = {"status": "PASS", "reason": ""}  # a citation that is not read is not flagged
    return Audited(truth, [by_place.get((one["report"], one["citation"]), missing) for one in truth])


def figures(audit: Audited) -> dict[str, Figure]:
    """Precision and recall of "not right", false alarms, recall by kind, and whether dead citations are named."""
    wrong = np.array([one["truth"] != "supported" for one in audit.truth])
    flagged = np.array([_flagged(row) for row in audit.rows])
    dead = np.array([row["status"] == "SOURCE_NOT_INDEXED" for row in audit.rows])
    kinds = np.array([one["truth"] for one in audit.truth])

    def share(of: NDArray[np.bool_], among: NDArray[np.bool_]) -> Figure:
        def figure(rows: NDArray[np.int64]) -> float:
            some = rows[among[rows]]
            return float(of[some].mean()) if len(some) else float("nan")

        return figure

    found = {"precision": share(wrong, flagged), "recall": share(flagged, wrong), "false alarms": share(flagged, ~wrong)}
    found |= {kind: share(flagged, kinds == kind) for kind in KINDS}
    found["not_indexed named"] = share(dead, kinds == "not_indexed")
    found["living called dead"] = share(dead, kinds != "not_indexed")
    return found


def words(audit: Audited) -> dict[str, dict[str, float]]:
    """The share of right and of wrong citations, among those whose source is indexed, that are supported, weak, and neither."""
    shares = {}
    for name, is_right in (("right", True), ("wrong", False)):
        own = [
            row["status"]
            for one, row in zip(audit.truth, audit.rows, strict=True)
            if (one["truth"] == "supported") is is_right and row["status"] != "SOURCE_NOT_INDEXED"
        ]
        shares[name] = {status: own.count(status) / len(own) for status in ("PASS", "WEAK", "REVIEW")}
    return shares


def reasons(audit: Audited) -> dict[str, dict[str, int]]:
    """How often each reason was given, by what was planted."""
    counts: dict[str, dict[str, int]] = {}
    for one, row in zip(audit.truth, audit.rows, strict=True):
        reason = "pass" if not _flagged(row) else row["reason"] or row["status"].lower().replace("_", " ")
        by_reason = counts.setdefault(one["truth"], {})
        by_reason[reason] = by_reason.get(reason, 0) + 1
    return counts


def _flagged(row: dict[str, Any]) -> bool:
    return row["status"] not in ("PASS", "WEAK")
