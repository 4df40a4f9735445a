"""Four collections with gold, six rankings each, as pools of which every grade is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from nlp_retrieval import BeirLoader, Bm25Retriever, HoverLoader, Query, SearchableItem, Searcher
from nlp_retrieval.core.models import Gold
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.text.titles import normalize_title

DEPTH = 10
NAMES = {"scifact": "SciFact", "hover": "HoVer", "cat": "Climate Action Tracker", "musique": "MuSiQue"}
FIRST_WORDS = "first 25 words"
SYSTEMS = {
    "bm25": Bm25Retriever(),
    "words as they are": Bm25Retriever(stemmer="none"),
    "k1 2, b 0.9": Bm25Retriever(k1=2.0, b=0.9),
    "RM3": Bm25Retriever(feedback="rm3"),
    "titles": Bm25Retriever(),
    FIRST_WORDS: Bm25Retriever(),
}
"""The last two search only a part of each passage."""


@dataclass(frozen=True, eq=False)
class World:
    """A collection: all its questions as one pool, with the gold.

    Args:
        pool: of all questions, nothing judged.
        gold: ``[pairs]``, 0 or 1.
        pairs_of: by family, the numbers of its queries.
    """

    pool: JudgingPool
    gold: NDArray[np.float64]
    pairs_of: list[list[int]]

    def drawn(self, families: Sequence[int]) -> tuple[JudgingPool, NDArray[np.int64]]:
        """Return the pool of families, of which each may be there several times, and the numbers of its pairs here."""
        names: list[str] = []
        own: list[str] = []
        queries: list[int] = []
        for place, family in enumerate(families):
            for query in self.pairs_of[family]:
                names.append(f"{len(names)}")
                own.append(f"{place}")
                queries.append(query)
        of_query = self._of_query
        parts = [of_query[query] for query in queries]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        pairs = np.concatenate(parts)
        systems = {
            name: [rankings[query] - of_query[query][0] + starts[place] for place, query in enumerate(queries)]
            for name, rankings in self.pool.systems.items()
        }
        size = len(pairs)
        pool = JudgingPool(
            query_ids=names,
            families=list(own),
            systems=systems,
            pair_query=np.repeat(np.arange(len(names)), np.diff(starts)),
            item_ids=[""] * size,
            chosen=np.ones(size, bool),
            drawn=np.ones(len(names), bool),
            grades=np.full(size, np.nan),
            model=np.full(size, np.nan),
        )
        return pool, pairs

    @property
    def _of_query(self) -> list[NDArray[np.int64]]:
        cuts = np.searchsorted(self.pool.pair_query, np.arange(len(self.pool.query_ids) + 1))
        return [np.arange(begin, end) for begin, end in pairwise(cuts.tolist())]


def worlds(data: Data, work: Path) -> dict[str, World]:
    """Return the four collections; rankings are kept in a folder."""
    return {name: _world(data, work, name) for name in NAMES}


def _read(data: Data, name: str) -> tuple[list[SearchableItem], list[Query], list[Gold]]:
    if name == "hover":
        loader = HoverLoader(data.claims)
        return BeirLoader(data.corpus).load(), loader.queries(), loader.gold()
    folder = data.root / {"cat": "policy/cat"}.get(name, name)
    beir = BeirLoader(folder)
    return beir.load(), beir.queries(), beir.gold()


def _world(data: Data, work: Path, name: str) -> World:
    kept = work / f"judgements-{name}.npz"
    if not kept.exists():
        np.savez_compressed(kept, **_found(*_read(data, name), work / f"judgements-{name}"))  # type: ignore[arg-type]
    with np.load(kept) as arrays:
        found = {key: arrays[key] for key in arrays}
    query, gold = found["query"], found["gold"]
    count = len(found["family"])
    pool = JudgingPool(
        query_ids=[str(number) for number in range(count)],
        families=[str(number) for number in found["family"].tolist()],
        systems={
            system: np.split(found[f"pairs {place}"], found[f"cuts {place}"][1:-1]) for place, system in enumerate(SYSTEMS)
        },
        pair_query=query,
        item_ids=[""] * len(query),
        chosen=np.ones(len(query), bool),
        drawn=np.ones(count, bool),
        grades=np.full(len(query), np.nan),
        model=np.full(len(query), np.nan),
    )
    pairs_of = [np.flatnonzero(found["family"] == number).tolist() for number in range(int(found["family"].max()) + 1)]
    return World(pool, gold, pairs_of)


def _found(items: list[SearchableItem], queries: list[Query], gold: list[Gold], work: Path) -> dict[str, NDArray[Any]]:
    """Search with the six systems, and number all pairs of question and passage."""
    relevant = {one.query_id: one for one in gold}
    queries = [query for query in queries if query.query_id in relevant]
    texts = {
        "titles": [replace_content(item, item.title or " ") for item in items],
        FIRST_WORDS: first_words(items),
    }
    rankings = {}
    for place, (system, retriever) in enumerate(SYSTEMS.items()):
        searcher = Searcher([retriever])
        searcher.index(texts.get(system, items), work / str(place))
        found = searcher.search([query.text for query in queries], DEPTH)
        rankings[system] = [[hit.item.item_id for hit in hits] for hits in found]
    by_id = {item.item_id: item for item in items}
    numbers: dict[tuple[int, str], int] = {}
    for query in range(len(queries)):
        for lists in rankings.values():
            for item_id in lists[query]:
                numbers.setdefault((query, item_id), len(numbers))
    arrays: dict[str, NDArray[Any]] = {"query": np.array([query for query, _ in numbers])}
    arrays["gold"] = np.array([_is_relevant(by_id[item], relevant[queries[query].query_id]) for query, item in numbers], float)
    families = [query.family or query.query_id for query in queries]
    place_of = {family: number for number, family in enumerate(dict.fromkeys(families))}
    arrays["family"] = np.array([place_of[family] for family in families])
    for place, lists in enumerate(rankings.values()):
        own = [[numbers[query, item] for item in items_found] for query, items_found in enumerate(lists)]
        arrays[f"pairs {place}"] = np.array([pair for pairs in own for pair in pairs], np.int64)
        arrays[f"cuts {place}"] = np.concatenate([[0], np.cumsum([len(pairs) for pairs in own])])
    return arrays


def first_words(items: Sequence[SearchableItem]) -> list[SearchableItem]:
    """Return passages of their first 25 words."""
    return [replace_content(item, " ".join(item.content.split()[:25])) for item in items]


def replace_content(item: SearchableItem, content: str) -> SearchableItem:
    """Return a passage with another content and without a title."""
    return SearchableItem(item_id=item.item_id, content=content)


def _is_relevant(item: SearchableItem, gold: Gold) -> bool:
    if gold.by == "title":
        return normalize_title(item.title) in {normalize_title(title) for title, grade in gold.relevance.items() if grade > 0}
    return gold.relevance.get(item.item_id, 0) > 0
