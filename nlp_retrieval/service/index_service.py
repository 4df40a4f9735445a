"""Serving an index directory with any searcher; a newer generation is searched as soon as it is published."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.context import collected_notes, record_steps, search_steps
from nlp_retrieval.core.filters import keys_of, parse_filter
from nlp_retrieval.core.index.generation import MANIFEST_FILE, verify_index
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
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

MOST_RESULTS = 20_000
"""Limit for all queries of a request together."""
_WARM_WORDS = 8


class ItemSearchArguments(RequestBody):
    """A search in an index."""

    query: QueryText = Field(description="A question, or keywords.")
    k: ResultCount = Field(default=10, description="At most this many results per query.")
    where: MetadataFilter | None = Field(default=None, description="Only items whose metadata meet this filter.")


class SearchBody(ItemSearchArguments):
    """A search: one query, or several."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["query"]}, {"required": ["queries"]}]})

    query: QueryText = Field(default="", description="One query.")
    queries: list[QueryText] = Field(default=[], min_length=1, max_length=256, description="Several queries.")

    @model_validator(mode="after")
    def _check_queries(self) -> Self:
        if len(self.model_fields_set & {"query", "queries"}) != 1:
            raise ValueError('pass either "query" or "queries"')
        if len(self.texts) * self.k > MOST_RESULTS:
            raise ValueError(f"{len(self.texts)} queries with k={self.k} are more than {MOST_RESULTS:,} results")
        return self

    @property
    def texts(self) -> list[str]:
        """The queries."""
        return self.queries or [self.query]


class _Noted(BaseModel):
    notes: list[str] = Field(default=[], description="What was left out or found nothing, and what to do.")


class ItemsFound(_Noted):
    """Search results, best first."""

    results: list[RetrievalResult]


class SearchResults(_Noted):
    """Search results: one list per query, best first, all from the same generation of the index."""

    results: list[list[RetrievalResult]]


class IndexFigures(BaseModel):
    """Contents of the index; of each retriever its name and the size of its files."""

    n_items: int
    generation: int
    retrievers: list[dict[str, str | int]]
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
        """Return whether a folder has the manifest of an index."""
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
        """Open an index directory."""
        chosen = retrievers or retrievers_of(path, trust=trust)
        return cls(Searcher(chosen, fusion=fusion, reranker=reranker).open(path))

    def __init__(self, searcher: BaseSearcher) -> None:
        self.searcher = searcher
        self._path: Path = searcher.opened.path
        self._refreshing = Lock()

    @classmethod
    def damage_in(cls, path: Path) -> list[str]:
        """Return the files that do not match their checksums."""
        return verify_index(path)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Search, and statistics."""
        return [
            Endpoint("/search", "Search the index.", self._search, SearchResults, SearchBody, records=True, filtered=True),
            Endpoint("/stats", "What the index holds.", self._stats, IndexFigures),
        ]

    @property
    def tools(self) -> list[McpTool]:
        """Search, and reading one whole item."""
        return [
            McpTool(
                "search",
                "Find items of the index by a question or keywords. Returns them best first, each with item_id, title, "
                "content, metadata and score; read_passage gives one whole by its item_id.",
                ItemSearchArguments,
                ItemsFound,
                self._search_one,
                hints={"where": describe_filter(self._kinds())},
                records=True,
                filtered=True,
            ),
            McpTool(
                "read_passage",
                "Read one item of the index, whole, by the item_id that search gave.",
                ItemArguments,
                SearchableItem,
                lambda given: self.read(given.item_id),
                records=True,
                filtered=True,
            ),
        ]

    def is_ready(self) -> bool:
        """Return whether the index still exists."""
        return self.recognizes(self._path)

    def warm(self) -> None:
        """Search for the begin of the first item, so that every stage has something to do."""
        items = self.searcher.opened.items
        if len(items):
            (item,) = items.items(np.array([0]))
            self.searcher.search(" ".join(item.content.split()[:_WARM_WORDS]) or item.item_id, 1)

    def read(self, item_id: str) -> bytes:
        """Return an item as JSON.

        Raises:
            RefusedError: there is no such item.
        """
        self._refresh()
        items = self.searcher.opened.items
        with record_steps([{"kind": "open", "item_id": item_id}]):
            rows, allowed = items.find([item_id]), items.mask(allowed_filter())
            if rows[0] < 0 or (allowed is not None and not allowed[rows[0]]):
                raise RefusedError(404, "not_found", f"no item of this index has the id {item_id!r}; search gives ids")
        return items.items(rows)[0].model_dump_json().encode()

    def _found(
        self, queries: list[str], k: int, where: dict[str, JsonValue] | None
    ) -> tuple[list[list[RetrievalResult]], list[str]]:
        self._refresh()
        with record_steps(search_steps(queries, k, where)) as steps, collected_notes() as notes:
            if where is not None and allowed_filter() is not None:
                asked = keys_of(parse_filter(where))
                if hidden := sorted(asked - self._kinds(asked).keys()):  # the same whether others have it or nobody
                    raise QueryError(f"where: no item that this token may see has the metadata key {hidden[0]!r}")
            results = list(self.searcher.search(queries, k, allowed_filter(where)))
            for step, found in zip(steps, results, strict=False):
                step["results"] = [result.item.item_id for result in found]
        return results, notes

    def _kinds(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Kinds of metadata by key, of what the token of the request may see."""
        items, allowed = self.searcher.opened.items, allowed_filter()
        kinds = {key: kind for key, kind in items.kinds.items() if keys is None or key in keys}
        if allowed is None:
            return kinds
        visible = items.mask(allowed) if kinds else None
        masks = {key: items.mask({f"metadata.{key}": {"exists": True}}) for key in kinds}
        return {key: kinds[key] for key, mask in masks.items() if mask is not None and mask[visible].any()}

    def _search(self, body: SearchBody) -> bytes:
        results, notes = self._found(body.texts, body.k, body.where)
        return SearchResults.model_construct(results=results, notes=notes).model_dump_json().encode()

    def _search_one(self, asked: ItemSearchArguments) -> bytes:
        (results,), notes = self._found([asked.query], asked.k, asked.where)
        return ItemsFound.model_construct(results=results, notes=notes).model_dump_json().encode()

    def _stats(self, _: None) -> bytes:
        self._refresh()
        manifest = self.searcher.opened.manifest
        figures = IndexFigures(
            n_items=manifest.corpus.n_items,
            generation=manifest.generation,
            retrievers=[
                {"name": record.config["name"], "bytes": sum(segment.bytes for segment in record.segments)}
                for record in self.searcher.index_records()
            ],
            stages=self.searcher.stages,
        )
        return figures.model_dump_json().encode()

    def _refresh(self) -> None:
        """Switch to a newer generation; while one thread opens it, the others search the old one."""
        if self._refreshing.try_acquire():
            try:
                self.searcher.refresh()
            finally:
                self._refreshing.free()
