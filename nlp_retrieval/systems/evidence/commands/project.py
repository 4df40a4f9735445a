"""The project, the retrievers and the verifier that a command names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import built
from nlp_retrieval.errors import SourceError
from nlp_retrieval.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from nlp_retrieval.core import BaseRetriever, Config
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
    from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier


Project = Annotated[Path, typer.Argument(help="Folder of a project; its sources are in its subfolder 10_graph.")]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        "-r",
        help="Retriever of passages: name or name:key=value. Repeatable. By default those of the project's index; for a "
        "new one bm25 and faiss.",
    ),
]
VerifierOption = Annotated[
    str,
    typer.Option(
        "--verifier",
        help="Verifier: lexical (no model), or name:key=value,...: pair_model with model=FOLDER (or a hub name) and "
        "calibration=FILE, language_model with lm=openai/NAME.",
    ),
]
ThresholdOption = Annotated[
    float | None, typer.Option("--threshold", help="Lowest probability of weak support; by default that of the calibration.")
]
BibliographyOption = Annotated[
    Path | None, typer.Option(help="Works that keys or authors of the report name: BibTeX, CSL-JSON or Zotero's JSON.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_FOLDERS = ("index", "colbert_index")


def open_project(project: Path, retrievers: Sequence[str | BaseRetriever] | None) -> EvidenceIndex:
    """Return a project's index of sources."""
    from nlp_retrieval import Searcher
    from nlp_retrieval.core import MANIFEST_FILE, BaseRetriever, retrievers_of
    from nlp_retrieval.systems.evidence.index.evidence_index import GRAPH_FOLDER, EvidenceIndex

    existing = next((name for name in _FOLDERS if (project / GRAPH_FOLDER / name / MANIFEST_FILE).is_file()), None)
    if retrievers:
        chosen = [built(BaseRetriever, "--retriever", each) if isinstance(each, str) else each for each in retrievers]
    elif existing is not None:
        chosen = retrievers_of(project / GRAPH_FOLDER / existing)
    else:
        return EvidenceIndex(project)
    return EvidenceIndex(project, Searcher(chosen), existing or _FOLDERS[0])


def existing_project(project: Path, retrievers: list[str] | None, *, may_be_emptied: bool = False) -> EvidenceIndex:
    """Return the index of a project that has sources, or whose sources were all deleted; a ``SourceError`` if it has none."""
    index = open_project(project, retrievers)
    if not index.sources() and not (may_be_emptied and index.has_deleted):
        raise SourceError(f"{project} holds no sources; add some with: nlp-retrieval evidence add {project} FILE_OR_FOLDER")
    return index


def chosen_verifier(chosen: str | Config) -> BaseVerifier:
    """Return the verifier that the user named."""
    from nlp_retrieval.core import build_as
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

    if isinstance(chosen, str):
        return built(BaseVerifier, "--verifier", chosen)
    return build_as(BaseVerifier, BaseVerifier.kind, chosen, "--verifier")


def console() -> Console:
    """Return a console that does not cut lines unless it is a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_passage(to: Console, before: str, passage: EvidencePassage, text: str, page: str) -> None:
    """Print the source of a passage with the page, and below it the text."""
    from rich.padding import Padding
    from rich.text import Text

    heading = Text(before)
    if passage.title:
        heading.append(visible(passage.title), "bold cyan")
    heading.append(f"{'  ' if passage.title else ''}{passage.quality}  {visible(passage.url)}{page and f', {page}'}", "dim")
    to.print(heading)
    content = Text(" ".join(visible(text).split()))
    to.print(Padding(content, (0, 0, 1, 5)) if to.is_terminal else Text("     ") + content)
