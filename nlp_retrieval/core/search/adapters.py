"""Retrievers that define ``index`` and ``retrieve`` and nothing else, and rerankers that define ``rerank`` and nothing else.

The three signatures::

    def index(self, items: list[SearchableItem], output_path: Path) -> None
    def retrieve(self, processed_queries: list[list[str]], output_path: Path, k: int) -> list[list[hit]]
    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> list[list[hit]]

The sub-queries of a query come together, as the processor made them. Each list is best first; without scores, the score is
1 / rank. A result's signals are not kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, EngineError

_HIT = "a hit is a RetrievalResult, an item, the id of one, or a pair of one of these and a score"
Found = tuple[Rows, Scores]


def check_signature(cls: type, method: str, *wanted: str) -> None:
    """Raise a ConfigurationError unless a method has these parameters; further ones need a default."""
    given = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    written = [parameter.name for parameter in given]
    needed = [p.name for p in given if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if written[: len(wanted)] != [*wanted] or not {*needed} <= {*wanted}:
        raise ConfigurationError(
            f"{cls.__name__}.{method}({', '.join(written)}): define {method}(self, {', '.join(wanted)}); further parameters "
            "need a default"
        )


def read_lists(returned: object, row_of: Sequence[Mapping[str, int]], said: str) -> list[Found]:
    """Read what ``said`` returned: the rows of each query's hits, by ``row_of``, and their scores, 1 / rank if it gave none."""
    if not isinstance(returned, list | tuple) or len(returned) != len(row_of):
        shown = f"{len(returned)} lists" if isinstance(returned, list | tuple) else type(returned).__name__
        raise EngineError(f"{said} returned {shown} for {len(row_of)} queries; return one list of hits for each")
    return [_read_list(hits, rows, said) for hits, rows in zip(returned, row_of, strict=True)]


def _read_list(returned: object, row_of: Mapping[str, int], said: str) -> Found:
    if not isinstance(returned, list | tuple):
        raise EngineError(f"{said} returned {returned!r:.80} for a query; return a list of hits, best first: {_HIT}")
    hits = [_read_hit(entry, said) for entry in returned]
    if unknown := [item_id for item_id, _ in hits if item_id not in row_of]:
        raise EngineError(f"{said} returned {unknown[0]!r:.80}, the id of none of the {len(row_of)} items that it got")
    given = [score for _, score in hits if score is not None]
    if given and len(given) < len(hits):
        raise EngineError(f"{said} returned a list in which only some hits have a score; give one to each, or to none")
    scores = np.array(given, np.float64) if given else 1.0 / np.arange(1.0, len(hits) + 1.0)
    return np.array([row_of[item_id] for item_id, _ in hits], np.int64), scores


def _read_hit(entry: object, said: str) -> tuple[str, float | None]:
    match entry:
        case RetrievalResult():
            return entry.item.item_id, entry.score
        case SearchableItem():
            return entry.item_id, None
        case str():
            return entry, None
        case (item, Real() as score):
            return _read_hit(item, said)[0], float(score)
    raise EngineError(f"{said} returned {entry!r:.80} ({type(entry).__name__}) as a hit; {_HIT}")


@dataclass
class AdaptedIndex:
    """An object of the author's class that has indexed items."""

    retriever: Any
    folder: Path
    row_of: dict[str, int]
    lock: Lock = field(default_factory=Lock)

    def search(self, groups: list[list[str]], k: int, allowed: Mask | None) -> Hits:
        """Return the best ``k`` hits of each group of sub-queries; more are asked for until ties and filter leave no doubt."""
        answers: list[Found] = [(np.zeros(0, np.int64), np.zeros(0))] * len(groups)
        n_items, said = len(self.row_of), f"{type(self.retriever).__name__}.retrieve"
        pending, depth = (list(range(len(groups))) if n_items else []), min(k + 1, n_items)
        while pending:
            with self.lock:
                returned = self.retriever.retrieve([groups[number] for number in pending], self.folder, depth)
            lists = read_lists(returned, [self.row_of] * len(pending), said)
            unsure = []
            for number, (rows, scores) in zip(pending, lists, strict=True):
                if len(rising := np.flatnonzero(scores[1:] > scores[:-1])):
                    first, then = scores[rising[0] : rising[0] + 2]
                    raise EngineError(
                        f"{said} returned a hit with the score {first:g} before one with {then:g}; hits come best first, and a "
                        "higher score is better: sort them, and negate distances"
                    )
                kept = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed[rows])
                best = kept[np.lexsort((rows[kept], -scores[kept]))[:k]]
                answers[number] = rows[best], scores[best]
                if len(rows) == depth < n_items and (len(kept) < k or scores[best[-1]] <= scores[-1]):
                    unsure.append(number)
            pending, depth = unsure, min(4 * depth, n_items)
        return Hits.from_lists(answers)
