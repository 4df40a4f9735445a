"""Pairs of a claim and a source that were written by hand, by somebody who had not seen how they are judged.

Half of them were read when lookups were mended, half were not. ``written.jsonl`` has one a line: ``half`` ("read", "not read"),
``kind``, ``language``, ``gold`` ("supported", "contradicted", "unsupported"), ``claim`` and ``source``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.writing import shown, table
from nlp_retrieval.systems.evidence.verdict.deciding import Decider, Question
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

_FILE = Path(__file__).with_name("written.jsonl")
_HALVES = ("read", "not read")


def _flagged() -> tuple[list[dict[str, str]], NDArray[np.float64]]:
    rows = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
    verifier = LexicalVerifier()
    questions = [Question(row["claim"], row["source"], row["source"]) for row in rows]
    decisions = Decider(verifier, verifier.threshold).decide(questions)
    return rows, np.array([not decision.holds for decision in decisions], dtype=float)


def flagged_pairs() -> tuple[float, float, float]:
    """Return the shares that ``lexical`` flags of all wrong pairs, of those with swapped values, and of the right ones."""
    rows, flagged = _flagged()
    kinds = np.array([row["kind"] for row in rows])
    among = (kinds != "supported", kinds == "swapped", kinds == "supported")
    wrong, swapped, right = (float(flagged[some].mean()) for some in among)
    return wrong, swapped, right


def written() -> str:
    """Return a table: of each kind, the share that ``lexical`` flags in each half; of supported ones, false alarms."""
    rows, flagged = _flagged()

    def cell(half: str, kinds: set[str]) -> str:
        here = [at for at, row in enumerate(rows) if row["half"] == half and row["kind"] in kinds]
        return f"{shown(flagged[here], [rows[at]['id'] for at in here])} of {len(here)}"

    wrong = sorted({row["kind"] for row in rows} - {"supported"})
    kinds = {"supported": {"supported"}, "all wrong ones": set(wrong)} | {kind: {kind} for kind in wrong}
    return table(["pairs", *_HALVES], {name: [cell(half, of) for half in _HALVES] for name, of in kinds.items()})
