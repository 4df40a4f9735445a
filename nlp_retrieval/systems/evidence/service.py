"""A project of sources as a service: endpoints and tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, StringConstraints, create_model, model_validator

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.core import BaseRetriever, Config, build_as, collected_notes, read_manifest
from nlp_retrieval.errors import InputError, QueryError
from nlp_retrieval.lm import BaseAnswerer
from nlp_retrieval.service import (
    BaseService,
    Endpoint,
    McpTool,
    RefusedError,
    RequestBody,
    ResultCount,
    describe_filter,
    stop_where_nobody_waits,
)
from nlp_retrieval.systems.evidence.audit import (
    AuditReason,
    AuditStatus,
    AuditSummary,
    CitationAudit,
    CitationAuditor,
    audit_json,
)
from nlp_retrieval.systems.evidence.audit_report import render_audit
from nlp_retrieval.systems.evidence.citations.bibliography import Bibliography
from nlp_retrieval.systems.evidence.citations.blocks import Reference
from nlp_retrieval.systems.evidence.citations.formats import ReportFormat, bibliography_of, read_text
from nlp_retrieval.systems.evidence.citations.report import Citation, UncitedSentence, read_report
from nlp_retrieval.systems.evidence.claims import ClaimStatus, ClaimVerifier, Origin
from nlp_retrieval.systems.evidence.deciding import DecidedBy, Reason, Verdict
from nlp_retrieval.systems.evidence.index.evidence_index import GRAPH_FOLDER, EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.statistics import IndexStatistics
from nlp_retrieval.systems.evidence.index.store import Change, checked_document
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reviews import Decision, Review, ReviewedCitation, reviews_json
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.text import sentence_spans

# Models of the requests and answers of a project's endpoints.

Grade = Literal["A", "B", "C", "D", "E"]
MetadataFilter = Annotated[dict[str, JsonValue], Field(min_length=1)]
Statement = Annotated[str, StringConstraints(max_length=10_000)]


class SourceToAdd(RequestBody):
    """A source to be added."""

    content: str = Field(min_length=1, description="Its text; invisible characters are removed.")
    url: str = Field(min_length=1, max_length=8_192, description="Where it was read, as https://example.org/page.")
    title: str = Field(default="", max_length=10_000, description="Of the page.")
    quality: Grade | None = Field(
        default=None, description="Its grade, A (best) to E; by default the one given before, else by the rules."
    )
    fetch_date: str = Field(default="", max_length=100, description="Date of fetching, ISO 8601; by default now.")


class IndexBody(RequestBody):
    """Sources to be added: all of them, or none if one cannot be used."""

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
    build: bool = Field(default=True, description="Whether to build the index now, with all sources added before.")


class IndexAnswer(BaseModel):
    """Result for the sources.

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


Claim = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
ClaimType = Annotated[Literal["C1", "C2"], Field(description="C1 needs sources of grade B or better, C2 of C or better.")]


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


class EvidenceFound(BaseModel):
    """A passage that was judged, and the sentence that decided."""

    content: str
    quote: str
    page: str
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
    verdict: Verdict
    strength: Literal["", "weak", "strong"]
    reason: Reason
    detail: str
    decided_by: DecidedBy


class VerifyAnswer(BaseModel):
    """What the sources say about the claim, its status, and the rule that gave it."""

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
    strength: Literal["", "weak", "strong"]
    decided_by: dict[str, int]
    cannot_see: str


class ClaimAnswer(VerifyAnswer):
    """What the sources say about the claim; neutral passages are counted, and returned if they were asked for."""

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
        description="BibTeX, CSL-JSON or RIS, if keys or authors of the report name its works.",
    )


class ReportTitle(BaseModel):
    """The report: its title, what a ``line`` of it counts, and what was left out of it or read in a certain way."""

    title: str
    unit: str = "line"
    notes: list[str] = []


