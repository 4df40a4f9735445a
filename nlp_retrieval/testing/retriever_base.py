"""Shared base of the rules of retrievers: the corpus, an index of it built once per class, and searching."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import EngineError, RetrievalWarning
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import ITEMS, QUERIES, shares_a_word
from nlp_retrieval.testing.verdict import broken, without_warnings

Lists = list[list[RetrievalResult]]


class RetrieverChecks(ComponentRules):
    """Base of the rules of retrievers. The kit has a corpus and queries; the author may add some."""

    component: ClassVar[type[BaseRetriever]]

    def make(self) -> BaseRetriever:
        return self.component()

    def extra_items(self) -> Sequence[SearchableItem]:
        """Return additional items, indexed after the kit's own."""
        return ()

    def extra_queries(self) -> Mapping[str, str | None]:
        """Return additional queries, each with an item id that must be found if all items are requested, or None."""
        return {}

    def may_match(self, query: str, item: SearchableItem) -> bool:
        """Return whether an item may be found for a query; by default, if they share a word (the first four letters count).

        Engines that rank everything, like dense ones, return True. A hit that may not match is padding.
        """
        return shares_a_word(query, item)

    @property
    def items(self) -> list[SearchableItem]:
        """All items, by row."""
        return [*ITEMS, *self.extra_items()]

    @property
    def queries(self) -> dict[str, str | None]:
        """All queries, with the item that each must find."""
        return {**QUERIES, **self.extra_queries()}

    @property
    def rows(self) -> dict[str, int]:
        """The row of every item, by id."""
        return {item.item_id: row for row, item in enumerate(self.items)}

    def index_into(self, name: str, items: Sequence[SearchableItem] | None = None) -> Path:
        """Index items (by default all) into a folder of this name, once per class."""
        if name not in self.kept:
            path = self.folder / "indexes" / name
            with without_warnings():
                self.make().index(self.items if items is None else items, path)
            self.kept[name] = path
        return cast(Path, self.kept[name])

    @property
    def opened(self) -> BaseRetriever:
        """One retriever for all tests of the class, with its index kept open."""
        if "retriever" not in self.kept:
            self.kept["retriever"] = self.make()
        return cast(BaseRetriever, self.kept["retriever"])

    def ask(
        self,
        processed: Sequence[Sequence[str]],
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        retriever: BaseRetriever | None = None,
    ) -> Lists:
        """Search the kit's index; by default for as many results as there are items."""
        path = self.index_into("main")
        asking = retriever or self.opened
        try:
            with without_warnings():
                return asking.retrieve(processed, path, k or len(self.items), where)
        except EngineError as error:
            broken("an engine keeps to its contract", asking, str(error))

    def ask_each(self, k: int | None = None, where: Mapping[str, Any] | None = None) -> dict[str, list[RetrievalResult]]:
        """Search for every query, all in one batch."""
        return dict(zip(self.queries, self.ask([[query] for query in self.queries], k, where), strict=True))

    def ask_warned(self, processed: Sequence[Sequence[str]]) -> tuple[Lists, list[str]]:
        """Search, and return the lists and the warnings."""
        path = self.index_into("main")
        self.ask([])  # opening may warn too
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = self.opened.retrieve(processed, path, len(self.items))
        return found, [str(one.message) for one in caught if issubclass(one.category, RetrievalWarning)]

    def searching(self) -> BaseRetriever:
        """A copy of the retriever with the index open: the object for :meth:`search_batch`."""
        if "searching" not in self.kept:
            self.kept["searching"] = self.make().open(open_generation(self.index_into("main")))
        return cast(BaseRetriever, self.kept["searching"])
