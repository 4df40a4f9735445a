"""Several processors in sequence: each works on the sub-queries of the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.queries import check_processed


class Chain(BaseUserQueryProcessor):
    """Runs processors one after another, each on every sub-query of the one before; repeats are dropped, order is kept.

    Each processor is called once per batch, with the sub-queries of all queries, so that a processor that asks a model
    still does so in batches.

    Args:
        processors: at least one, in the order in which they run.
    """

    name = "chain"
    manifest_may_set = may_set("processors")

    def __init__(self, processors: Annotated[Sequence[BaseUserQueryProcessor | ByName], Field(min_length=1)]) -> None:
        made = resolve_components(self, Chain, processors=processors)
        self.processors: list[BaseUserQueryProcessor] = made["processors"]

    def calls_per_query(self) -> int | None:
        calls = 0
        asked: int | None = 1
        for processor in self.processors:
            each, made = processor.calls_per_query(), processor.subqueries_per_query()
            if each is None or (each and asked is None):
                return None
            calls += each * (asked or 0)
            asked = None if asked is None or made is None else asked * made
        return calls

    def subqueries_per_query(self) -> int | None:
        most = [processor.subqueries_per_query() for processor in self.processors]
        known = [made for made in most if made is not None]
        return prod(known) if len(known) == len(most) else None

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return, per query, the sub-queries of the last processor.

        Raises:
            QueryError: a processor did not return one list of strings per sub-query.
        """
        subqueries = [[nlq] for nlq in nlqs]
        for processor in self.processors:
            # a sub-query that several queries share is processed once
            distinct = list(dict.fromkeys(chain.from_iterable(subqueries)))
            processed = dict(zip(distinct, check_processed(processor.process(distinct), len(distinct)), strict=True))
            subqueries = [list(dict.fromkeys(chain.from_iterable(processed[sub] for sub in subs))) for subs in subqueries]
        return subqueries
