"""A searcher that searches all items, in a benchmark whose queries have filters: beside it shows what these cost."""

from __future__ import annotations

from collections.abc import Sequence

from nlp_retrieval.core.components.trust_rules import PART_RULES, may_set
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.search.ranked_lists import RankedLists
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError


class Unfiltered(Searcher):
    """A searcher to which a benchmark gives no filters; with the same parameters, a searcher is measured with them.

    Args:
        retrievers: as of :class:`Searcher`.
        processor: as of :class:`Searcher`.
        fusion: as of :class:`Searcher`.
        reranker: as of :class:`Searcher`.
        scope: as of :class:`Searcher`.
        depth: as of :class:`Searcher`.
        quota: as of :class:`Searcher`.
    """

    name = "unfiltered"
    manifest_may_set = PART_RULES | may_set("processor", "scope", "depth", "quota")

    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        where: Where | None = None,
        subqueries: Sequence[Sequence[str]] | None = None,
    ) -> RankedLists:
        """Search all items, as :class:`Searcher` does.

        Raises:
            ConfigurationError: a filter is passed.
        """
        if where is not None:
            raise ConfigurationError("an 'unfiltered' searcher takes no filter; take a 'searcher' to search by one")
        return super().search(queries, k, None, subqueries)