class DecidingPassage(BaseModel):
    """The nearest passage of the cited source, and the span of its deciding sentence."""

    content: str
    url: str
    title: str
    quality: str
    fetch_date: str
    key: str
    start: int
    end: int
    deciding: tuple[int, int]
    page: str


class ReviewState(BaseModel):
    """What reviewers said about a citation; ``sentence``, ``cited`` and ``version`` name it for a review of one's own."""

    sentence: str
    cited: str
    version: str
    decision: Literal["accepted", "rejected", "noted", ""]
    said: str
    disputed: bool
    history: list[Review]
    earlier: Review | None


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
    """Every review of the project, oldest first; a file that ``evidence review --import`` reads."""

    format: int
    reviews: list[Review]


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
    weak: bool
    decided_by: DecidedBy
    other_source: str
    passage: DecidingPassage | None
    review: ReviewState | None


class MissingReference(BaseModel):
    """A mark without an entry, and why, if that is known."""

    mark: str
    sentence: str
    line: int
    problem: str = ""


class AuditAnswer(BaseModel):
    """Result of an audit: the same as ``nlp-retrieval evidence audit --json`` writes."""

    format: int
    report: ReportTitle
    summary: AuditSummary
    citations: list[AuditedCitation]
    uncited: list[UncitedSentence]
    missing: list[MissingReference]
    unused: list[Reference]
    duplicates: list[Reference]


class ListedSource(BaseModel):
    """The newest version of a URL."""

    key: str
    url: str
    title: str
    quality: Grade
    fetch_date: str
    passage_count: int
    searchable: bool
    pages: int = Field(description="Number of its last page; 0 if it has no pages.")
    metadata: dict[str, str] = Field(description="More about it, as its DOI.")
    version_count: int


class SourcesAnswer(BaseModel):
    """The sources of the project, in the order of adding; ``total`` counts also those that were left out."""

    sources: list[ListedSource]
    total: int


class SourceEdit(RequestBody):
    """New values of a source; those that are left out stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quality": "A", "title": "Rivers of Europe"}]})

    title: str | None = Field(default=None, min_length=1, max_length=10_000)
    quality: Grade | None = Field(default=None, description="Its grade, A (best) to E.")
    fetch_date: str | None = Field(default=None, max_length=100, description="When it was fetched, ISO 8601.")


class EditAnswer(BaseModel):
    """All changes of a source so far, oldest first; a new one is last."""

    changes: list[Change]


class DeleteAnswer(BaseModel):
    """Result of deleting a source.

    Args:
        deleted_versions: number of its versions.
        document_count: texts that the project still holds.
    """

    deleted_versions: int
    document_count: int


class QuestionBody(RequestBody):
    """A question to be answered from the sources."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"question": "Which river flows through Vienna?"}]})

    question: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")


class AnswerCitation(BaseModel):
    """A source that the answer cites, and whether it supports a sentence of the answer, as in an audit."""

    url: str
    title: str
    key: str
    status: AuditStatus
    reason: AuditReason
    detail: str
    support_score: float


class AnswerSentence(BaseModel):
    """A sentence of the answer; ``supported`` if at least one of its citations passes."""

    sentence: str
    supported: bool
    citations: list[AnswerCitation]


class AuditedAnswer(BaseModel):
    """An answer by the language model, which no source vouches for, with an audit of each of its sentences."""

    answer: str = Field(description="A few words; empty without an answer.")
    sentences: list[AnswerSentence] = Field(description="Why, in the words of the language model.")
    passages: list[EvidencePassage] = Field(description="That the answer cites.")
    failed: bool = Field(description="Whether the language model gave no usable answer.")


class ListArguments(RequestBody):
    """Which sources to list."""

    match: str = Field(default="", max_length=1_000, description="Text in the title or the URL; empty: all.")
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")
    limit: int = Field(default=50, ge=1, le=500, description="At most this many.")


class SourceToDelete(RequestBody):
    """A source to be deleted."""

    source: str = Field(min_length=1, max_length=8_192, description="Its URL, or its key.")


