"""Which passages a query names by their titles."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.retrievers.link_graph.links.named_rows import of_bearers
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.link_graph.store.title_table import TitleTable

_FLOOR = 0.05  # of what speaks for a passage that carries a title: one without it is less likely, not impossible


def titled_by(query: str, titles: TitleTable, terms: PassageTerms, max_shared: int) -> tuple[Rows, Scores]:
    """Return the rows whose titles a query names, ascending, and how certainly it names each, above 0 and at most 1.

    A title that several passages carry is shared out among them: more to those that say their own name, and that have other
    words of the query. Passages with exactly the same title count by the likeliest of them, and share evenly.

    Args:
        query: what is asked.
        titles: those of the index.
        terms: those of its passages.
        max_shared: a title that more passages carry names none of them.
    """
    surest: dict[int, float] = {}
    wanted, information = terms.of_query(query)
    for mention in titles.find(query):
        if len(mention.rows) <= max_shared:
            likely = (_FLOOR + terms.covered(wanted, mention.rows) @ information) ** 2
            likely *= _FLOOR + terms.named(mention.rows)
            likely, parts = of_bearers(np.zeros(len(likely), np.int64), terms.bearers[mention.rows], likely)
            likely /= parts
            for row, share in zip(mention.rows.tolist(), (likely / likely.sum()).tolist(), strict=True):
                surest[row] = max(surest.get(row, 0.0), share)
    rows = np.array(sorted(surest), np.int64)
    return rows, np.array([surest[row] for row in rows.tolist()], np.float64)
