"""What a project of sources is asked, and answers: the models of its endpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, create_model

from nlp_retrieval.service import RequestBody, ResultCount
from nlp_retrieval.systems.evidence.citations.citation import Reference, UncitedSentence
from nlp_retrieval.systems.evidence.citations.rows import AuditReason, AuditStatus
from nlp_retrieval.systems.evidence.citations.summary import AuditSummary
from nlp_retrieval.systems.evidence.claims.independence import Origin
from nlp_retrieval.systems.evidence.claims.status import ClaimStatus
from nlp_retrieval.systems.evidence.index.metadata import IndexStatistics
from nlp_retrieval.systems.evidence.index.records import EvidencePassage

__all__ = [
    "AuditAnswer",
    "AuditBody",
    "IndexAnswer",
    "IndexBody",
    "PassageSearchBody",
    "PassagesAnswer",
    "ProjectFigures",
    "SourceToAdd",
    "VerifyAnswer",
    "VerifyBody",
]

Grade = Literal["A", "B", "C", "D", "E"]
MetadataFilter = Annotated[dict[str, JsonValue], Field(min_length=1)]
Statement = Annotated[str, StringConstraints(max_length=10_000)]


class SourceToAdd(RequestBody):
    """A source to be added."""

    content: str = Field(min_length=1, description="Its text; characters that no reader sees are left out of it.")
    url: str = Field(min_length=1, max_length=8_192, description="Where it was read: http, https or file.")
    title: str = Field(default="", max_length=10_000, description="Of the page.")
    quality: Grade | None = Field(
        default=None, description="Its grade, A (best) to E; without it the one given before, else by the rules of grades."
    )
    fetch_date: str = Field(
        default="", max_length=100, description="When it was fetched, ISO 8601; without it, it counts as fetched now."
    )


class IndexBody(RequestBody):
    """Sources to be added, all of them or, where one cannot be used, none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {
                            "content": "The Danube flows through Vienna.",
                            "url": "https://example.org/danube",
                            "title": "Danube",
                            "quality": "B",
                            "fetch_date": "2026-01-19T14:30:00Z",
                        }
                    ],
                    "build": True,
                }
            ]
        }
    )

    documents: list[SourceToAdd] = Field(max_length=1000, description="In the order in which they are added.")
    build: bool = Field(default=True, description="Whether to make them searchable now, with whatever was added before.")


class IndexAnswer(BaseModel):
    """What became of the sources.

    Args:
        added: for each document, whether something can be cited now that could not before; false for a duplicate.
        document_count: texts that the project holds.
        passage_count: their passages.
        index_built: whether there is an index to search.
    """

    added: list[bool]
    document_count: int
    passage_count: int
    index_built: bool


class PassageSearchBody(RequestBody):
    """A search in all sources."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Which river flows through Vienna?", "k": 5, "min_quality": "C"}]}
    )

    query: Statement = Field(description="A claim, a question, or keywords.")
    k: ResultCount = Field(default=5, description="At most this many passages.")
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")
    where: MetadataFilter | None = Field(default=None, description="Only passages whose metadata meet this.")


class PassagesAnswer(BaseModel):
    """Passages, best first, or in the order of their source."""

    passages: list[EvidencePassage]
    notes: list[str] = Field(default=[], description="What was left out or found nothing, and what to do.")


_FIGURES: Any = {name: (kind, ...) for name, kind in get_type_hints(IndexStatistics).items()}
ProjectFigures: type[BaseModel] = create_model(
    "ProjectFigures",
    __doc__="What the project holds, and what was asked of it: those of ``EvidenceIndex.stats``.",
    **_FIGURES,
)


class VerifyBody(RequestBody):
    """A claim to be looked up."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"claim": "The Danube flows through Vienna.", "claim_type": "C2"}]}
    )

    claim: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] = Field(description="One statement.")
    claim_type: Literal["C1", "C2"] = Field(
        default="C2", description="C1 needs sources of grade B or better, C2 of C or better."
    )


class EvidenceFound(BaseModel):
    """A passage that was judged, and the sentence that decided."""

    content: str
    quote: str
    url: str
    title: str
    quality: str
    fetch_date: str
    source: str
    start: int
    end: int
    support: float
    contradict: float
    neutral: float


class VerifyAnswer(BaseModel):
    """What the sources say to the claim, and by which rule that gives its status."""

    claim: str
    claim_type: str
    min_quality: str
    supporting_evidence: list[EvidenceFound]
    contradicting_evidence: list[EvidenceFound]
    neutral_evidence: list[EvidenceFound]
    independence_count: int
    contradicting_independence_count: int
    supporting_origins: list[Origin]
    contradicting_origins: list[Origin]
    verification_status: ClaimStatus
    rule: str
    not_judged: int


class AuditBody(RequestBody):
    """A report whose citations are to be audited."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "report": "# Rivers\n\nThe Danube flows through Vienna [1].\n\n## References\n\n"
                    "[1] Danube. https://example.org/danube\n"
                }
            ]
        }
    )

    report: str = Field(
        max_length=200_000,
        description="Markdown of up to 200,000 characters and 2,000 citations: [1] and a list of references, notes or links.",
    )


class ReportTitle(BaseModel):
    """The report."""

    title: str


class DecidingPassage(BaseModel):
    """The passage of the cited source that comes nearest, and the span of its deciding sentence."""

    content: str
    url: str
    title: str
    quality: str
    fetch_date: str
    key: str
    start: int
    end: int
    deciding: tuple[int, int]


class AuditedCitation(BaseModel):
    """One citation."""

    number: int
    mark: str
    sentence: str
    line: int
    url: str
    title: str
    status: AuditStatus
    reason: AuditReason
    detail: str
    support_score: float
    other_source: str
    passage: DecidingPassage | None


class MissingReference(BaseModel):
    """A mark without an entry."""

    mark: str
    sentence: str
    line: int


class AuditAnswer(BaseModel):
    """What an audit found: the same as ``nlp-retrieval evidence audit --json`` writes."""

    format: int
    report: ReportTitle
    summary: AuditSummary
    citations: list[AuditedCitation]
    uncited: list[UncitedSentence]
    missing: list[MissingReference]
    unused: list[Reference]
    duplicates: list[Reference]


class PassageArguments(RequestBody):
    """A part of a source to be read."""

    key: str = Field(min_length=1, max_length=64, description="Of the source, as search gave it.")
    start: int = Field(default=0, ge=0, description="Where to begin in the source, in characters, as search gave it.")
    count: int = Field(default=5, ge=1, le=100, description="At most this many passages, in the order of the source.")
