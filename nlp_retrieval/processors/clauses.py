"""Sub-queries without a language model: the claim and its clauses."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor
from nlp_retrieval.core.components.trust_rules import may_set

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
