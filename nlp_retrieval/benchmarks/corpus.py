"""The corpus of a run, on which all configurations are measured.

The index that is opened first decides what it is, and is held open until the run is over. A searcher that stores its items in
another way is held to it by its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nlp_retrieval.benchmarks.entrants import Searching, generation_of
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.items import ItemsDigest
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.errors import IndexConflictError, ItemError
from nlp_retrieval.evaluation.rankings import Ranking


@dataclass(frozen=True)
class Corpus:
    """The corpus of a run.

    Args:
        item_ids: by row, empty for a deleted item.
        titles: by row, empty for an item without one.
        fingerprint: fingerprint of its content; equal for an index of these items, and for the items without one.
        generation: of the index; None if no searcher has one.
    """

    item_ids: list[str]
    titles: list[str]
    fingerprint: str
    generation: Generation | None

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each item by its id."""
        return {item_id: row for row, item_id in enumerate(self.item_ids) if item_id}

    def items(self, item_ids: Iterable[str]) -> dict[str, SearchableItem]:
        """Return those of the items that the index has, by id; none without an index."""
        rows = [self.rows[item_id] for item_id in item_ids if item_id in self.rows]
        if self.generation is None or not rows:
            return {}
        return {item.item_id: item for item in self.generation.items.items(np.array(rows, np.int64))}

    def results(self, rankings: Sequence[Ranking]) -> list[list[RetrievalResult]]:
        """Return rankings with their items, one list per query; empty lists without an index."""
        items = self.items(dict.fromkeys(item_id for ranking in rankings for item_id, _ in ranking))
        return [
            [RetrievalResult(item=items[item_id], score=score) for item_id, score in ranking if item_id in items]
            for ranking in rankings
        ]

    def rankings(self, results: Sequence[Sequence[RetrievalResult]]) -> list[Ranking]:
        """Return results as ids and scores, one list per query."""
        rankings = [[(hit.item.item_id, hit.score) for hit in hits] for hits in results]
        unknown = {item_id: None for ranking in rankings for item_id, _ in ranking if item_id not in self.rows}
        if unknown:
            raise ItemError(
                f"it found {len(unknown):,} items that are not in the corpus of {len(self.rows):,} (the first: "
                f"{next(iter(unknown))!r}); let it index the corpus of this benchmark"
            )
        return rankings


def corpus_of_run(generation: Generation | None, loader: BaseLoader) -> Corpus:
    """Return the corpus of an index or, if there is none, of a loader."""
    if generation is not None:
        return Corpus(generation.items.ids(), generation.items.titles(), generation.manifest.corpus.fingerprint, generation)
    digest = ItemsDigest()
    read = [(item.item_id, item.title) for item in digest.passing(loader.stream())]
    return Corpus([item_id for item_id, _ in read], [title for _, title in read], digest.hexdigest(), None)


def refuse_other_corpus(held: Generation | None, searcher: Searching) -> None:
    """Raise an error if a searcher has opened an index of other items than that of the run."""
    opened = generation_of(searcher)
    if held is None or opened is None or opened.manifest.corpus.fingerprint == held.manifest.corpus.fingerprint:
        return
    ours, theirs = held.manifest.corpus, opened.manifest.corpus
    raise IndexConflictError(
        f"{opened.path}: this configuration searches {theirs.n_items:,} items (fingerprint {theirs.fingerprint[:12]}), the "
        f"others {ours.n_items:,} ({ours.fingerprint[:12]}), and all configurations of a run are measured on the same items; "
        "let nothing else write to the index, or benchmark a copy of it"
    )
