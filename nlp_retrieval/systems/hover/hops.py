"""The walk from hop to hop: retrieve, summarise the results, ask for what is missing, retrieve again.

Both the program, with one claim, and the searcher, with a batch, use this implementation: all claims take a hop together. A
step without an answer of the language model fails alone: no summary is added, or the claim itself is searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nlp_retrieval import LanguageModel, RetrievalResult, SearchableItem
from nlp_retrieval.core import has_no_words, stage
from nlp_retrieval.lm import ask_all, read_passage
from nlp_retrieval.systems.hover.evaluation import as_document

Search = Callable[[list[str], int], list[list[RetrievalResult]]]

_SUMMARY_WORDS = 200
_QUERY_WORDS = 64


@dataclass
class Walk:
    """The walk of one claim.

    Args:
        claim: that it started from.
        queries: of each hop.
        hops: results of each hop, best first.
        context: summaries of all hops but the last.
    """

    claim: str
    queries: list[str] = field(default_factory=list)
    hops: list[list[RetrievalResult]] = field(default_factory=list)
    context: list[str] = field(default_factory=list)

    def results(self) -> list[RetrievalResult]:
        """Return all results, hop after hop, each item where it was found first.

        ``score`` is 1 / rank. ``hop<n>.rank`` and ``hop<n>.score`` are its rank and score in each hop, with the signals of
        the retrievers (``hop<n>.<label>.score``).
        """
        signals: dict[str, dict[str, float]] = {}
        items: dict[str, SearchableItem] = {}
        for number, hop in enumerate(self.hops, start=1):
            for rank, result in enumerate(hop, start=1):
                items.setdefault(result.item.item_id, result.item)
                seen = signals.setdefault(result.item.item_id, {})
                seen |= {f"hop{number}.rank": float(rank), f"hop{number}.score": result.score}
                seen |= {f"hop{number}.{key}": value for key, value in result.signals.items()}
        return [
            RetrievalResult.trusted(item, 1.0 / rank, signals[item_id])
            for rank, (item_id, item) in enumerate(items.items(), start=1)
        ]

    def first_found(self) -> dict[str, tuple[int, int]]:
        """Return by item id the hop that found it first and its rank there, both from 1."""
        found: dict[str, tuple[int, int]] = {}
        for number, hop in enumerate(self.hops, start=1):
            for rank, result in enumerate(hop, start=1):
                found.setdefault(result.item.item_id, (number, rank))
        return found


def walk(
    claims: Sequence[str],
    search: Search,
    summarize: Sequence[Any],
    ask: Sequence[Any],
    lm: LanguageModel | None,
    per_hop: int,
    passage_characters: int,
) -> list[Walk]:
    """Walk with all claims at once.

    Args:
        claims: to start from.
        search: function from queries and k to results.
        summarize: the program of each hop but the last.
        ask: the program that writes the query of each hop but the first.
        lm: the model; None for the one of DSPy's settings.
        per_hop: documents per hop.
        passage_characters: the most characters of each document shown to the model.
    """
    walks = [Walk(claim) for claim in claims]
    for hop in range(len(ask) + 1):
        if hop:
            with stage(f"hop{hop + 1}.query"):
                _ask(walks, ask[hop - 1], lm, hop)
        else:
            for one in walks:
                one.queries.append(one.claim)
        with stage(f"hop{hop + 1}.retrieve"):
            for one, found in zip(walks, search([one.queries[-1] for one in walks], per_hop), strict=True):
                one.hops.append(found)
        if hop < len(ask):
            with stage(f"hop{hop + 1}.summarize"):
                _summarize(walks, summarize[hop], lm, hop, passage_characters)
    return walks


def stages_of(hops: int) -> list[str]:
    """Return the stages of a walk, in order."""
    names = []
    for hop in range(1, hops + 1):
        names += [f"hop{hop}.query"] if hop > 1 else []
        names.append(f"hop{hop}.retrieve")
        names += [f"hop{hop}.summarize"] if hop < hops else []
    return names


def _summarize(walks: list[Walk], program: Any, lm: LanguageModel | None, hop: int, passage_characters: int) -> None:
    asked = [one for one in walks if one.hops[-1]]
    questions = [
        {
            "claim": one.claim,
            "context": list(one.context),
            "passages": [as_document(result)[:passage_characters] for result in one.hops[-1]],
        }
        for one in asked
    ]
    for one, summary in zip(asked, _answers(lm, program, questions, "summary", _SUMMARY_WORDS, hop + 1), strict=True):
        one.context += [summary] if summary is not None else []


def _ask(walks: list[Walk], program: Any, lm: LanguageModel | None, hop: int) -> None:
    asked = [one for one in walks if one.context and not has_no_words(one.claim)]
    questions = [{"claim": one.claim, "context": list(one.context)} for one in asked]
    for one, query in zip(asked, _answers(lm, program, questions, "query", _QUERY_WORDS, hop), strict=True):
        one.queries.append(query if query is not None else one.claim)
    for one in walks:
        if len(one.queries) == hop:
            one.queries.append(one.claim)


def _answers(
    lm: LanguageModel | None, program: Any, questions: list[dict[str, Any]], output: str, max_words: int, hop: int
) -> list[str | None]:
    def read(question: Mapping[str, Any], answer: object) -> str | None:
        del question
        return read_passage(answer, "", max_words)

    if not questions:
        return []
    otherwise = "are left without it" if output == "summary" else "search for the claim again"
    return ask_all(lm, program, questions, output, read, f"multi_hop, {output} after hop {hop}", otherwise)
