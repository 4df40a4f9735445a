"""Why a gate decided as it did: what changed, and the queries that lost most with the documents that they lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.models import Gold, Query, excerpt
from nlp_retrieval.gate.baseline import Baseline
from nlp_retrieval.text import normalize_title
from nlp_retrieval.text.printing import counted

Kind = Literal["corpus", "models", "settings", "versions", "gold"]


@dataclass(frozen=True)
class GateChange:
    """Something that is not as it was for the baseline; the first in a report is where to look first."""

    kind: Kind
    detail: str


@dataclass(frozen=True)
class LostDocument:
    """A document that fell, its text (None if it left the corpus), and its ranks; None if it is not found."""

    item_id: str
    text: str | None
    before: int
    now: int | None


@dataclass(frozen=True)
class LostQuery:
    """A query that lost in a measure, or without one changed, the documents it lost, and ids that came."""

    query_id: str
    text: str
    measure: str
    before: float
    now: float
    documents: list[LostDocument]
    came: list[str]


def changes_of(before: Baseline, now: Baseline, texts: Mapping[str, str]) -> list[GateChange]:
    """Return what changed since the baseline: corpus, models, settings, versions, gold, in this order.

    ``texts`` are digests of the texts of the baseline's items, by id, of those that the index holds.
    """
    old, new = before.identity, now.identity
    changes: list[GateChange] = []
    if old.get("corpus") != new.get("corpus") and "corpus" in new and "corpus" in old:
        changes.append(GateChange("corpus", _corpus(before, now, texts)))
    settings = [*_differences(old.get("searcher"), new.get("searcher"), "")]
    # what a setting of "auto" was decided to be is in the identities of the retrievers alone
    settings = settings or [*_differences(old.get("retrievers"), new.get("retrievers"), "retrievers")]
    changes += [GateChange("models", detail) for detail in _differences(old.get("models"), new.get("models"), "")]
    changes += [GateChange("settings", detail) for detail in settings]
    changes += [GateChange("versions", detail) for detail in _differences(old.get("versions"), new.get("versions"), "")]
    regraded = [each for each, query in before.queries.items() if each in now.queries and query.gold != now.queries[each].gold]
    if regraded:
        which = f"{counted(len(regraded), 'query', 'queries')} changed (first: {regraded[0]!r})"
        changes.append(GateChange("gold", f"gold of {which}; both sides are measured by the new"))
    return changes


def _corpus(before: Baseline, now: Baseline, texts: Mapping[str, str]) -> str:
    old, new = (side.identity["corpus"]["items"] for side in (before, now))
    gone = sum(item_id not in texts for item_id in before.items)
    edited = sum(texts.get(item_id, item.digest) != item.digest for item_id, item in before.items.items())
    said = f"{old:,} -> {new:,} items" if old != new else f"{new:,} items, as before"
    said += f"; of {len(before.items):,} items in the baseline's rankings {gone:,} are gone and {edited:,} have another text"
    copies_before, copies = (len(s.items) - len({item.digest for item in s.items.values()}) for s in (before, now))
    if copies > copies_before:
        said += f"; {copies:,} items found now have the text of another one, {copies_before:,} before"
    return said


def _differences(old: Any, new: Any, place: str) -> Iterator[str]:
    """Yield the differences of two plain values, with their place."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _differences(first, second, f"{place}[{number}]")
    elif old != new:
        yield f"{place or 'all'}: {excerpt(repr(old), 60)} -> {excerpt(repr(new), 60)}"


def lost_most(
    queries: Sequence[Query],
    old: Mapping[str, Scores],
    new: Mapping[str, Scores],
    before: Baseline,
    now: Baseline,
    gold: Mapping[str, Gold] | None,
    deeper: Callable[[str], Sequence[str]],
    text_of: Callable[[str], str | None],
    most: int,
) -> list[LostQuery]:
    """Return the queries that lost most in any measure, those that lost more first.

    ``old`` and ``new`` are ``[queries]`` by measure. Documents that fell are those that ``gold`` says are relevant; without
    gold, the first that are found no more. ``deeper`` returns more ids for a text, ``text_of`` the text of an item.
    """
    names = list(old)
    losses = np.stack([old[name] - new[name] for name in names])
    lost = []
    for number in np.argsort(-losses.max(axis=0), kind="stable")[:most].tolist():
        if losses[:, number].max() <= 0:
            break
        query, name = queries[number], names[int(losses[:, number].argmax())]
        hits, hits_now = before.queries[query.query_id].hits, now.queries[query.query_id].hits
        fell = {
            item_id: rank
            for rank, item_id in enumerate(hits, start=1)
            if item_id not in hits_now[: None if gold is None else rank]
        }
        if gold is not None:
            own = gold[query.query_id]
            fell = {each: rank for each, rank in fell.items() if is_relevant(each, before.items[each].title, own)}
        more = deeper(query.text) if fell and gold is not None else ()
        places = {item_id: place for place, item_id in enumerate(more, start=1)}
        documents = [LostDocument(each, text_of(each), rank, places.get(each)) for each, rank in [*fell.items()][:most]]
        values = float(old[name][number]), float(new[name][number])
        came = [each for each in hits_now if each not in hits]
        lost.append(LostQuery(query.query_id, query.text, name, *values, documents, came))
    return lost


def is_relevant(item_id: str, title: str, gold: Gold) -> bool:
    """Return whether gold says that an item is relevant, by its id or its title."""
    if gold.by == "item_id":
        return gold.relevance.get(item_id, 0) > 0
    return normalize_title(title) in {normalize_title(name) for name, grade in gold.relevance.items() if grade > 0}
