"""Why a gate decided as it did: what changed, and the queries that lost most with the stage that lost their documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.models import Gold, Query, RetrievalResult, excerpt
from nlp_retrieval.gate.baseline import Baseline
from nlp_retrieval.text import normalize_title

Kind = Literal["corpus", "models", "settings", "versions", "gold"]
Stage = Literal["not in the corpus", "not retrieved", "fused away", "reranked down", "lower"]
"""Stages that lose a document; "lower": its only retriever ranks it lower, or the searcher does not say where it was."""

_DEEPER = 10
_LONGEST = 60
_FUSED = "fusion.score"


@dataclass(frozen=True)
class GateChange:
    """Something that is not as it was for the baseline.

    Args:
        kind: of change; the first in a report is where to look first.
        detail: for people.
    """

    kind: Kind
    detail: str


@dataclass(frozen=True)
class LostDocument:
    """A relevant document that fell.

    Args:
        item_id: of it.
        before: its rank in the baseline.
        now: its rank; None if it was not found among ten times as many results.
        stage: that lost it.
        signals: ranks by retriever where it was found: ``{"bm25": 3}``.
    """

    item_id: str
    before: int
    now: int | None
    stage: Stage
    signals: dict[str, int]


@dataclass(frozen=True)
class LostQuery:
    """A query that lost.

    Args:
        query_id: of it.
        text: of it.
        measure: in which it lost most.
        before: its value in the baseline.
        now: its value.
        documents: relevant documents that fell.
        left: ids of items that are no longer among the first k.
        came: ids of items that are there instead.
    """

    query_id: str
    text: str
    measure: str
    before: float
    now: float
    documents: list[LostDocument]
    left: list[str]
    came: list[str]


def changes_of(before: Baseline, now: Baseline, texts: Mapping[str, str]) -> list[GateChange]:
    """Return what changed since the baseline: corpus, models, settings, versions, gold, in this order.

    Args:
        before: the baseline.
        now: the same of the searcher.
        texts: digests of the texts of the baseline's items, by id, of those that the index holds.
    """
    old, new = before.identity, now.identity
    changes: list[GateChange] = []
    if old.get("corpus") != new.get("corpus") and "corpus" in new and "corpus" in old:
        changes.append(GateChange("corpus", _corpus(before, now, texts)))
    changes += [GateChange("models", detail) for detail in _differences(old.get("models"), new.get("models"), "")]
    settings = [*_differences(old.get("searcher"), new.get("searcher"), "")]
    # what a setting of "auto" was decided to be is in the identities of the retrievers alone
    settings = settings or [*_differences(old.get("retrievers"), new.get("retrievers"), "retrievers")]
    changes += [GateChange("settings", detail) for detail in settings]
    changes += [GateChange("versions", detail) for detail in _differences(old.get("versions"), new.get("versions"), "")]
    regraded = [each for each, query in before.queries.items() if each in now.queries and query.gold != now.queries[each].gold]
    if regraded:
        changes.append(
            GateChange(
                "gold",
                f"gold of {len(regraded):,} queries changed (first: {regraded[0]!r}); both sides are measured by the new",
            )
        )
    return changes


def _corpus(before: Baseline, now: Baseline, texts: Mapping[str, str]) -> str:
    counts = [identity.get("corpus", {}).get("items") for identity in (before.identity, now.identity)]
    gone = sum(item_id not in texts for item_id in before.items)
    edited = sum(texts[item_id] != item.digest for item_id, item in before.items.items() if item_id in texts)
    parts = [f"{counts[0]:,} -> {counts[1]:,} items"] if counts[0] != counts[1] else [f"{counts[1]:,} items, as before"]
    known = f"of {len(before.items):,} items in the baseline's rankings"
    parts.append(f"{known} {gone:,} are gone and {edited:,} have another text")
    copies = len(now.items) - len({item.digest for item in now.items.values()})
    copies_before = len(before.items) - len({item.digest for item in before.items.values()})
    if copies > copies_before:
        parts.append(f"{copies:,} items found now have the text of another one, {copies_before:,} before")
    return "; ".join(parts)


def _differences(old: Any, new: Any, place: str) -> Iterator[str]:
    """Yield the differences of two plain values, with their place."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _differences(first, second, f"{place}[{number}]")
    elif old != new:
        yield f"{place or 'all'}: {excerpt(repr(old), _LONGEST)} -> {excerpt(repr(new), _LONGEST)}"


