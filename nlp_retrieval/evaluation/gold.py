"""Matching gold with rankings: the rows of relevant documents in a corpus, and their positions in lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import GoldError
from nlp_retrieval.text.titles import normalize_title

GoldMissing = Literal["error", "count", "drop"]
"""Treatment of relevant documents that the corpus lacks: raise an error, count as not found, or remove from the gold."""

Key = tuple[str, str]
"""Key of a relevant document: ``("item_id", id)`` or ``("title", normalised title)``."""


def key_of(judged: Gold, name: str) -> Key:
    """Return the key of a document that a gold names."""
    return judged.by, normalize_title(name) if judged.by == "title" else name


def gold_of(queries: Sequence[Query], gold: Sequence[Gold]) -> list[Gold]:
    """Return the gold of each query, in the order of the queries; other gold is left out."""
    for what, ids in (("queries", [query.query_id for query in queries]), ("gold", [judged.query_id for judged in gold])):
        if (repeated := first_repeated(ids)) is not None:
            raise GoldError(f"the query id {repeated!r} occurs more than once in the {what}; give each query once")
    by_id = {judged.query_id: judged for judged in gold}
    missing = [query.query_id for query in queries if query.query_id not in by_id]
    if missing:
        raise GoldError(f"{len(missing)} of {len(queries)} queries have no gold (first: {missing[0]!r})")
    return [by_id[query.query_id] for query in queries]


def judged_documents(gold: Sequence[Gold], relevant_from: int = 1) -> list[dict[Key, tuple[int, str]]]:
    """Per query, the grade of each judged document, and its name in the gold; of equal titles the highest grade counts."""
    if not gold:
        raise GoldError("there is no gold, so nothing can be measured; give one Gold per query")
    if (repeated := first_repeated(judged.query_id for judged in gold)) is not None:
        raise GoldError(f"query {repeated!r} occurs more than once in the gold; give one Gold, with all of its relevance")
    wanted: list[dict[Key, tuple[int, str]]] = [{} for _ in gold]
    for judged, documents in zip(gold, wanted, strict=True):
        for name, grade in judged.relevance.items():
            key = key_of(judged, name)
            documents[key] = max((grade, name), documents.get(key, (grade, name)))
    if not any(grade >= relevant_from for documents in wanted for grade, _ in documents.values()):
        least = "above 0" if relevant_from == 1 else f"of at least {relevant_from} (relevant_from)"
        raise GoldError(f"no query has gold with a grade {least}, so nothing can be measured; check the judgements")
    return wanted


def relevant_documents(gold: Sequence[Gold], relevant_from: int = 1) -> list[dict[Key, tuple[int, str]]]:
    """Per query, the documents with a grade above 0; arguments and errors as of :func:`judged_documents`."""
    return [
        {key: (grade, name) for key, (grade, name) in documents.items() if grade > 0}
        for documents in judged_documents(gold, relevant_from)
    ]


def rows_of(keys: set[Key], item_ids: Sequence[str], titles: Sequence[str] | None) -> dict[Key, list[int]]:
    """The rows for each id or title that is in the corpus."""
    places: dict[Key, list[int]] = {}
    for row, item_id in enumerate(item_ids):
        if ("item_id", item_id) in keys:
            places["item_id", item_id] = [row]
    if any(by == "title" for by, _ in keys):
        if titles is None:
            raise GoldError("the gold names titles and the corpus has none; give titles, or gold by item id")
        for row, title in enumerate(map(normalize_title, titles)):
            if title and ("title", title) in keys:
                places.setdefault(("title", title), []).append(row)
    return places


@dataclass(frozen=True)
class MissingGold:
    """Relevant documents that are not in the corpus: how many, in words (``said``), and what to do (``cure``)."""

    documents: int
    queries: int
    first: str
    said: str
    cure: str
    all: bool


def missing_gold(
    gold: Sequence[Gold],
    wanted: Sequence[dict[Key, tuple[int, str]]],
    places: dict[Key, list[int]],
    item_ids: Sequence[str],
    titles: Sequence[str] | None,
) -> MissingGold | None:
    """Return the relevant documents that are not in the corpus, with the likely reason; None if all are."""
    unknown = [(number, key) for number, documents in enumerate(wanted) for key in documents if key not in places]
    if not unknown:
        return None
    number, key = unknown[0]
    by, name = key[0], wanted[number][key][1]
    cure = (
        "use the corpus that the gold was made for, or leave these queries out (in a benchmark, gold_missing: drop takes "
        "such documents out of the gold, and count counts them as not found)"
    )
    none = len(unknown) == sum(map(len, wanted))
    if by == "item_id" and titles is not None and name in titles:
        cure = f"{name!r} is a title of the corpus: make such gold with by='title'"
    elif by == "title" and name in item_ids:
        cure = f"{name!r} is an item id of the corpus: make such gold with by='item_id'"
    elif none:
        cure = "use the corpus that the gold was made for, or gold that names its items"
    queries = {query for query, _ in unknown}
    message = (
        f"{len(unknown):,} of {sum(map(len, wanted)):,} relevant documents, of {len(queries):,} of {len(gold):,} queries, are "
        f"not in the corpus of {sum(map(bool, item_ids)):,} items (first: {by.replace('_', ' ')} {name!r} of query "
        f"{gold[number].query_id!r})"
    )
    return MissingGold(len(unknown), len(queries), name, message, cure, none)


def without_missing(gold: Sequence[Gold], item_ids: Sequence[str], titles: Sequence[str] | None, least: int) -> list[Gold]:
    """Return gold without the relevant documents that are not in the corpus; queries that had no others are left out."""
    wanted = relevant_documents(gold, least)
    places = rows_of({key for documents in wanted for key in documents}, item_ids, titles)
    kept = []
    for judged, documents in zip(gold, wanted, strict=True):
        relevance = {name: grade for name, grade in judged.relevance.items() if grade <= 0 or key_of(judged, name) in places}
        lowest = least if max(judged.relevance.values(), default=0) >= least else 1  # without one, lower grades count alone
        if not documents or max(relevance.values(), default=0) >= lowest:
            kept.append(judged.model_copy(update={"relevance": relevance}))
    return kept


def joined(wanted: Rows, keys: Rows, values: Rows) -> Rows:
    """Return the value of each wanted key: the lowest if it is repeated, 0 if it is missing."""
    order = np.lexsort((values, keys))
    if not len(order):
        return np.zeros(len(wanted), np.int64)
    positions = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    return np.where(keys[positions] == wanted, values[positions], 0)
