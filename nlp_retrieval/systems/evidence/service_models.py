"""Requests and answers of the endpoints and tools of a project of sources."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    StringConstraints,
    create_model,
)

from nlp_retrieval.service import RequestBody, ResultCount
from nlp_retrieval.systems.evidence.citations.formats import ReportFormat
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.statistics import IndexStatistics
from nlp_retrieval.systems.evidence.index.store import SourceVersion

Grade = Literal["A", "B", "C", "D", "E"]
MetadataFilter = Annotated[dict[str, JsonValue], Field(min_length=1)]
Statement = Annotated[str, StringConstraints(max_length=10_000)]


class SourceToAdd(RequestBody):
    """A source to be added."""

    content: str = Field(min_length=1, description="Its text; invisible characters are removed.")
    url: str = Field(min_length=1, max_length=8_192, description="Where it was read, as https://example.org/page.")
    title: str = Field(default="", max_length=10_000, description="Of the page.")
    quality: Grade | None = Field(
        default=None,
        description="Its grade, A (best) to E; by default the one given before, else by the rules.",
    )
    fetch_date: str = Field(default="", max_length=100, description="Date of fetching, ISO 8601; by default now.")


class IndexBody(RequestBody):
    """Sources to be added: all of them, or none if one cannot be used."""

    documents: list[SourceToAdd] = Field(max_length=1000, description="In the order in which they are added.")
    build: bool = Field(default=True, description="Whether to build the index now, with all sources added before.")


class IndexAnswer(BaseModel):
    """For each document, whether something new can be cited; and the texts and passages that the project holds."""

    added: list[bool]
    document_count: int
    passage_count: int
    index_built: bool


class PassageSearchBody(RequestBody):
    """A search in all sources."""

    query: Statement = Field(description="A claim, a question, or keywords.")
    k: ResultCount = Field(default=5, description="At most this many passages.")
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")
    where: MetadataFilter | None = Field(default=None, description="Only passages whose metadata match this.")


class PassagesAnswer(BaseModel):
    """Passages, best first, or in the order of their source."""

    passages: list[EvidencePassage]
    notes: list[str] = Field(default=[], description="What was omitted or matched nothing, and what to do.")


_FIGURES: Any = {name: (kind, ...) for name, kind in get_type_hints(IndexStatistics).items()}
ProjectFigures: type[BaseModel] = create_model(
    "ProjectFigures",
    __doc__="Figures of the project and of its searches: those of ``EvidenceIndex.stats``.",
    **_FIGURES,
)


Claim = Annotated[str, StringConstraints(min_length=1, max_length=10_000, strip_whitespace=True)]
ClaimType = Annotated[
    Literal["C1", "C2", "C3"], Field(description="C1 needs sources of grade B or better, C2 and C3 of C or better.")
]


class VerifyBody(RequestBody):
    """A claim to be verified."""

    claim: Claim = Field(description="One statement, as a whole sentence and not as a question.")
    claim_type: ClaimType = "C2"


class AuditBody(RequestBody):
    """A report whose citations are to be audited."""

    report: str = Field(
        max_length=200_000,
        description="Up to 200,000 characters and 2,000 citations: numbers, notes, links, authors with a year, or keys.",
    )
    format: ReportFormat = Field(default="markdown", description="Of the report.")
    bibliography: str = Field(
        default="",
        max_length=1_000_000,
        description="BibTeX or CSL-JSON, if keys or authors of the report name its works.",
    )


class SourcesAnswer(BaseModel):
    """The sources of the project, in the order of adding; ``total`` counts also those that were left out."""

    sources: list[SourceVersion]
    total: int


class DeleteAnswer(BaseModel):
    """The number of deleted versions, and of the texts that the project still holds."""

    deleted_versions: int
    document_count: int


class ListArguments(RequestBody):
    """Which sources to list."""

    match: str = Field(default="", max_length=1_000, description="Text in the title or the URL; empty: all.")
    limit: int | None = Field(default=50, ge=1, description="At most this many; null: all.")


class PassageArguments(RequestBody):
    """A part of a source to be read."""

    key: str = Field(min_length=1, max_length=64, description="Of the source, from a search result.")
    start: int = Field(default=0, ge=0, description="Where to begin in the source, in characters, from a search result.")
    count: int = Field(default=5, ge=1, le=100, description="At most this many passages, in the order of the source.")
