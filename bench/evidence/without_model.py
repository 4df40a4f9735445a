"""``python -m bench.evidence.without_model DATA`` writes ``bench/EVIDENCE_LEXICAL.md``: what needs no model.

DATA is a folder of sets (``pairs.jsonl`` in each) and of the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from bench.common import arguments
from bench.evidence import audit
from bench.evidence.measures import with_interval
from bench.evidence.verdicts import verdicts_of
from bench.evidence.written import flagged_pairs, written
from bench.writing import page, table
from nlp_retrieval.systems.evidence.lookups.checks import FAMILIES, LookedUp, looked_up
from nlp_retrieval.systems.evidence.verdict import deciding
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

_PAGE = Path(__file__).parent.parent / "EVIDENCE_LEXICAL.md"
_TEXT = (Path(__file__).parent / "without_model.md").read_text("utf-8")


def main(data: Path) -> None:
    """Measure, and write the page."""
    tables = ablation(data) | {"verdicts": verdicts_of(data, "pairs.jsonl"), "written": written()}
    _PAGE.write_text(page(_TEXT, **tables), "utf-8")


def ablation(data: Path) -> dict[str, str]:
    """Return tables of the audit and of the pairs by hand with each family of lookups off, and of the audit by kind."""
    rows: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    reasons, words = "", dict[str, list[str]]()
    known: dict[tuple[str, str, str, bool], LookedUp] = {}
    for off in ((), *((family,) for family in FAMILIES), FAMILIES):
        name = "all" if not off else "none" if len(off) > 1 else f"without {off[0]}"
        with TemporaryDirectory() as folder, _without(off, known):
            found = audit.audited(data / "audit", audit.sources(data / "audit", Path(folder)), LexicalVerifier())
            by_hand = flagged_pairs()
        figures = audit.figures(found)
        cells = [with_interval(figures[figure], found.families) for figure in ("precision", "recall", "false alarms")]
        rows[name] = [*cells, *(f"{share:.3f}" for share in by_hand)]
        if not off:
            kinds[name] = [with_interval(figures[kind], found.families).split(" ")[0] for kind in audit.KINDS]
            reasons = json.dumps(audit.reasons(found))
            words = {name: [f"{share:.3f}" for share in shares.values()] for name, shares in audit.words(found).items()}
    heads = ["lookups", "precision", "recall", "false alarms", "wrong pairs flagged", "swapped ones", "right ones flagged"]
    return {"ablation": table(heads, rows), "kinds": table(["lookups", *audit.KINDS], kinds), "reasons": reasons} | {
        "words": table(["citations", "supported", "weak", "neither"], words)
    }


@contextmanager
def _without(families: Sequence[str], known: dict[tuple[str, str, str, bool], LookedUp]) -> Iterator[None]:
    """Decide without what some families of lookups have against a claim."""

    def fewer(claim: str, read: str, whole: str, *, quoted: bool = False) -> LookedUp:
        key = (claim, read, whole, quoted)
        there = known.get(key) or looked_up(claim, read, whole, quoted=quoted)
        known[key] = there
        return replace(there, findings=tuple(one for one in there.findings if one.family not in families))

    with mock.patch.object(deciding, "looked_up", fewer):
        yield


if __name__ == "__main__":
    main(Path(*arguments(__doc__, 1)))
