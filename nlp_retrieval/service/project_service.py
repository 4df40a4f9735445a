"""A project of sources: they are added, searched, and claims and reports are checked against them."""

from __future__ import annotations

from typing import ClassVar

from nlp_retrieval.core.notes import collected_notes
from nlp_retrieval.errors import InputError, QueryError
from nlp_retrieval.evidence.citations.audit_json import audit_json
from nlp_retrieval.evidence.citations.auditor import CitationAuditor
from nlp_retrieval.evidence.citations.markdown import read_report
from nlp_retrieval.evidence.claims.claim_verifier import ClaimVerifier
from nlp_retrieval.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.evidence.index.incoming import checked_document
from nlp_retrieval.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.service.endpoints import BaseService, Endpoint
from nlp_retrieval.service.project_bodies import (
    AuditAnswer,
    AuditBody,
    IndexAnswer,
    IndexBody,
    PassagesAnswer,
    PassageSearchBody,
    ProjectFigures,
    VerifyAnswer,
    VerifyBody,
)
from nlp_retrieval.service.refusal import RefusedError
from nlp_retrieval.service.work import stop_where_nobody_waits

__all__ = ["ProjectService"]

_MOST_CITATIONS = 2_000


class ProjectService(BaseService):
    """A project that is asked and added to.

    Args:
        index: of its sources.
        verifier: judges claims and citations.
    """

    kind: ClassVar[str] = "project"
    describes: ClassVar[str] = "Sources of a project, and what they say to claims and reports."

    def __init__(self, index: EvidenceIndex, verifier: BaseVerifier) -> None:
        self._index = index
        self._claims, self._citations = ClaimVerifier(index, verifier), CitationAuditor(index, verifier)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Adding, searching, verifying, auditing, reading, and figures."""
        return [
            Endpoint("/index", "Add sources, and make them searchable.", self._add, IndexAnswer, IndexBody, writes=True),
            Endpoint("/search", "Search all sources.", self._search, PassagesAnswer, PassageSearchBody),
            Endpoint("/verify", "Look up what the sources say to a claim.", self._verify, VerifyAnswer, VerifyBody),
            Endpoint("/audit", "Audit every citation of a report.", self._audit, AuditAnswer, AuditBody),
            Endpoint("/passages/{key}", "All passages of a source, in order.", self._passages, PassagesAnswer),
            Endpoint("/stats", "What the project holds, and what was asked of it.", self._stats, ProjectFigures),
        ]

    def is_ready(self) -> bool:
        """Whether the project's folder is there still."""
        return self._index.project_path.is_dir()

    def close(self) -> None:
        """Close the file of the sources."""
        self._index.close()

    def _add(self, body: IndexBody) -> bytes:
        documents = [
            {
                "content": clean_text(one.content)[0].strip(),
                "url": one.url,
                "title": clean_title(one.title)[0],
                "source_quality": one.quality,
                "fetch_date": one.fetch_date,
            }
            for one in body.documents
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
            found = self._index.search(body.query, body.k, body.min_quality, body.where)
        return PassagesAnswer.model_construct(passages=found, notes=notes).model_dump_json().encode()

    def _verify(self, body: VerifyBody) -> bytes:
        verdict = self._claims.verify(body.claim, body.claim_type)
        return VerifyAnswer.model_validate(verdict.as_dict()).model_dump_json().encode()

    def _audit(self, body: AuditBody) -> bytes:
        read = read_report(body.report)
        if len(read.citations) > _MOST_CITATIONS:
            raise InputError(
                f"the report has {len(read.citations):,} citations, and at most {_MOST_CITATIONS:,} are audited at a time; "
                "send it in parts"
            )
        done = self._citations.audit(read, lambda *_: stop_where_nobody_waits())
        return audit_json(done.rows, done.report).encode()

    def _passages(self, key: str) -> bytes:
        try:
            found = self._index.passages(key)
        except QueryError as error:
            raise RefusedError(404, "not_found", str(error)) from None
        return PassagesAnswer.model_construct(passages=found).model_dump_json().encode()

    def _stats(self, _: None) -> bytes:
        return ProjectFigures.model_validate(self._index.stats()).model_dump_json().encode()
