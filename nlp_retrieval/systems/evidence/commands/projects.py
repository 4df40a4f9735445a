"""Shared parts of the commands of ``nlp-retrieval evidence``: the project, its searcher, and the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlp_retrieval.cli import parse_component

if TYPE_CHECKING:
    from nlp_retrieval.core import BaseRetriever, Config
    from nlp_retrieval.errors import SourceError
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

Project = Annotated[Path, typer.Argument(help="Folder of a project; its sources are kept in 10_graph below it.")]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        "-r",
        help="What finds passages: name or name:key=value. Repeatable. By default what the project's index holds; for a "
        "new one bm25 and faiss.",
    ),
]
VerifierOption = Annotated[
    str,
    typer.Option(
        "--verifier",
        help="What judges: lexical (no model), pair_model:model=FOLDER_OR_HUB_NAME,calibration=FILE or "
        "language_model:lm=PROVIDER/MODEL, ...",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Plain values instead of a text for people.")]

_FOLDERS = ("index", "colbert_index")


def open_project(project: Path, retrievers: Sequence[str | BaseRetriever] | None) -> EvidenceIndex:
    """Return a project's index of sources.

    Args:
        project: its folder.
        retrievers: components, or their spelling on the command line; None or empty for those of the existing index, else the
            default.
    """
    from nlp_retrieval.systems.evidence.index.archive import GRAPH_FOLDER

    from nlp_retrieval import Searcher
    from nlp_retrieval.core import MANIFEST_FILE, BaseRetriever, build_as, retrievers_of
    from nlp_retrieval.errors import SourceError
    from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

    try:
        built = next((name for name in _FOLDERS if (project / GRAPH_FOLDER / name / MANIFEST_FILE).is_file()), None)
    except OSError as error:
        raise SourceError(f"{project} cannot be the folder of a project: {error.strerror or error}") from None
    name = built or _FOLDERS[0]
    if retrievers:
        chosen = [
            build_as(BaseRetriever, "retrievers", parse_component(each), "--retriever") if isinstance(each, str) else each
            for each in retrievers
        ]
        return EvidenceIndex(project, Searcher(chosen), name)
    if built is not None:
        return EvidenceIndex(project, Searcher(retrievers_of(project / GRAPH_FOLDER / name)), name)
    return EvidenceIndex(project)


def existing_project(project: Path, retrievers: list[str] | None) -> EvidenceIndex:
    """Return the index of a project that has sources.

    Raises:
        SourceError: it has none.
    """
    index = open_project(project, retrievers)
    if not index.sources():
        raise _without_sources(project)
    return index


def emptied_or_existing_project(project: Path, retrievers: list[str] | None) -> EvidenceIndex:
    """Return the index of a project that has sources, or had some and they were deleted.

    Raises:
        SourceError: it never had any.
    """
    index = open_project(project, retrievers)
    if not index.sources() and not index.has_deleted:
        raise _without_sources(project)
    return index


def _without_sources(project: Path) -> SourceError:
    from nlp_retrieval.errors import SourceError

    return SourceError(f"{project} holds no sources; add some with: nlp-retrieval evidence add {project} FILE_OR_FOLDER")


def chosen_verifier(chosen: str | Config) -> BaseVerifier:
    """Return the verifier that the user named."""
    from nlp_retrieval.core import build_as
    from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

    return build_as(BaseVerifier, "verifiers", parse_component(chosen) if isinstance(chosen, str) else chosen, "--verifier")