class PassageArguments(RequestBody):
    """A part of a source to be read."""

    key: str = Field(min_length=1, max_length=64, description="Of the source, from a search result.")
    start: int = Field(default=0, ge=0, description="Where to begin in the source, in characters, from a search result.")
    count: int = Field(default=5, ge=1, le=100, description="At most this many passages, in the order of the source.")


# The service of a project of sources: adding and searching them, and checking claims and reports against them.

_MOST_CITATIONS = 2_000
_WARM_WORDS = 12
_NO_ANSWERER = (
    "no language model answers questions here; start the service with --set "
    "answerer='language_model:lm={model: openai/MODEL, base_url: ...}', or use /search and /verify"
)
_TOGETHER = 8
"""Number of claims of a request that the verifier judges together."""


class ProjectService(BaseService):
    """A project that can be searched and added to.

    Args:
        index: of its sources.
        verifier: judges claims and citations.
        audited: audit of a report whose page is served at "/", to be reviewed there.
    """

    kind: ClassVar[str] = "project"
    describes: ClassVar[str] = "Sources of a project, and what they say about claims and reports."

    opens: ClassVar[str] = GRAPH_FOLDER

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether a folder holds sources."""
        return (path / GRAPH_FOLDER).is_dir()

    @classmethod
    def from_path(
        cls,
        path: Path,
        *,
        retrievers: list[BaseRetriever],
        trust: bool,  # noqa: ARG003
        verifier: Config | str = "lexical",
        report: str = "",
        answerer: Config | str = "",
    ) -> Self:
        """Open a project; it may have no sources yet.

        Args:
            path: its folder.
            retrievers: see :meth:`BaseService.from_path`.
            trust: has no effect: the files of a project decide nothing.
            verifier: judges claims and citations; as on the command line.
            answerer: answers questions (``/answer``), such as ``language_model:lm=openai/gpt-4o-mini``; by default none.
            report: file of a report; it is audited now, and the page of its audit at "/" takes reviews.
        """
        from nlp_retrieval.cli import parse_component
        from nlp_retrieval.systems.evidence.commands.project import chosen_verifier, open_project
        from nlp_retrieval.systems.evidence.commands.reports import read_cited_report

        index, judge = open_project(path, retrievers), chosen_verifier(verifier)
        audited = CitationAuditor(index, judge).audit(read_cited_report(Path(report))) if report else None
        described = parse_component(answerer) if isinstance(answerer, str) and answerer else answerer
        answering = build_as(BaseAnswerer, "answerers", described, "--set answerer") if described else None
        return cls(index, judge, audited, answering)

    def __init__(
        self,
        index: EvidenceIndex,
        verifier: BaseVerifier,
        audited: CitationAudit | None = None,
        answerer: BaseAnswerer | None = None,
    ) -> None:
        self._index, self._audited, self._answerer = index, audited, answerer
        self._claims, self._citations = ClaimVerifier(index, verifier), CitationAuditor(index, verifier)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints for adding, searching, verifying, auditing, reviewing, reading, and figures."""
        page = Endpoint("/", "The page of the audit of the served report.", self._page, str, media="text/html; charset=utf-8")
        return [
            *([] if self._audited is None else [page]),
            Endpoint("/index", "Add sources, and make them searchable.", self._add, IndexAnswer, IndexBody, writes=True),
            Endpoint("/search", "Search all sources.", self._search, PassagesAnswer, PassageSearchBody),
            Endpoint("/verify", "Verify claims against the sources.", self._verify, VerifyResult, VerifyBody),
            Endpoint("/answer", "Answer a question from the sources.", self._answer, AuditedAnswer, QuestionBody),
            Endpoint("/audit", "Audit every citation of a report.", self._audit, AuditAnswer, AuditBody),
            Endpoint("/reviews", "All reviews of citations, oldest first.", self._all_reviews, ReviewsAnswer),
            Endpoint("/reviews", "Review a citation.", self._review, Review, ReviewBody, writes=True),
            Endpoint("/passages/{key}", "All passages of a source, in order.", self._passages, PassagesAnswer),
            Endpoint("/sources", "All sources, in the order of adding.", self._sources, SourcesAnswer),
            Endpoint(
                "/sources/{key:path}",
                "Change the title, grade or date of a source, named by key or escaped URL.",
                self._edit,
                EditAnswer,
                SourceEdit,
                writes=True,
                method="PATCH",
            ),
            Endpoint(
                "/sources/{key:path}",
                "Delete a source with all its versions, named by key or escaped URL.",
                self._delete,
                DeleteAnswer,
                writes=True,
                method="DELETE",
            ),
            Endpoint("/stats", "Figures of the project and of its searches.", self._stats, ProjectFigures),
        ]

    @property
    def tools(self) -> list[McpTool]:
        """Return the tools for searching, reading on, verifying, auditing, and adding."""

        def add(arguments: SourceToAdd) -> bytes:
            return self._add(IndexBody(documents=[arguments]))

        def read(arguments: PassageArguments) -> bytes:
            passages = json.loads(self._passages(arguments.key))["passages"]
            following = [passage for passage in passages if passage["end"] > arguments.start]
            return json.dumps({"passages": following[: arguments.count]}).encode()

        def verify(arguments: ClaimArguments) -> bytes:
            (verdict,) = self._verdicts([arguments.claim], arguments.claim_type)
            answer = verdict.model_dump() | {"neutral_passages": len(verdict.neutral_evidence)}
            return json.dumps(answer if arguments.include_neutral else answer | {"neutral_evidence": []}).encode()

        return [
            McpTool(
                "search",
                "Find what the sources of the project say about a question or keywords. Returns passages, best first, each "
                "with its text, url, title, quality (grade, A is best), fetch_date, and key and start for read_passage. To "
                "learn whether a statement is true use verify_claim.",
                PassageSearchBody,
                PassagesAnswer,
                self._search,
                hints={"where": f"{describe_filter(self._index.filter_keys)} Dates are ISO 8601."},
            ),
            McpTool(
                "read_passage",
                "Read on in one source: its passages in order from start, by the key that search or list_sources gave. To go "
                "on, call it again with the end of the last passage as start.",
                PassageArguments,
                PassagesAnswer,
                read,
            ),
            McpTool(
                "verify_claim",
                "Check whether a statement is true by the sources of the project. Returns verification_status (VERIFIED, "
                "SUPPORTED, DISPUTED, REFUTED or UNVERIFIED), the rule that gave it, and quotes for and against it with their "
                "url. For a report with citations use audit_report.",
                ClaimArguments,
                ClaimAnswer,
                verify,
            ),
            McpTool(
                "audit_report",
                "Check every citation of a whole report (Markdown, HTML or LaTeX; numbers, authors and years, "
                "footnotes, links) against the text of the source it cites. Returns a status and a reason for each. For "
                "a single statement use verify_claim.",
                AuditBody,
                AuditAnswer,
                self._audit,
            ),
            McpTool(
                "list_sources",
                "List the sources of the project with key, url, title, grade, date and pages; match finds one by title or URL.",
                ListArguments,
                SourcesAnswer,
                self._listed,
            ),
            McpTool(
                "delete_source",
                "Delete a source with all its versions from the project, by its url or key. Only if the user asks for it.",
                SourceToDelete,
                DeleteAnswer,
                lambda arguments: self._delete(arguments.source),
                shows_texts=False,
                writes=True,
                destroys=True,
            ),
            McpTool(
                "add_document",
                "Add the text of one page or document to the project, with the url where it was read, and make it searchable. "
                "It fetches nothing: pass the whole text as content.",
                SourceToAdd,
                IndexAnswer,
                add,
                shows_texts=False,
                writes=True,
            ),
        ]

    def is_ready(self) -> bool:
        """Return whether the project's folder still exists."""
        return self._index.project_path.is_dir()

    def warm(self) -> None:
        """Verify the begin of a source as a claim, which loads the models of the search and the verifier."""
        for source in self._index.sources()[:1]:
            content = self._index.text(source.key)
            self._claims.verify(" ".join(content.split()[:_WARM_WORDS]))

    def figures(self) -> Mapping[str, float]:
        """Return the generation of the index, and its number of passages."""
        manifest = read_manifest(self._index.index_path)
        return {} if manifest is None else {"generation": manifest.generation, "items": manifest.corpus.n_items}

    def close(self) -> None:
        """Close the files of the sources and the reviews."""
        self._index.close()
        self._citations.reviews.close()

    def _add(self, body: IndexBody) -> bytes:
        documents = [
            {
                "content": clean_text(source.content)[0].strip(),
                "url": source.url,
                "title": clean_title(source.title)[0],
                "source_quality": source.quality,
                "fetch_date": source.fetch_date,
            }
            for source in body.documents
        ]
        for number, document in enumerate(documents, start=1):  # before any of them is added
            try:
                checked_document(document)
            except InputError as error:
                raise type(error)(f"document {number}: {error}; nothing was added") from None
        added = self._index.add_documents(documents)
        if body.build:
            self._index.build_index()
        stats = self._index.stats()
        answer = IndexAnswer(
            added=added,
            document_count=stats["document_count"],
            passage_count=stats["passage_count"],
            index_built=stats["index_built"],
        )
        return answer.model_dump_json().encode()

    def _search(self, body: PassageSearchBody) -> bytes:
        with collected_notes() as notes:
            passages = self._index.search(body.query, body.k, body.min_quality, body.where)
        if not passages and not self._index.sources():
            notes.append("the project has no sources yet; add some (add_document, POST /index)")
        return PassagesAnswer.model_construct(passages=passages, notes=notes).model_dump_json().encode()

    def _verify(self, body: VerifyBody) -> bytes:
        verdicts = self._verdicts(body.claims or [body.claim], body.claim_type)
        return (VerifyAnswers(verdicts=verdicts) if body.claims else verdicts[0]).model_dump_json().encode()

    def _verdicts(self, claims: Sequence[str], claim_type: Literal["C1", "C2"]) -> list[VerifyAnswer]:
        """Verify claims, each once, some at a time, so that the work ends where nobody waits for it."""
        distinct, answers = list(dict.fromkeys(claims)), dict[str, VerifyAnswer]()
        for first in range(0, len(distinct), _TOGETHER):
            stop_where_nobody_waits()
            for verdict in self._claims.verify_all(distinct[first : first + _TOGETHER], claim_type):
                answers[verdict.claim] = VerifyAnswer.model_validate(verdict.as_dict())
        return [answers[claim] for claim in claims]

    def _answer(self, body: QuestionBody) -> bytes:
        if self._answerer is None:
            raise RefusedError(501, "no_language_model", _NO_ANSWERER)
        found = self._index.search(body.question, max(1, self._answerer.passages), body.min_quality)
        passages = {f"{passage.key}:{passage.start}": passage for passage in found}
        items = [
            SearchableItem(item_id=item_id, content=passage.content, metadata={"title": passage.title or passage.url})
            for item_id, passage in passages.items()
        ]
        (answer,) = self._answerer.answer([body.question], [[RetrievalResult(item=item, score=0.0) for item in items]])
        cited = [passages[item_id] for item_id in answer.passages]
        sources = list({passage.key: passage for passage in cited}.values())
        reasons = [answer.reasoning[start:end] for start, end in sentence_spans(answer.reasoning)]
        sentences = [self._audited_sentence(sentence, sources) for sentence in reasons]
        return (
            AuditedAnswer(answer=answer.text, sentences=sentences, passages=cited, failed=answer.failed)
            .model_dump_json()
            .encode()
        )

    def _audited_sentence(self, sentence: str, sources: Sequence[EvidencePassage]) -> AnswerSentence:
        citations = []
        for number, source in enumerate(sources, start=1):
            stop_where_nobody_waits()
            row = self._citations.row(Citation(number, str(number), sentence, source.url, source.title, 1))
            citations.append(
                AnswerCitation(
                    url=source.url,
                    title=source.title,
                    key=source.key,
                    status=row.status,
                    reason=row.reason,
                    detail=row.detail,
                    support_score=row.support_score,
                )
            )
        supported = any(citation.status == "PASS" for citation in citations)
        return AnswerSentence(sentence=sentence, supported=supported, citations=citations)

    def _audit(self, body: AuditBody) -> bytes:
        works = bibliography_of(body.bibliography) if body.bibliography.strip() else Bibliography([])
        read = read_report(read_text(body.report, body.format), works.entries)
        read.notes.extend(works.notes)
        if len(read.citations) > _MOST_CITATIONS:
            raise InputError(
                f"the report has {len(read.citations):,} citations, and at most {_MOST_CITATIONS:,} are audited at a time; "
                "split it up"
            )
        done = self._citations.audit(read, lambda *_: stop_where_nobody_waits())
        return audit_json(done.rows, done.report).encode()

    def _page(self, _: None) -> bytes:
        audited, auditor = self._audited, self._citations
        if audited is None:  # pragma: no cover -- there is no such endpoint then
            raise RefusedError(404, "not_found", "no report is served")
        reviews = auditor.reviews.of(audited.report.citations)
        rows = [replace(row, review=review) for row, review in zip(audited.rows, reviews, strict=True)]
        return render_audit(rows, audited.report, auditor.rule, posts=True).encode()

    def _all_reviews(self, _: None) -> bytes:
        return ReviewsAnswer.model_validate(reviews_json(self._citations.reviews.all())).model_dump_json().encode()

    def _review(self, body: ReviewBody) -> bytes:
        of = ReviewedCitation(body.sentence, body.cited, body.version)
        review = self._citations.reviews.add(of, body.decision, body.by, body.note)
        return json.dumps(asdict(review)).encode()

    def _passages(self, key: str) -> bytes:
        try:
            passages = self._index.passages(key)
        except QueryError as error:
            raise RefusedError(
                404, "not_found", f"{error}; search and list_sources (GET /sources) give keys and URLs"
            ) from None
        return PassagesAnswer.model_construct(passages=passages).model_dump_json().encode()

    def _sources(self, _: None) -> bytes:
        sources = [asdict(source) for source in self._index.sources()]
        return SourcesAnswer.model_validate({"sources": sources, "total": len(sources)}).model_dump_json().encode()

    def _listed(self, arguments: ListArguments) -> bytes:
        sources = [asdict(source) for source in self._index.sources_like(arguments.match, arguments.min_quality)]
        answer = {"sources": sources[: arguments.limit], "total": len(sources)}
        return SourcesAnswer.model_validate(answer).model_dump_json().encode()

    def _edit(self, asked: tuple[str, SourceEdit]) -> bytes:
        key, body = asked
        self._check_known(key)
        if self._index.edit(key, title=body.title, quality=body.quality, fetch_date=body.fetch_date):
            self._index.build_index()
        return EditAnswer.model_construct(changes=self._index.changes(key)).model_dump_json().encode()

    def _delete(self, key: str) -> bytes:
        self._check_known(key)
        count = self._index.delete(key)
        self._index.build_index()
        left = self._index.stats()["document_count"]
        return DeleteAnswer(deleted_versions=count, document_count=left).model_dump_json().encode()

    def _check_known(self, key: str) -> None:
        try:
            self._index.changes(key)
        except QueryError as error:
            raise RefusedError(
                404, "not_found", f"{error}; search and list_sources (GET /sources) give keys and URLs"
            ) from None

    def _stats(self, _: None) -> bytes:
        return ProjectFigures.model_validate(self._index.stats()).model_dump_json().encode()
