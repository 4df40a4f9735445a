"""Sub-queries without a language model: the query with keywords that the configuration adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.mentions import normalize


class KeywordExpansion(BaseUserQueryProcessor):
    """Searches for the query, and for the query followed by keywords that it lacks.

    Words are compared without case, accents and possessive endings. A query to which nothing is added is searched unchanged; so
    is one without words, because keywords alone would be a different question.

    Args:
        keywords: a list for every query; or, by trigger, the keywords for queries that contain this word or phrase.
        keep_query: whether the query itself comes before the expanded one.
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
