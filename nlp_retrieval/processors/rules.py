"""Processors without a model: clauses of a query, keywords added to it, and processors one after another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.queries import check_processed, has_no_words
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.mentions import normalize

# Sub-queries without a language model: the claim and its clauses.

_BREAK = re.compile(
    r"[;:()]|,(?=\s)|(?<=[\w\"'])\.(?=\s)"
    r"|\s(?=(?:that|which|who|whom|whose|where|when|while|and|but|by the|of the)\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


class ClauseSplit(BaseUserQueryProcessor):
    """Cuts a query at punctuation, relative pronouns and conjunctions; short pieces join the one before them.

    Args:
        min_words: a clause has at least this many words.
        max_clauses: most clauses; further ones join the last.
        keep_query: whether the query itself comes first.

    Examples:
        >>> split = ClauseSplit(min_words=3, keep_query=False)
        >>> split.process(["The film was shot in Norway, and its director was born in Sweden"])
        [['The film was shot in Norway', 'and its director was born in Sweden']]
    """

    name = "clauses"
    manifest_may_set = may_set("min_words", "max_clauses", "keep_query")

    def __init__(
        self,
        min_words: Annotated[int, Field(ge=1)] = 5,
        max_clauses: Annotated[int, Field(ge=1)] = 3,
        keep_query: bool = True,
    ) -> None:
        self.min_words = min_words
        self.max_clauses = max_clauses
        self.keep_query = keep_query

    def subqueries_per_query(self) -> int:
        return self.max_clauses + self.keep_query

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [list(dict.fromkeys(([nlq] if self.keep_query else []) + self._clauses(nlq))) for nlq in nlqs]

    def _clauses(self, nlq: str) -> list[str]:
        clauses: list[list[str]] = []
        words: list[int] = []
        for piece in filter(None, map(str.strip, _BREAK.split(nlq))):
            n_words = len(_WORD.findall(piece))
            if clauses and (len(clauses) == self.max_clauses or words[-1] < self.min_words):
                clauses[-1].append(piece)
                words[-1] += n_words
            else:
                clauses.append([piece])
                words.append(n_words)
        if len(clauses) > 1 and words[-1] < self.min_words:
            clauses[-2:] = [clauses[-2] + clauses[-1]]
        return [" ".join(pieces) for pieces in clauses]


# Sub-queries without a language model: the query with keywords that the configuration adds to it.


class KeywordExpansion(BaseUserQueryProcessor):
    """Searches for the query, and for the query followed by keywords that it lacks.

    Words are compared without case, accents and possessive endings. A query to which nothing is added is searched unchanged; so
    is one without words, because keywords alone would be a different question.

    Args:
        keywords: a list for every query; or, by trigger, the keywords for queries that contain this word or phrase.
        keep_query: whether the query itself comes before the expanded one.

    Examples:
        >>> KeywordExpansion(["emissions", "targets"]).process(["Norway in 2030"])
        [['Norway in 2030', 'Norway in 2030 emissions targets']]
    """

    name = "keyword_expansion"
    manifest_may_set = may_set("keywords", "keep_query")

    def __init__(
        self,
        keywords: Annotated[Sequence[str] | Mapping[str, Sequence[str]], Field(min_length=1)],
        keep_query: bool = True,
    ) -> None:
        triggers = keywords if isinstance(keywords, Mapping) else {"": keywords}
        for trigger, added in triggers.items():
            if isinstance(keywords, Mapping) and not normalize(trigger):
                raise ConfigurationError(
                    f"KeywordExpansion: the trigger {trigger!r} has no word in it; name a word or a phrase"
                )
            blank = [keyword for keyword in added if not normalize(keyword)]
            if blank or not added:
                fault = f"the keyword {blank[0]!r} has no word in it" if blank else f"the trigger {trigger!r} has no keywords"
                raise ConfigurationError(f"KeywordExpansion: {fault}; leave it out")
        self.keywords = keywords
        self.keep_query = keep_query
        self._added = [(normalize(trigger), list(words)) for trigger, words in triggers.items()]

    def subqueries_per_query(self) -> int:
        return 1 + self.keep_query

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return, per query, the query (if ``keep_query``) and the expanded query; distinct, at least one."""
        return [self._sub_queries(nlq) for nlq in nlqs]

    def _sub_queries(self, nlq: str) -> list[str]:
        if has_no_words(nlq):
            return [nlq]
        present = f" {normalize(nlq)} "
        added: dict[str, str] = {}
        for trigger, keywords in self._added:
            if not trigger or f" {trigger} " in present:
                for keyword in keywords:
                    if f" {normalize(keyword)} " not in present:
                        added.setdefault(normalize(keyword), keyword)
        if not added:
            return [nlq]
        expanded = " ".join([nlq.rstrip(), *added.values()])
        return [nlq, expanded] if self.keep_query else [expanded]


# Several processors in sequence: each works on the sub-queries of the one before it.


class Chain(BaseUserQueryProcessor):
    """Runs processors one after another, each on every sub-query of the one before; repeats are dropped, order is kept.

    Each processor is called once per batch, with the sub-queries of all queries, so that a processor that asks a model
    still does so in batches.

    Args:
        processors: at least one, in the order in which they run.

    Examples:
        >>> chain = Chain([ClauseSplit(min_words=2, keep_query=False), KeywordExpansion(["krill"], keep_query=False)])
        >>> chain.process(["whales eat, and foxes hunt"])
        [['whales eat krill', 'and foxes hunt krill']]
    """

    name = "chain"
    manifest_may_set = may_set("processors")

    def __init__(self, processors: Annotated[Sequence[BaseUserQueryProcessor | ByName], Field(min_length=1)]) -> None:
        components = resolve_components(self, Chain, processors=processors)
        self.processors: list[BaseUserQueryProcessor] = components["processors"]

    def calls_per_query(self) -> int | None:
        calls = 0
        n_queries: int | None = 1
        for processor in self.processors:
            calls_each, n_subqueries = processor.calls_per_query(), processor.subqueries_per_query()
            if calls_each is None or (calls_each and n_queries is None):
                return None
            calls += calls_each * (n_queries or 0)
            n_queries = None if n_queries is None or n_subqueries is None else n_queries * n_subqueries
        return calls

    def subqueries_per_query(self) -> int | None:
        most = [processor.subqueries_per_query() for processor in self.processors]
        known = [number for number in most if number is not None]
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
