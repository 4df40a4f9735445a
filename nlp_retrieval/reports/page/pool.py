"""The pool on the page: which sources find which gold, and the gold that none finds."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from nlp_retrieval.evaluation.pool import PoolReport
from nlp_retrieval.reports.page.templating import rendered


def pool_tables(pools: Mapping[str, PoolReport], texts: Mapping[str, str]) -> Markup:
    """Return a table for each kind of source, with examples of gold found by no source or by only one.

    Args:
        pools: by kind of source: ``"configuration"``, ``"retriever"``.
        texts: texts of the queries, by id.
    """
    judged = {kind: pool for kind, pool in pools.items() if pool.gold}
    return rendered("pool.html", pools=judged, texts=texts) if judged else Markup()
