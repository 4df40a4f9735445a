"""Serving an index directory with any searcher; a newer generation is searched as soon as it is published."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from pydantic import BaseModel, Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.context import collected_notes, record_steps, search_steps
from nlp_retrieval.core.filters import keys_of, parse_filter
from nlp_retrieval.core.index.generation import MANIFEST_FILE, verify_index
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher, retrievers_of
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import QueryError
from nlp_retrieval.service.endpoints import (
    BaseService,
    Endpoint,
    McpTool,
    MetadataFilter,
    QueryText,
    RefusedError,
    RequestBody,
    ResultCount,
    allowed_filter,
    describe_filter,
)


class SearchBody(RequestBody):
    """A search in an index."""

    query: QueryText = Field(description="A question, or keywords.")
    k: ResultCount = Field(default=10, description="At most this many results.")
    where: MetadataFilter | None = Field(default=None, description="Only items whose metadata meet this filter.")


class ItemsFound(BaseModel):
    """Search results, best first."""

    results: list[RetrievalResult]
    notes: list[str] = Field(default=[], description="What was left out or found nothing, and what to do.")


class IndexFigures(BaseModel):
    """Contents of the index."""

    n_items: int
    generation: int
    stages: list[str]


class ItemArguments(RequestBody):
    """An item to read."""

    item_id: str = Field(min_length=1, max_length=10_000, description="As search gave it.")


class IndexService(BaseService):
    """A served index.

    Args:
        searcher: with an opened index.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> service = IndexService(searcher)
        >>> [endpoint.path for endpoint in service.endpoints], service.is_ready()
        (['/search', '/stats'], True)
    """

    kind: ClassVar[str] = "index"
    describes: ClassVar[str] = "An index, searched."
    opens: ClassVar[str] = MANIFEST_FILE

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        return (path / MANIFEST_FILE).is_file()

    @classmethod
    def from_path(
        cls,
        path: Path,
        *,
        retrievers: list[BaseRetriever],
        trust: bool,
        fusion: Config | str | None = None,
        reranker: Config | str | None = None,
    ) -> Self:
        chosen = retrievers or retrievers_of(path, trust=trust)
        return cls(Searcher(chosen, fusion=fusion, reranker=reranker).open(path))

    def __init__(self, searcher: BaseSearcher) -> None:
        self.searcher = searcher
        self._path: Path = searcher.opened.path
        self._refreshing = threading.Lock()

    @classmethod
    def damage_in(cls, path: Path) -> list[str]:
        return verify_index(path)

    @property
    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("/search", "Search the index.", self._search, ItemsFound, SearchBody, records=True, filtered=True),
            Endpoint("/stats", "What the index holds.", self._stats, IndexFigures),
        ]

    @property
    def tools(self) -> list[McpTool]:
        search = (
            "Find items of the index by a question or keywords. Returns them best first, each with item_id, title, content, "
            "metadata and score; read_passage gives one whole by its item_id. "
        )
        search += describe_filter(self._kinds())
        read = "Read one item of the index, whole, by the item_id that search gave."
        shown = {"records": True, "filtered": True}
        return [
            McpTool("search", search, SearchBody, ItemsFound, self._search, **shown),
            McpTool("read_passage", read, ItemArguments, SearchableItem, self._read, **shown),
        ]

    def is_ready(self) -> bool:
        return self.recognizes(self._path)

    def warm(self) -> None:
        """Search for the begin of the first item, so that every stage has something to do."""
        items = self.searcher.opened.items
        if len(items):
            (item,) = items.items(np.array([0]))
            self.searcher.search(" ".join(item.content.split()[:8]) or item.item_id, 1)

    def _search(self, body: SearchBody) -> bytes:
        self._refresh()
        with record_steps(search_steps([body.query], body.k, body.where)) as steps, collected_notes() as notes:
            if body.where is not None and allowed_filter() is not None:
                asked = keys_of(parse_filter(body.where))
                if hidden := sorted(asked - self._kinds(asked).keys()):  # the same whether others have it or nobody
                    raise QueryError(f"where: no item that this token may see has the metadata key {hidden[0]!r}")
            (results,) = self.searcher.search([body.query], body.k, allowed_filter(body.where))
            for step in steps:
                step["results"] = [result.item.item_id for result in results]
        return ItemsFound.model_construct(results=results, notes=notes).model_dump_json().encode()

    def _kinds(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Kinds of metadata by key, of what the token of the request may see."""
        items, allowed = self.searcher.opened.items, allowed_filter()
        kinds = {key: kind for key, kind in items.kinds.items() if keys is None or key in keys}
        if allowed is None:
            return kinds
        visible = items.mask(allowed) if kinds else None
        masks = {key: items.mask({f"metadata.{key}": {"exists": True}}) for key in kinds}
        return {key: kinds[key] for key, mask in masks.items() if mask is not None and mask[visible].any()}

    def _read(self, given: ItemArguments) -> bytes:
        self._refresh()
        items = self.searcher.opened.items
        with record_steps([{"kind": "open", "item_id": given.item_id}]):
            rows, allowed = items.find([given.item_id]), items.mask(allowed_filter())
            if rows[0] < 0 or (allowed is not None and not allowed[rows[0]]):
                raise RefusedError(404, "not_found", f"no item of this index has the id {given.item_id!r}; search gives ids")
        return items.items(rows)[0].model_dump_json().encode()

    def _stats(self, _: None) -> bytes:
        self._refresh()
        manifest = self.searcher.opened.manifest
        n_items, generation = manifest.corpus.n_items, manifest.generation
        return IndexFigures(n_items=n_items, generation=generation, stages=self.searcher.stages).model_dump_json().encode()

    def _refresh(self) -> None:
        """Switch to a newer generation; while one thread opens it, the others search the old one."""
        if self._refreshing.acquire(blocking=False):
            try:
                self.searcher.refresh()
            finally:
                self._refreshing.release()
