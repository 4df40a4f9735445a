"""Metric of HoVer programs: whether a program found every document that a claim needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nlp_retrieval import RetrievalResult
from nlp_retrieval.errors import GoldError
from nlp_retrieval.text import normalize_title

SEPARATOR = " | "
"""Separator of the title and the text of a document, as in DSPy's retrievers."""


def as_document(result: RetrievalResult) -> str:
    """Return a result in the form of documents in DSPy programs: ``title | text``; the id replaces a missing title."""
    return f"{result.item.title or result.item.item_id}{SEPARATOR}{result.item.content}"


def discrete_retrieval_eval(example: Any, prediction: Any, trace: object = None) -> bool:
    """Return whether all gold titles of an example are among the retrieved titles, in normalised form.

    Args:
        example: with ``gold_titles``, or with ``supporting_facts`` as in HoVer's release and DSPy's data set.
        prediction: with ``retrieved_docs``, each ``title | text``.
        trace: unused; DSPy's optimisers pass it.

    Raises:
        GoldError: the example has no gold.
    """
    del trace
    return not missing_titles(example, prediction)


def recall(example: Any, prediction: Any, trace: object = None) -> float:
    """Return the share of an example's gold titles that were retrieved; the arguments are as above."""
    del trace
    return 1.0 - len(missing_titles(example, prediction)) / len(_gold_titles(example))


def missing_titles(example: Any, prediction: Any) -> list[str]:
    """Return the gold titles that are not among the retrieved documents."""
    found = {normalize_title(title) for title in _retrieved_titles(prediction)}
    return [title for title in _gold_titles(example) if normalize_title(title) not in found]


def _retrieved_titles(prediction: Any) -> list[str]:
    results = getattr(prediction, "results", None)
    if isinstance(results, list) and results and all(isinstance(one, RetrievalResult) for one in results):
        return [result.item.title for result in results]  # a title may hold the separator itself
    return [str(document).partition(SEPARATOR)[0] for document in getattr(prediction, "retrieved_docs", None) or []]


def _gold_titles(example: Any) -> list[str]:
    titles = getattr(example, "gold_titles", None)
    if titles is None:
        facts = getattr(example, "supporting_facts", None) or []
        titles = [fact.get("key", "") if isinstance(fact, Mapping) else fact[0] for fact in facts]
    distinct = list(dict.fromkeys(map(str, titles)))
    if not distinct:
        raise GoldError(f"an example has neither gold_titles nor supporting_facts: {example!r:.200}")
    return distinct
