"""What takes part in a benchmark: searchers, runs of other tools, and the corpus on which all are measured.

The index that is opened first decides what the corpus is, and is held open until the run is over. A searcher that stores its
items in another way, whose ``opened`` is None, is held to it by its results.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.opening import expanded, sha256_of
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.items import ItemsDigest
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import IndexConflictError, ItemError, RetrievalWarning, SourceError
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.loaders.judgements import with_matched_numbers


class TrecRun(Component):
    """The lists of another tool, from a TREC run file: ``query Q0 item rank score tag``.

    Hits are ordered as in trec_eval: by score, then by item id, descending. A query that is not in the file
    found nothing; it scores 0 and counts.

    Args:
        path: the file, plain or gzip; ``~`` is the home folder.

    Examples:
        >>> _ = Path("anserini.trec").write_text("q1 Q0 whale 1 7.5 anserini")
        >>> TrecRun("anserini.trec")
        TrecRun(path='anserini.trec')
    """

    kind: ClassVar[str] = "searchers"
    name: ClassVar[str] = "trec_run"
    manifest_may_set = may_set(path=READS_FILE)

    def __init__(self, path: Annotated[str, Field(min_length=1)]) -> None:
        self.path = path

    @property
    def fingerprint(self) -> str:
        """Checksum of the content of the file, and of the settings beside its path."""
        try:
            content = sha256_of(expanded(self.path))
        except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
            raise SourceError(f"{self.path!r} cannot be read ({error})") from error
        described = {key: value for key, value in self.config.items() if key != "path"} | {"content": content}
        return hashlib.sha256(canonical_json(described).encode()).hexdigest()

    def read(self) -> dict[str, Ranking]:
        """Return all lists of the file, by query id."""
        return read_run(self.path)

    def rankings(self, query_ids: Sequence[str], item_ids: Container[str], k: int) -> list[Ranking]:
        """Return the first ``k`` hits of each query; a hit at any rank that is not in the corpus is an error."""
        run = with_matched_numbers(self.read(), query_ids, self.path)
        lists = lists_of(run, query_ids, self.path)
        asked = set(query_ids)
        if others := [query_id for query_id in run if query_id not in asked]:
            warnings.warn(
                f"{self.path}: {len(others):,} of its queries are not asked here (the first: {others[0]!r}); they do not count",
                RetrievalWarning,
                stacklevel=2,
            )
        unknown = [item_id for ranking in lists for item_id, _ in ranking if item_id not in item_ids]
        if unknown:
            raise ItemError(
                f"{self.path}: {len(unknown):,} hits are of items that are not in the corpus (the first: {unknown[0]!r}); "
                "use the corpus that the run was made on"
            )
        return [ranking[:k] for ranking in lists]


def lists_of(run: Mapping[str, Ranking], query_ids: Sequence[str], where: str) -> list[Ranking]:
    """Return a file's list of each query; one that is not in the file scores 0 and counts, but not all of them."""
    missing = [query_id for query_id in query_ids if query_id not in run]
    if len(missing) == len(query_ids):
        first = f", the first is {next(iter(run))!r}" if run else ""
        raise SourceError(
            f"{where}: none of the queries is in it (it has {len(run):,}{first}; asked for is "
            f"{query_ids[0]!r}); was it made for other queries?"
        )
    if missing:
        warnings.warn(
            f"{where}: {len(missing):,} of {len(query_ids):,} queries are not in it (the first: {missing[0]!r}); "
            "they score 0 and count",
            RetrievalWarning,
            stacklevel=3,
        )
    return [run.get(query_id, []) for query_id in query_ids]


Entry = BaseSearcher | TrecRun
"""A named entrant of a benchmark; an object with the interface of a searcher is one too."""


@dataclass(frozen=True)
class Corpus:
    """The corpus of a run: ids and titles by row, empty where there is none, and the index if a searcher has one."""

    item_ids: list[str]
    titles: list[str]
    fingerprint: str
    generation: Generation | None

    @classmethod
    def of(cls, generation: Generation | None, loader: BaseLoader) -> Corpus:
        """Return the corpus of an index or, if there is none, of a loader."""
        if generation is not None:
            items, fingerprint = generation.items, generation.manifest.corpus.fingerprint
            return cls(items.ids(), items.titles(), fingerprint, generation)
        digest = ItemsDigest()
        read = [(item.item_id, item.title) for item in digest.passing(loader.stream())]
        return cls([item_id for item_id, _ in read], [title for _, title in read], digest.hexdigest(), None)

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


def as_searcher(entrant: Any) -> Any:
    """Return the searcher of a program of a language model, such as ``HoverMultiHop``; everything else as it is."""
    return entrant.as_searcher() if hasattr(entrant, "as_searcher") else entrant


def generation_of(searcher: object) -> Generation | None:
    """Return the generation that a searcher has opened; None if it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


def refuse_other_corpus(held: Generation | None, searcher: object) -> None:
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
