"""What the page says of the pool: who finds which gold, and what nobody finds."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from nlp_retrieval.evaluation.pool import PoolReport
from nlp_retrieval.reports.page.templating import rendered


def pool_tables(pools: Mapping[str, PoolReport], texts: Mapping[str, str]) -> Markup:
    """Return a table for each kind of source, with examples of what nobody finds and of what only one does.

    Args:
        pools: by what the sources are: ``"configuration"``, ``"retriever"``.
        texts: of the queries, by id.
    """
    judged = {kind: pool for kind, pool in pools.items() if pool.gold}
    return rendered("pool.html", pools=judged, texts=texts) if judged else Markup()
