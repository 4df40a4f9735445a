"""The part of the page that shows why rankings differ: which configuration finds the gold, and any two lists of a query.

The lists are in a block of data that the page's own script opens. The content of the block is shown as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.pool import gold_ranks, pool_report
from nlp_retrieval.evaluation.ranking_difference import measured
from nlp_retrieval.evaluation.rankings import Ranks, RunLists
from nlp_retrieval.reports.page.explorer_data import Block, explorer_block
from nlp_retrieval.reports.page.passages import PassageBlock, passages_block
from nlp_retrieval.reports.page.pool import pool_tables
from nlp_retrieval.reports.page.templating import rendered

DATA = "explorer-data"

_FOR_TEXTS = 800_000
"""Characters reserved for texts, if there are any."""


def explorer_section(
    lists: RunLists,
    baseline: str,
    k_values: list[int],
    per_query: Mapping[str, Mapping[str, Scores]] | None,
    retrievers: Mapping[str, Ranks],
    room: int,
) -> Markup:
    """Return the section.

    Args:
        lists: the results of the configurations.
        baseline: the configuration that the others are compared with first.
        k_values: the cutoffs, ascending.
        per_query: ``[queries]`` by configuration and measure; None to compute it from the lists, with gold counted by items.
        retrievers: the ranks of gold documents by retriever; empty if unknown.
        room: maximum size of the section, in bytes.
    """
    configurations = {name: gold_ranks(lists, listing) for name, listing in lists.listings.items()}
    pools = {"configuration": pool_report(lists, configurations, k_values)}
    if retrievers:
        pools["retriever"] = pool_report(lists, retrievers, k_values)
    tables = pool_tables(pools, dict(zip(lists.query_ids, lists.texts, strict=True)))

    def section(block: Block | None, too_many: bool = False, passages: PassageBlock | None = None) -> Markup:
        return rendered(
            "explorer.html",
            block=block,
            passages=passages,
            too_many=too_many,
            baseline=baseline,
            depth=max(k_values),
            n_queries=len(lists.query_ids),
            n_configurations=len(lists.listings),
            has_signals=any(listing.signals for listing in lists.listings.values()),
            pools=tables,
        )

    if len(lists.listings) < 2:
        return section(None)
    values = per_query if per_query is not None else measured(lists, lists.listings, k_values)
    without = section(Block("", 0, has_signals=True, queries=0))
    room -= len(without.encode())
    block = explorer_block(lists, values, k_values, max(room // 2, room - _FOR_TEXTS) if lists.passages else room)
    if block is None:
        return section(None, too_many=True)
    return section(block, passages=passages_block(lists, block.items, room - len(block.text)))
