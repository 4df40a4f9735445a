"""A project of sources: they are added, searched, and claims and reports are checked against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, Self

from nlp_retrieval.core import BaseRetriever, collected_notes
from nlp_retrieval.errors import InputError, QueryError
from nlp_retrieval.service import BaseService, Endpoint, McpTool, RefusedError, stop_where_nobody_waits
from nlp_retrieval.systems.evidence.citations.audit_json import audit_json
from nlp_retrieval.systems.evidence.citations.auditor import CitationAuditor
from nlp_retrieval.systems.evidence.citations.markdown import read_report
from nlp_retrieval.systems.evidence.claims.claim_verifier import ClaimVerifier
from nlp_retrieval.systems.evidence.index.archive import GRAPH_FOLDER
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.incoming import checked_document
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.service.bodies import (
    AuditAnswer,
    AuditBody,
    IndexAnswer,
    IndexBody,
    PassageArguments,
    PassagesAnswer,
    PassageSearchBody,
    ProjectFigures,
    SourceToAdd,
    VerifyAnswer,
    VerifyBody,
)
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier

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

    opens: ClassVar[str] = GRAPH_FOLDER

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether a folder holds sources."""
        return (path / GRAPH_FOLDER).is_dir()

    @classmethod
    def from_path(cls, path: Path, *, retrievers: list[BaseRetriever], trust: bool, verifier: str = "lexical") -> Self:  # noqa: ARG003
        """Open a project; it may have no sources yet.

        Args:
            path: its folder.
            retrievers: see :meth:`BaseService.from_path`.
            trust: has no effect: a project decides nothing.
            verifier: judges claims and citations, as the command line writes it.
        """
        from nlp_retrieval.systems.evidence.commands.projects import chosen_verifier, open_project

        return cls(open_project(path, retrievers), chosen_verifier(verifier))

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

    @property
    def tools(self) -> list[McpTool]:
        """Searching, reading on, verifying, auditing, adding."""

        def add(given: SourceToAdd) -> bytes:
            return self._add(IndexBody(documents=[given]))

        def read(given: PassageArguments) -> bytes:
            found = json.loads(self._passages(given.key))["passages"]
            following = [passage for passage in found if passage["end"] > given.start]
            return json.dumps({"passages": following[: given.count]}).encode()

        return [
            McpTool(
                "search",
                "Search all sources of the project. Passages come best first, with the URL, grade and date of their source.",
                PassageSearchBody,
                PassagesAnswer,
                self._search,
            ),
            McpTool(
                "read_passage",
                "Read on in a source: its passages in order, by the key and the start that search gave.",
                PassageArguments,
                PassagesAnswer,
                read,
            ),
            McpTool(
                "verify_claim",
                "Look up what the sources of the project say to a claim: passages for and against it with quotes that stand in "
                "the sources, the number of independent origins, and the status that follows from it by a rule.",
                VerifyBody,
                VerifyAnswer,
                self._verify,
            ),
            McpTool(
                "audit_report",
                "Audit every citation of a report in Markdown against the text of its own source.",
                AuditBody,
                AuditAnswer,
                self._audit,
            ),
            McpTool(
                "add_document",
                "Add the text of a source that was read to the project, and make it searchable.",
                SourceToAdd,
                IndexAnswer,
                add,
                shows_texts=False,
                writes=True,
            ),
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
