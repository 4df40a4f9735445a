"""The optional filter of triples: a language model says which of the triples near a query help to answer it.

It can only choose: triples are shown by number, and numbers that were not shown are not believed. A query without a usable
answer keeps all its triples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import Rows, parse_json
from nlp_retrieval.lm import LONGEST_ANSWER
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import KnowledgeGraph
from nlp_retrieval.text import fenced

_MOST_QUERY = 2000
_LIST = re.compile(r"\[[\d,\s]*\]")


class TripleFilter:
    """Asks a language model about triples.

    Args:
        lm: the language model; its answers are kept on disk, its calls counted and limited.
    """

    def __init__(self, lm: LanguageModel) -> None:
        from nlp_retrieval.systems.hipporag.engine.filter_program import TripleChooser

        self._lm = lm
        self._program = TripleChooser()

    def kept(self, knowledge: KnowledgeGraph, queries: list[str], shown: list[Rows]) -> list[Rows]:
        """Return the triples of each query that the model keeps, in their order.

        Args:
            knowledge: the graph of the triples.
            queries: the queries.
            shown: the triples near each.
        """
        from nlp_retrieval.lm import ask_all

        asked = [number for number, triples in enumerate(shown) if len(triples) and fenced(queries[number])]
        questions = [
            {"question": fenced(queries[number][:_MOST_QUERY]), "facts": _numbered(knowledge, shown[number])}
            for number in asked
        ]
        if not questions:
            return shown
        answers = ask_all(
            self._lm, self._program.choose, questions, "helpful", _read, "hipporag: filter", "keep all their triples"
        )
        kept = list(shown)
        for number, answer in zip(asked, answers, strict=True):
            if answer is not None:
                chosen = [place - 1 for place in answer if 1 <= place <= len(shown[number])]
                kept[number] = shown[number][np.array(sorted(set(chosen)), np.int64)]
        return kept


def _numbered(knowledge: KnowledgeGraph, triples: Rows) -> str:
    return "\n".join(f"{number}. {fenced(knowledge.shown(triple))}" for number, triple in enumerate(triples.tolist(), 1))


def _read(_: Mapping[str, Any], answer: object) -> list[int] | None:
    """The numbers in an answer, also where the list stands among other words; None where there is none."""
    if isinstance(answer, str):
        found = _LIST.search(answer[:LONGEST_ANSWER])
        try:
            answer = parse_json(found.group()) if found else None
        except ValueError:
            return None
    if not isinstance(answer, list) or not all(type(number) is int for number in answer):
        return None
    return answer
