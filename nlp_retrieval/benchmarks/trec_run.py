"""A run of any tool as a configuration: its lists are read from a TREC file, and its quality is measured like the others'.

It has no index and nothing is searched, so it has no cost.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Container, Sequence
from os.path import expanduser
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.files.checksums import sha256_of
from nlp_retrieval.errors import ItemError, RetrievalWarning, SourceError
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.trec import read_run
from nlp_retrieval.loaders.judgements import with_matched_numbers


class TrecRun(Component):
    """The lists of another tool, from a TREC run file: ``query Q0 item rank score tag``.

    Hits are ordered as in trec_eval: by score, then by item id, descending. A query that is not in the file
    found nothing; it scores 0 and counts.

    Args:
        path: the file, plain or gzip; ``~`` is the home folder.
    """

    kind: ClassVar[str] = "searchers"
    name: ClassVar[str] = "trec_run"
    manifest_may_set = may_set(path=READS_FILE)

    def __init__(self, path: Annotated[str, Field(min_length=1)]) -> None:
        self.path = path

    @property
    def fingerprint(self) -> str:
        """Checksum of the content of the file.

        Raises:
            SourceError: it cannot be read.
        """
        try:
            content = sha256_of(Path(expanduser(self.path)))  # noqa: PTH111 -- unlike Path's, it never raises
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        except ValueError:
            raise SourceError(f"{self.path!r} is not a path of a file: it holds a zero byte") from None
        told = {"name": self.name, "content": content}
        return hashlib.sha256(canonical_json(told).encode()).hexdigest()

    def rankings(self, query_ids: Sequence[str], item_ids: Container[str], k: int) -> list[Ranking]:
        """Return the first ``k`` hits of each query.

        Args:
            query_ids: in order.
            item_ids: ids of the corpus.
            k: length of the lists.

        Raises:
            SourceError: the file cannot be read, is malformed, or has none of the queries.
            ItemError: for one of these queries it names an item, at any rank, that is not in the corpus.
        """
        run = with_matched_numbers(read_run(self.path), query_ids, self.path)
        missing = [query_id for query_id in query_ids if query_id not in run]
        asked = set(query_ids)
        others = [query_id for query_id in run if query_id not in asked]
        if len(missing) == len(query_ids):
            raise SourceError(
                f"{self.path}: none of the {len(query_ids):,} queries is in it (it has {len(run):,}"
                + (f", the first is {others[0]!r}" if others else "")
                + f"; asked for is {query_ids[0]!r}); was it made for other queries?"
            )
        if missing:
            warnings.warn(
                f"{self.path}: {len(missing):,} of {len(query_ids):,} queries are not in it (the first: {missing[0]!r}); "
                "they score 0 and count",
                RetrievalWarning,
                stacklevel=2,
            )
        if others:
            warnings.warn(
                f"{self.path}: {len(others):,} of its queries are not asked here (the first: {others[0]!r}); they do not count",
                RetrievalWarning,
                stacklevel=2,
            )
        lists = [run.get(query_id, []) for query_id in query_ids]
        unknown = [item_id for one in lists for item_id, _ in one if item_id not in item_ids]
        if unknown:
            raise ItemError(
                f"{self.path}: {len(unknown):,} hits are of items that are not in the corpus (the first: {unknown[0]!r}); "
                "use the corpus that the run was made on"
            )
        return [one[:k] for one in lists]
