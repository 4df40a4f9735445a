"""``python -m bench.evidence.without_model DATA WORK`` writes ``bench/EVIDENCE_LEXICAL.md``: what needs no model.

DATA is a folder of sets and of the audit, as for ``bench.evidence``; WORK a folder for judgements, kept there by set.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.evidence.measuring import Measured, audits_of, known_pairs, sets_of, some_pairs
from bench.evidence.verdicts import verdicts_of
from bench.evidence.written import written
from bench.writing import page
from nlp_retrieval.systems.evidence.lookups.checks import SIGNALS
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

_PAGE = Path(__file__).parent.parent / "EVIDENCE_LEXICAL.md"
_TEXT = (Path(__file__).parent / "without_model.md").read_text("utf-8")


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 2:
        print("usage: python -m bench.evidence.without_model DATA WORK")
        return 2
    data, work = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    ground = some_pairs(known_pairs(data))
    measured = [
        Measured("overlap", LexicalVerifier(), ("overlap",), "lexical", ground),
        Measured("lexical", LexicalVerifier(), SIGNALS, "lexical", ground),
    ]
    tables = sets_of(data, work, measured) | audits_of(data, work, measured)
    _PAGE.write_text(page(_TEXT, **tables, verdicts=verdicts_of(data, "pairs.jsonl"), written=written()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
