"""The single corpus that all configurations of a run are measured on.

The first generation of the index that is opened determines the items, and it is held open until the run is over. Every other
configuration must search the same items, and the same files of equal retrievers, when it is opened, before it is measured
and afterwards. A searcher without a generation, because it stores its items elsewhere, is checked by its results: items of the
corpus, with the same text as there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlp_retrieval.benchmarks.entrants import Searching, generation_of
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.items import ItemsDigest
from nlp_retrieval.core.index.manifest import RetrieverRecord, read_manifest
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import IndexConflictError, IndexDamagedError, ItemError, RetrievalWarning
from nlp_retrieval.evaluation.rankings import Ranking

_CURE = "let nothing else write to the index, or benchmark a copy of it, and run the benchmark again"


@dataclass(frozen=True)
class Corpus:
    """The parts of the corpus needed for evaluation.

    Args:
        item_ids: by row, empty for a deleted item.
        titles: by row, empty for an item without one.
        fingerprint: fingerprint of its content; equal for an index of these items, and for the items without one.
    """

    item_ids: list[str]
    titles: list[str]
    fingerprint: str

    def rows(self) -> dict[str, int]:
        """Return the row of each item by its id."""
        return {item_id: row for row, item_id in enumerate(self.item_ids) if item_id}


class PinnedCorpus:
    """Restricts the configurations of a run to one corpus.

    Args:
        fingerprint: the required fingerprint of the corpus; None: that of the first index opened.
    """

    def __init__(self, fingerprint: str | None = None) -> None:
        self._wanted = fingerprint
        self._records: dict[str, RetrieverRecord] = {}
        self.generation: Generation | None = None

    def check(self, searcher: Searching) -> None:
        """Raise an error if a searcher searches other items than those before it; the first one determines the items.

        Raises:
            IndexConflictError: its generation holds other items, or another index of an equal retriever.
        """
        opened = generation_of(searcher)
        if opened is None or opened is self.generation:
            return
        if self.generation is None:
            self._refuse_unwanted(opened.manifest.corpus.fingerprint)
            self.generation = opened
        held, own = self.generation.manifest.corpus, opened.manifest.corpus
        if own.fingerprint != held.fingerprint:
            raise IndexConflictError(
                f"{self._changed(opened.path)}: this configuration searches {own.n_items:,} items (fingerprint "
                f"{own.fingerprint[:12]}), the others {held.n_items:,} ({held.fingerprint[:12]}). All configurations of a run "
                f"are measured on the same items: {_CURE}"
            )
        for record in opened.manifest.retrievers:
            if self._records.setdefault(record.fingerprint, record).segments != record.segments:
                raise IndexConflictError(
                    f"{self._changed(opened.path)}: its index of {record.identity.get('name')!r} has other files than the one "
                    f"that other configurations search: {_CURE}"
                )

    def corpus(self, loader: BaseLoader) -> Corpus:
        """Return the corpus: that of the generation or, if no searcher has one, the loader's.

        Raises:
            IndexConflictError: it is not the required one.
            ItemError: an item has text that is not valid Unicode, or metadata that JSON cannot represent.
        """
        if self.generation is not None:
            items = self.generation.items
            return Corpus(items.ids(), items.titles(), self.generation.manifest.corpus.fingerprint)
        digest = ItemsDigest()
        read = [(item.item_id, item.title) for item in digest.passing(loader.stream())]
        self._refuse_unwanted(digest.hexdigest())
        return Corpus([item_id for item_id, _ in read], [title for _, title in read], digest.hexdigest())

    def rankings(
        self, searcher: Searching, results: Sequence[Sequence[RetrievalResult]], row_of: Mapping[str, int]
    ) -> list[Ranking]:
        """Return a searcher's results as ids and scores.

        Args:
            searcher: the searcher.
            results: one list per query.
            row_of: item rows by id.

        Raises:
            ItemError: an item is not in the corpus or, if the searcher has no generation, has a different text there.
        """
        rankings = [[(hit.item.item_id, hit.score) for hit in hits] for hits in results]
        unknown = {item_id: None for ranking in rankings for item_id, _ in ranking if item_id not in row_of}
        if unknown:
            raise ItemError(
                f"it found {len(unknown):,} items that are not in the corpus of {len(row_of):,} (the first: "
                f"{next(iter(unknown))!r}); let it index the corpus of this benchmark"
            )
        if self.generation is not None and generation_of(searcher) is None:
            self._refuse_other_texts(results, row_of, self.generation)
        return rankings

    def results(self, rankings: Sequence[Ranking], row_of: Mapping[str, int]) -> list[list[RetrievalResult]]:
        """Return rankings with the items of the corpus, for runs with ids alone; empty lists without an index.

        Args:
            rankings: one list per query.
            row_of: item rows by id.
        """
        if self.generation is None:
            return [[] for _ in rankings]
        ids = list(dict.fromkeys(item_id for ranking in rankings for item_id, _ in ranking))
        items = self.generation.items.items(np.array([row_of[item_id] for item_id in ids], np.int64)) if ids else []
        by_id = dict(zip(ids, items, strict=True))
        return [[RetrievalResult(item=by_id[item_id], score=score) for item_id, score in ranking] for ranking in rankings]

    def passages(self, item_ids: Sequence[str], row_of: Mapping[str, int]) -> dict[str, str]:
        """Return the texts of items of the corpus by id; none without an index."""
        known = [item_id for item_id in item_ids if item_id in row_of]
        if self.generation is None or not known:
            return {}
        items = self.generation.items.items(np.array([row_of[item_id] for item_id in known], np.int64))
        return {item.item_id: item.content for item in items}

    def texts(self, item_ids: Iterable[str], row_of: Mapping[str, int], loader: BaseLoader) -> dict[str, tuple[str, str]]:
        """Return the content of items of the corpus, and their whole text, by id.

        Args:
            item_ids: ids of the corpus.
            row_of: item rows by id.
            loader: loader of the corpus; read if there is no index.
        """
        wanted = list(item_ids)
        if self.generation is None:
            ids = set(wanted)
            return {item.item_id: (item.content, item.text) for item in loader.stream() if item.item_id in ids}
        items = self.generation.items.items(np.array([row_of[item_id] for item_id in wanted], np.int64))
        return {item.item_id: (item.content, item.text) for item in items}

    def warn_of_changes(self) -> None:
        """Report whether the index was changed meanwhile; the measurements are of its earlier content."""
        if self.generation is None:
            return
        held, path = self.generation.manifest.corpus, self.generation.path
        try:
            now = read_manifest(path)
        except IndexDamagedError:
            now = None
        if now is None or now.corpus.fingerprint != held.fingerprint:
            warnings.warn(
                f"{path} was changed while the benchmark ran. The results were measured on the {held.n_items:,} items "
                "that it held before; another run cannot reproduce them",
                RetrievalWarning,
                stacklevel=5,
            )

    def _changed(self, path: Path) -> str:
        first = self.generation.path if self.generation is not None else path
        return f"{path} was changed while the benchmark ran" if path == first else f"{path} is a different index from {first}"

    def _refuse_unwanted(self, fingerprint: str) -> None:
        if self._wanted is not None and fingerprint != self._wanted:
            raise IndexConflictError(
                f"the corpus is not that of before: its fingerprint was {self._wanted[:12]}, and is {fingerprint[:12]}; what "
                "was measured on the one decides nothing about the other, so start the benchmark again"
            )

    def _refuse_other_texts(
        self, results: Sequence[Sequence[RetrievalResult]], row_of: Mapping[str, int], held: Generation
    ) -> None:
        items = {hit.item.item_id: hit.item for hits in results for hit in hits}
        ours = held.items.items(np.array([row_of[item_id] for item_id in items], np.int64)) if items else []
        other = [item.item_id for item, own in zip(items.values(), ours, strict=True) if item.text != own.text]
        if other:
            raise ItemError(
                f"{len(other):,} of the {len(items):,} items that it found have another text than in the corpus (the first: "
                f"{other[0]!r}); let it index the corpus of this benchmark"
            )
