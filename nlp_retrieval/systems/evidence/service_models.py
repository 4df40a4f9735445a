"""Requests and answers of the endpoints and tools of a project of sources."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_type_hints

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    StringConstraints,
    create_model,
    model_validator,
)

from nlp_retrieval.service import (
    RequestBody,
    ResultCount,
)
from nlp_retrieval.systems.evidence.citations.formats import ReportFormat
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.statistics import IndexStatistics
from nlp_retrieval.systems.evidence.index.store import SourceVersion
from nlp_retrieval.systems.evidence.reviews import Decision, Review
from nlp_retrieval.systems.evidence.verdict.claims import VerifyAnswer

Grade = Literal["A", "B", "C", "D", "E"]
MetadataFilter = Annotated[dict[str, JsonValue], Field(min_length=1)]
_QUALITY = AliasChoices("quality", "source_quality")
Statement = Annotated[str, StringConstraints(max_length=10_000)]


class SourceToAdd(RequestBody):
    """A source to be added."""

    content: str = Field(min_length=1, description="Its text; invisible characters are removed.")
    url: str = Field(min_length=1, max_length=8_192, description="Where it was read, as https://example.org/page.")
    title: str = Field(default="", max_length=10_000, description="Of the page.")
    quality: Grade | None = Field(
        default=None,
        validation_alias=_QUALITY,
        description="Its grade, A (best) to E; by default the one given before, else by the rules.",
    )
    fetch_date: str = Field(default="", max_length=100, description="Date of fetching, ISO 8601; by default now.")


class IndexBody(RequestBody):
    """Sources to be added: all of them, or none if one cannot be used; or a single one, by its own fields."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["documents"]}, {"required": ["content", "url"]}],
            "examples": [
                {"documents": [{"content": "The Danube flows through Vienna.", "url": "https://example.org/danube"}]},
                {"content": "The Danube flows through Vienna.", "url": "https://example.org/danube", "quality": "B"},
            ],
        }
    )

    documents: list[SourceToAdd] = Field(default=[], max_length=1000, description="In the order in which they are added.")
    build: bool = Field(default=True, description="Whether to build the index now, with all sources added before.")
    content: str | None = Field(default=None, description="Of a single source, instead of documents; likewise what follows.")
    url: str | None = None
    title: str = ""
    quality: Grade | None = Field(default=None, validation_alias=_QUALITY)
    fetch_date: str = ""

    @model_validator(mode="before")
    @classmethod
    def _take_single_source(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        alone = {key: value for key, value in body.items() if key not in ("documents", "build")}
        if bool(alone) == ("documents" in body):
            raise ValueError('pass either "documents", or a single source by its "content" and "url"')
        return {key: value for key, value in body.items() if key not in alone} | ({"documents": [alone]} if alone else {})


class IndexAnswer(BaseModel):
    """For each document, whether something new can be cited; and the texts and passages that the project holds."""

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
    """A claim to be verified, or several."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["claim"]}, {"required": ["claims"]}],
            "examples": [
                {"claim": "The Danube flows through Vienna.", "claim_type": "C2"},
                {"claims": ["The Danube flows through Vienna.", "The Danube flows through Basel."]},
            ],
        }
    )

    claim: Claim = Field(default="", description="One statement.")
    claims: list[Claim] = Field(default=[], min_length=1, max_length=100, description="Several statements.")
    claim_type: ClaimType = "C2"

    @model_validator(mode="after")
    def _check_claims(self) -> Self:
        if len(self.model_fields_set & {"claim", "claims"}) != 1:
            raise ValueError('pass either "claim" or "claims"')
        return self


class ClaimArguments(RequestBody):
    """A claim to be verified."""

    claim: Claim = Field(description="One statement, as a whole sentence and not as a question.")
    claim_type: ClaimType = "C2"
    include_neutral: bool = Field(
        default=False, description="Whether to return also the passages that neither support nor contradict it."
    )


class ClaimAnswer(VerifyAnswer):
    """What the sources say about the claim; all but three weak passages are counted alone, unless they were asked for."""

    weak_passages: int
    neutral_passages: int


class VerifyAnswers(BaseModel):
    """The verdicts on several claims, in their order."""

    verdicts: list[VerifyAnswer]


class VerifyResult(RootModel[VerifyAnswer | VerifyAnswers]):
    """A verdict for ``claim``, verdicts for ``claims``."""


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
        description="Up to 200,000 characters and 2,000 citations: numbers, notes, links, authors with a year, or keys.",
    )
    format: ReportFormat = Field(default="markdown", description="Of the report.")
    bibliography: str = Field(
        default="",
        max_length=1_000_000,
        description="BibTeX or CSL-JSON, if keys or authors of the report name its works.",
    )


class ReviewBody(RequestBody):
    """A decision of a reviewer about one citation, which an audit named."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "sentence": "The Danube flows through Vienna.",
                    "cited": "https://example.org/danube",
                    "version": "",
                    "decision": "accepted",
                    "by": "Ann",
                }
            ]
        }
    )

    sentence: str = Field(max_length=4_000, description="From the ``review`` of the citation in an audit.")
    cited: str = Field(min_length=1, max_length=9_000, description="From there: the URL, or the mark in brackets.")
    version: str = Field(max_length=64, description="From there: the SHA-256 of the source's text; empty if there is none.")
    decision: Decision = Field(description='"withdrawn" takes back what the same reviewer said before.')
    note: str = Field(default="", max_length=10_000, description='In the reviewer\'s words; needed for "noted".')
    by: str = Field(min_length=1, max_length=200, description="Name of the reviewer.")


class ReviewsAnswer(BaseModel):
    """Every review of the project, oldest first."""

    reviews: list[Review]


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
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")
    limit: int = Field(default=50, ge=1, le=500, description="At most this many.")


class PassageArguments(RequestBody):
    """A part of a source to be read."""

    key: str = Field(min_length=1, max_length=64, description="Of the source, from a search result.")
    start: int = Field(default=0, ge=0, description="Where to begin in the source, in characters, from a search result.")
    count: int = Field(default=5, ge=1, le=100, description="At most this many passages, in the order of the source.")
