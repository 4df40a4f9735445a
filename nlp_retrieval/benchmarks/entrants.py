"""What takes part in a benchmark: searchers and runs of other tools; and how they are asked, each query with its filter."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.opening import expanded, sha256_of
from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import ConfigurationError, ItemError, RetrievalWarning, SourceError
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
        """Checksum of the content of the file, or of the files of a folder, and of the settings beside its path."""
        place = expanded(self.path)
        try:
            files = sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]
            content = [sha256_of(file) for file in files]
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
        if unknown := [item_id for ranking in lists for item_id, _ in ranking if item_id not in item_ids]:
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


def as_searcher(entrant: Any) -> Any:
    """Return the searcher of a program of a language model, such as ``HoverMultiHop``; everything else as it is."""
    return entrant.as_searcher() if hasattr(entrant, "as_searcher") else entrant


def generation_of(searcher: object) -> Generation | None:
    """Return the generation that a searcher has opened; None if it has none."""
    opened = getattr(searcher, "opened", None)
    return opened if isinstance(opened, Generation) else None


def grouped(filters: Iterable[Where | None]) -> list[tuple[Where | None, list[int]]]:
    """Return each distinct filter with the positions that have it, in order of first appearance."""
    groups: dict[str, tuple[Where | None, list[int]]] = {}
    for position, where in enumerate(filters):
        key = "" if where is None else repr(parse_filter(where))
        groups.setdefault(key, (where, []))[1].append(position)
    return list(groups.values())


def refuse_filters(searcher: Any) -> None:
    """Raise a ConfigurationError if a searcher takes no filters."""
    if "where" not in inspect.signature(searcher.search).parameters:
        raise ConfigurationError(
            f"{type(searcher).__name__}.search takes no filter (no parameter 'where'), and the queries of this benchmark have "
            "filters; leave out where and where_from, or this configuration"
        )


def search_where(searcher: BaseSearcher, texts: list[str], k: int, where: Where | None) -> Sequence[list[RetrievalResult]]:
    """Search with a filter, or without one, which some searchers do not take."""
    return searcher.search(texts, k, **({} if where is None else {"where": where}))


def search_each(searcher: Any, texts: Sequence[str], k: int, filters: Sequence[Where | None]) -> list[list[RetrievalResult]]:
    """Search for queries that may each have a filter; those of one filter together."""
    results: list[list[RetrievalResult]] = [[] for _ in texts]
    for where, positions in grouped(filters):
        ranked = search_where(searcher, [texts[position] for position in positions], k, where)
        for position, hits in zip(positions, ranked, strict=True):
            results[position] = hits
    return results