def lost_queries(
    queries: Sequence[Query],
    values: Mapping[str, tuple[Scores, Scores]],
    before: Baseline,
    results: Mapping[str, Sequence[RetrievalResult]],
    gold: Mapping[str, Gold],
    deeper: Callable[[str, int], Sequence[RetrievalResult]],
    held: Callable[[str], bool],
    most: int,
) -> list[LostQuery]:
    """Return the queries that lost most in any measure, those that lost more first.

    Args:
        queries: that were measured.
        values: ``[queries]`` by measure, of the baseline and of the searcher.
        before: the baseline.
        results: of the searcher, by query id.
        gold: by query id.
        deeper: searches a text for more results.
        held: returns whether the corpus has an item.
        most: number of queries to return.
    """
    if not values:
        return []
    names = list(values)
    losses = np.stack([old - new for old, new in values.values()])
    worst = losses.argmax(axis=0)
    order = np.argsort(-losses.max(axis=0), kind="stable")
    lost = []
    for number in order[:most].tolist():
        if losses[worst[number], number] <= 0:
            break
        query, name = queries[number], names[worst[number]]
        old, new = values[name]
        hits = before.queries[query.query_id].hits
        found = [hit.item.item_id for hit in results[query.query_id]]
        documents = list(_documents(query, before, results[query.query_id], gold[query.query_id], deeper, held))
        left, came = [each for each in hits if each not in found], [each for each in found if each not in hits]
        lost.append(LostQuery(query.query_id, query.text, name, float(old[number]), float(new[number]), documents, left, came))
    return lost


def _documents(
    query: Query,
    before: Baseline,
    results: Sequence[RetrievalResult],
    gold: Gold,
    deeper: Callable[[str, int], Sequence[RetrievalResult]],
    held: Callable[[str], bool],
) -> Iterator[LostDocument]:
    hits = before.queries[query.query_id].hits
    fell = []
    for rank, item_id in enumerate(hits, start=1):
        if not is_relevant(item_id, before.items[item_id].title, gold):
            continue
        now = next((place for place, hit in enumerate(results, start=1) if hit.item.item_id == item_id), None)
        if now is None or now > rank:
            fell.append((item_id, rank))
    more = deeper(query.text, _DEEPER * max(before.k, 1)) if fell else []
    for item_id, rank in fell:
        places = [(place, hit) for place, hit in enumerate(more, start=1) if hit.item.item_id == item_id]
        if not places:
            yield LostDocument(item_id, rank, None, "not retrieved" if held(item_id) else "not in the corpus", {})
            continue
        place, hit = places[0]
        ranks = {name.removesuffix(".rank"): int(value) for name, value in hit.signals.items() if name.endswith(".rank")}
        fused = 1 + sum(other.signals.get(_FUSED, 0.0) > hit.signals.get(_FUSED, 0.0) for other in more)
        yield LostDocument(item_id, rank, place, _stage(place, before.k, fused, ranks, hit.signals), ranks)


def _stage(place: int, k: int, fused: int, ranks: Mapping[str, int], signals: Mapping[str, float]) -> Stage:
    """Return the stage that moved a document down to a place, by its ranks before that stage."""
    if not ranks:
        return "lower"
    if min(ranks.values()) > k:
        return "not retrieved"
    was_fused, best = _FUSED in signals, min(ranks.values())
    before_reranking = fused if was_fused else best
    reranked = any(name.endswith(".score") and name != _FUSED and name.removesuffix(".score") not in ranks for name in signals)
    if reranked and before_reranking < place:
        return "reranked down"
    return "fused away" if was_fused and best < fused else "lower"


def is_relevant(item_id: str, title: str, gold: Gold) -> bool:
    """Return whether gold says that an item is relevant, by its id or its title."""
    if gold.by == "item_id":
        return gold.relevance.get(item_id, 0) > 0
    wanted = {normalize_title(name) for name, grade in gold.relevance.items() if grade > 0}
    return normalize_title(title) in wanted
