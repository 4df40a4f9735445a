"""A project of sources as a service: adding and searching them, and checking claims and reports against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_type_hints

from pydantic import BaseModel, Field, JsonValue, StringConstraints, create_model

from nlp_retrieval import verify_index
from nlp_retrieval.core import MANIFEST_FILE, BaseRetriever, Config, DatabaseFile, collected_notes, record_steps
from nlp_retrieval.documents import bibliography_of, clean_text, clean_title
from nlp_retrieval.errors import IndexDamagedError, InputError, QueryError
from nlp_retrieval.service import (
    BaseService,
    Endpoint,
    McpTool,
    RefusedError,
    RequestBody,
    ResultCount,
    allowed_filter,
    describe_filter,
    stop_where_nobody_waits,
)
from nlp_retrieval.systems.evidence.audit import REVIEWS_FILE, CitationAuditor, ReviewDatabase
from nlp_retrieval.systems.evidence.audit_report import AuditAnswer, audit_json
from nlp_retrieval.systems.evidence.citations.formats import ReportFormat, read_text
from nlp_retrieval.systems.evidence.citations.report import read_report
from nlp_retrieval.systems.evidence.grades import Grade
from nlp_retrieval.systems.evidence.index.evidence_index import GRAPH_FOLDER, SOURCES_FILE, EvidenceIndex, IndexStatistics
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.store import EvidenceStore, SourceVersion, source_of
from nlp_retrieval.systems.evidence.verdict.claims import ClaimStatus, ClaimVerifier, Origin
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

# Requests and answers.

MetadataFilter = Annotated[dict[str, JsonValue], Field(min_length=1)]


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

    query: str = Field(max_length=10_000, description="A claim, a question, or keywords.")
    k: ResultCount = Field(default=5, description="At most this many passages.")
    min_quality: Grade | None = Field(default=None, description="Only sources of this grade or a better one.")
    where: MetadataFilter | None = Field(default=None, description="Only passages whose metadata match this.")


class PassagesAnswer(BaseModel):
    """Passages, best first, or in the order of their source."""

    passages: list[EvidencePassage]
    notes: list[str] = Field(default=[], description="What was omitted or matched nothing, and what to do.")


_FIGURES: Any = {name: (kind, ...) for name, kind in get_type_hints(IndexStatistics).items()}
ProjectFigures: type[BaseModel] = create_model("ProjectFigures", __doc__="Figures of the project and its searches.", **_FIGURES)


Claim = Annotated[str, StringConstraints(min_length=1, max_length=10_000, strip_whitespace=True)]


class VerifyBody(RequestBody):
    """A claim to be verified."""

    claim: Claim = Field(description="One statement, as a whole sentence and not as a question.")
    claim_type: Literal["C1", "C2", "C3"] = Field(
        default="C2", description="C1 needs sources of grade B or better, C2 and C3 of C or better."
    )


Found = list[dict[str, Any]]


class VerifyAnswer(BaseModel):
    """What the sources say about the claim, its status, and the rule that gave it."""

    claim: str
    claim_type: str
    min_quality: str
    supporting_evidence: Found
    weak_evidence: Found
    contradicting_evidence: Found
    neutral_evidence: Found
    independence_count: int
    contradicting_independence_count: int
    supporting_origins: list[Origin]
    contradicting_origins: list[Origin]
    verification_status: ClaimStatus
    rule: str
    not_judged: int


class AuditBody(RequestBody):
    """A report whose citations are to be audited."""

    report: str = Field(
        max_length=200_000,
        description="Up to 200,000 characters and 2,000 citations: numbers, notes, links, authors with a year, or keys.",
    )
    format: ReportFormat = Field(default="markdown", description="Of the report.")
    bibliography: str = Field(
        default="", max_length=1_000_000, description="BibTeX or CSL-JSON, if keys or authors of the report name its works."
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


# What is served.

_MOST_CITATIONS = 2_000
_WARM_WORDS = 12


class ProjectService(BaseService):
    """A project that can be searched and added to."""

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
    ) -> Self:
        """Open a project; it may have no sources yet."""
        from nlp_retrieval.systems.evidence.commands.project import chosen_verifier, open_project

        return cls(open_project(path, retrievers), chosen_verifier(verifier))

    @classmethod
    def damage_in(cls, path: Path) -> list[str]:
        """Return what is damaged: sources that do not match their checksum, reviews, and files of indexes."""
        store, reviews = EvidenceStore(path / GRAPH_FOLDER / SOURCES_FILE), ReviewDatabase(path / REVIEWS_FILE)
        checks: list[Callable[[], Iterable[str]]] = [partial(_faults, store.database), partial(_faults, reviews)]
        checks.append(partial(_wrong_texts, store))
        checks += [partial(verify_index, each.parent) for each in sorted((path / GRAPH_FOLDER).glob(f"*/{MANIFEST_FILE}"))]
        damaged: dict[str, None] = {}
        for check in checks:
            try:
                damaged |= dict.fromkeys(check())
            except IndexDamagedError as error:
                damaged[str(error)] = None
        return list(damaged)

    def __init__(self, index: EvidenceIndex, verifier: BaseVerifier) -> None:
        self._index = index
        self._claims, self._citations = ClaimVerifier(index, verifier), CitationAuditor(index, verifier)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints for adding, searching, verifying, auditing, reading, and figures."""
        all_sources = "All sources, in the order of adding."
        deletes = "Delete a source with all its versions, named by key or escaped URL."
        return [
            Endpoint("/index", "Add sources, and make them searchable.", self._add, IndexAnswer, IndexBody, writes=True),
            Endpoint(
                "/search", "Search sources.", self._search, PassagesAnswer, PassageSearchBody, records=True, filtered=True
            ),
            Endpoint("/verify", "Verify a claim against the sources.", self._verify, VerifyAnswer, VerifyBody),
            Endpoint("/audit", "Audit every citation of a report.", self._audit, AuditAnswer, AuditBody),
            Endpoint("/passages/{key}", "All passages of a source, in order.", self._passages, PassagesAnswer, records=True),
            Endpoint("/sources", all_sources, lambda _: self._listed(ListArguments(limit=None)), SourcesAnswer),
            Endpoint("/sources/{key:path}", deletes, self._delete, DeleteAnswer, writes=True, method="DELETE"),
            Endpoint("/stats", "Figures of the project and of its searches.", self._stats, ProjectFigures),
        ]

    @property
    def tools(self) -> list[McpTool]:
        """Return the tools for searching, reading on, verifying, auditing, and adding."""

        def add(arguments: SourceToAdd) -> bytes:
            return self._add(IndexBody(documents=[arguments]))

        def read(arguments: PassageArguments) -> bytes:
            return self._passages(arguments.key, arguments.start, arguments.count)

        def verify(arguments: VerifyBody) -> bytes:
            said = self._claims.verify(arguments.claim, arguments.claim_type).as_dict()
            brief = {"weak_evidence": said["weak_evidence"][:3], "neutral_evidence": []}
            return _json(VerifyAnswer.model_validate(said | brief))

        return [
            McpTool(
                "search",
                "Find what the sources of the project say about a question or keywords. Returns passages, best first, each "
                "with its text, url, title, quality (grade, A is best), fetch_date, and key and start for read_passage. To "
                "learn whether a statement is true use verify_claim. "
                f"{describe_filter(self._index.filter_keys)} Dates are ISO 8601.",
                PassageSearchBody,
                PassagesAnswer,
                self._search,
                records=True,
                filtered=True,
            ),
            McpTool(
                "read_passage",
                "Read on in one source: its passages in order from start, by the key that search or list_sources gave. To go "
                "on, call it again with the end of the last passage as start.",
                PassageArguments,
                PassagesAnswer,
                read,
                records=True,
            ),
            McpTool(
                "verify_claim",
                "Check whether a statement is true by the sources of the project. Returns verification_status (VERIFIED, "
                "SUPPORTED, WEAK, DISPUTED, REFUTED or UNVERIFIED), the rule that gave it, and quotes for and against it with "
                "their url. For a report with citations use audit_report.",
                VerifyBody,
                VerifyAnswer,
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
                "add_document",
                "Add the text of one page or document to the project, with the url where it was read, and make it searchable. "
                "It fetches nothing: pass the whole text as content.",
                SourceToAdd,
                IndexAnswer,
                add,
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

    def close(self) -> None:
        """Close the files of the sources and the reviews."""
        self._index.close()
        self._citations.reviews.close()

    def _add(self, body: IndexBody) -> bytes:
        sources = []
        for number, given in enumerate(body.documents, start=1):
            content, title = clean_text(given.content)[0].strip(), clean_title(given.title)
            try:
                sources.append(source_of(content, given.url, title, given.quality, given.fetch_date))
            except InputError as error:
                raise type(error)(f"document {number}: {error}; nothing was added") from None
        added = [self._index.add_source(source) for source in sources]
        if body.build:
            self._index.build_index()
        stats = self._index.stats()
        return _json(IndexAnswer.model_validate({**stats, "added": added}))

    def _search(self, body: PassageSearchBody) -> bytes:
        with collected_notes() as notes:
            where = allowed_filter(body.where)
            passages = self._index.search(body.query, body.k, body.min_quality, where)
        if not passages and not notes and where == body.where:  # reasons count what a filtered token does not see
            notes.append(self._why_nothing())
        return _json(PassagesAnswer.model_construct(passages=passages, notes=notes))

    def _why_nothing(self) -> str:
        stats = self._index.stats()
        if not stats["document_count"]:
            return "the project has no sources yet; add some (add_document, POST /index)"
        if waiting := stats["document_count"] - stats["indexed_count"]:
            return f"{waiting:,} of {stats['document_count']:,} texts are not searchable yet; POST /index with build"
        return "no passage matches; try other words, or fewer conditions"

    def _verify(self, body: VerifyBody) -> bytes:
        return _json(VerifyAnswer.model_validate(self._claims.verify(body.claim, body.claim_type).as_dict()))

    def _audit(self, body: AuditBody) -> bytes:
        works = bibliography_of(body.bibliography) if body.bibliography.strip() else []
        read = read_report(read_text(body.report, body.format), works)
        if len(read.citations) > _MOST_CITATIONS:
            raise InputError(
                f"the report has {len(read.citations):,} citations, and at most {_MOST_CITATIONS:,} are audited at a time; "
                "split it up"
            )
        done = self._citations.audit(read, lambda *_: stop_where_nobody_waits())
        return audit_json(done).encode()

    def _passages(self, key: str, start: int = 0, count: int | None = None) -> bytes:
        try:
            with record_steps([{"kind": "open", "item_id": f"{key}:{start}"}]) as steps:
                passages = [passage for passage in self._index.passages(key) if passage.end > start][:count]
                for step in steps:
                    step["results"] = [f"{passage.key}:{passage.start}" for passage in passages]
        except QueryError as error:
            raise _not_found(error) from None
        return _json(PassagesAnswer.model_construct(passages=passages))

    def _listed(self, arguments: ListArguments) -> bytes:
        sources = self._index.sources(arguments.match)
        return _json(SourcesAnswer(sources=sources[: arguments.limit], total=len(sources)))

    def _delete(self, key: str) -> bytes:
        try:
            count = self._index.delete(self._index.named(key))
        except InputError as error:  # no such source, or neither a key nor a URL
            raise _not_found(error) from None
        self._index.build_index()
        left = self._index.stats()["document_count"]
        return _json(DeleteAnswer(deleted_versions=count, document_count=left))

    def _stats(self, _: None) -> bytes:
        return _json(ProjectFigures.model_validate(self._index.stats()))


def _json(answer: BaseModel) -> bytes:
    return answer.model_dump_json().encode()


def _faults(database: DatabaseFile) -> list[str]:
    return [f"{database.path}: {line}" for (line,) in database.rows("PRAGMA integrity_check(9)") if line != "ok"]


def _wrong_texts(store: EvidenceStore) -> Iterator[str]:
    """Yield what is wrong with each text that does not match its checksum."""
    for sha256 in store.texts():
        try:
            store.stored(sha256)
        except IndexDamagedError as error:
            yield str(error)


def _not_found(error: InputError) -> RefusedError:
    return RefusedError(404, "not_found", f"{error}; search and list_sources (GET /sources) give keys and URLs")
