"""All rules of a retriever: of its answers, of filters, of its index, and of live updates."""

from __future__ import annotations

from nlp_retrieval.testing.answer_rules import AnswerRules
from nlp_retrieval.testing.filter_rules import FilterRules
from nlp_retrieval.testing.index_rules import IndexRules
from nlp_retrieval.testing.update_rules import UpdateRules


class RetrieverRules(AnswerRules, FilterRules, IndexRules, UpdateRules):
    """Every rule of a retriever.

    An author names the class, and where they do not fit, overrides ``make`` (which configuration), ``may_match`` (what may be
    found for a query), ``other_values`` (another value of parameters whose type hint tells none), ``tolerance`` and
    ``order_depends_on_filter``; ``extra_items`` and ``extra_queries`` join the kit's own.
    """
