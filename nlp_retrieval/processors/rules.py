"""Processors without a model: clauses of a query, and keywords added to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.mentions import normalize

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
            wrong = [word for word in [*([trigger] if isinstance(keywords, Mapping) else []), *added] if not normalize(word)]
            if wrong or not added:
                fault = f"{wrong[0]!r} has no word in it" if wrong else f"the trigger {trigger!r} has no keywords"
                raise ConfigurationError(f"KeywordExpansion: {fault}; leave it out")
        self.keywords = keywords
        self.keep_query = keep_query
        self._added = [(normalize(trigger), list(words)) for trigger, words in triggers.items()]

    def process(self, nlqs: list[str]) -> list[list[str]]:
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
