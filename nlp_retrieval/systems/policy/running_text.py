"""Running text: what stands in most passages of a document, such as its title, a header, a footer or a notice.

It says of what document a passage is, and nothing of the passage: within one document it tells no two passages apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import MultiSignalReranker, RetrievalResult, SearchableItem
from nlp_retrieval.core import BaseSearcher
from nlp_retrieval.encoders import BaseEncoder, Vectors
from nlp_retrieval.systems.policy.answers import named_document

_WORD = re.compile(r"\w+|\n")
_DIGITS = re.compile(r"\d+")
_RUN = 4
"""Words, ends of lines and ends of the passage of the shortest run that is compared."""

_FEWEST, _SHARE = 3, 0.6
"""Passages with a run, at least: this many, and this share of the document's."""

_LONG = 8
"""Words of the shortest running text inside a line."""

_EDGE = "\n"


@dataclass(frozen=True)
class RunningText:
    """The running text of a document."""

    runs: frozenset[tuple[str, ...]] = frozenset()
    title: str = ""

    @classmethod
    def of(cls, items: Sequence[SearchableItem]) -> RunningText:
        """Find the running text of a document's passages; of fewer than three it is the title that both share."""
        titles = {item.title for item in items}
        shared = next(iter(titles)) if len(titles) == 1 and len(items) > 1 else ""
        counts = Counter(run for item in items for run in set(_runs(_words(_read(item, shared)))))
        least = max(_FEWEST, _SHARE * len(items))
        return cls(frozenset(run for run, count in counts.items() if count >= least), shared)

    def __bool__(self) -> bool:
        return bool(self.runs or self.title)

    def split(self, item: SearchableItem) -> tuple[str, str]:
        """Return a passage without its running text, and its running text; both with the title."""
        text = _read(item, self.title)
        words = list(_words(text))
        covered = bytearray(len(words) + 2)
        for place, run in enumerate(_runs(words)):
            if run in self.runs:
                covered[place : place + _RUN] = b"\1" * _RUN
        _keep_short(covered, words)
        own: list[str] = []
        running = [self.title] if self.title else []
        begin, is_running = 0, False
        for (_, start, _), mark in zip(words, covered[1:], strict=False):
            if bool(mark) != is_running:
                (running if is_running else own).append(text[begin:start])
                begin, is_running = start, bool(mark)
        (running if is_running else own).append(text[begin:])
        return "".join(own).strip(), " ".join(" ".join(running).split())


def _keep_short(covered: bytearray, words: Sequence[tuple[str, int, int]]) -> None:
    """Uncover short runs inside a line: a header stands at an end of one, and a name may stand anywhere."""
    begin = 0
    while begin < len(covered):
        end = begin + 1
        while end < len(covered) and covered[end] == covered[begin]:
            end += 1
        edges = begin == 0 or end == len(covered) or any(words[place - 1][0] == _EDGE for place in range(begin, end))
        if covered[begin] and not edges and end - begin < _LONG:
            covered[begin:end] = bytes(end - begin)
        begin = end


def _read(item: SearchableItem, shared: str) -> str:
    """Return the text of a passage, without a title that all share."""
    return item.content if shared else item.text


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words and the ends of lines, as they are compared, with their places."""
    for match in _WORD.finditer(text):
        yield _DIGITS.sub("0", match[0].casefold()), match.start(), match.end()


def _runs(words: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, ...]]:
    """Yield the runs of a passage; its ends count as ends of lines."""
    padded = [_EDGE, *(word for word, _, _ in words), _EDGE]
    for begin in range(max(1, len(padded) - _RUN + 1)):
        yield tuple(padded[begin : begin + _RUN])


# Signals of passages without their running text.


class PlainPassages:
    """The passages of a subject as they are without running text."""

    def __init__(self, items: Iterable[SearchableItem]) -> None:
        documents: dict[str, list[SearchableItem]] = {}
        for item in items:
            documents.setdefault(named_document(item), []).append(item)
        self._running = {name: RunningText.of(passages) for name, passages in documents.items()}
        self._split: dict[str, tuple[str, str]] = {}

    def split(self, item: SearchableItem) -> tuple[str, str]:
        """Return what a passage says, and its running text; either may be empty."""
        if item.item_id not in self._split:
            self._split[item.item_id] = self._running[named_document(item)].split(item)
        return self._split[item.item_id]

    def rescored(
        self, searcher: BaseSearcher, questions: Sequence[tuple[str, str]], lists: Sequence[list[RetrievalResult]]
    ) -> list[list[RetrievalResult]]:
        """Return the hits, scored by all signals as if their passages had no running text, best first."""
        reranker = getattr(searcher, "reranker", None)
        if not isinstance(reranker, MultiSignalReranker) or reranker.blend != "replace":
            return list(lists)
        changed = [[number for number, hit in enumerate(hits) if self.split(hit.item)[0] != hit.item.text] for hits in lists]
        running = list(
            dict.fromkeys(
                self.split(hits[number].item)[1] for hits, numbers in zip(lists, changed, strict=True) for number in numbers
            )
        )
        cosines = self._cosines(searcher, [searched for _, searched in questions], running)
        rescored = []
        for (text, _), hits, numbers, own in zip(questions, lists, changed, cosines, strict=True):
            some = [hits[number] for number in numbers]
            shared = [running.index(self.split(hit.item)[1]) for hit in some]
            silent = [not self.split(hit.item)[0] for hit in some]
            scored = reranker.beyond(text, some, running, own, shared, silent, searcher.opened.items) if numbers else []
            whole = dict(enumerate(hits)) | dict(zip(numbers, scored, strict=True))
            rescored.append(sorted(whole.values(), key=lambda hit: -hit.score) if numbers else hits)
        return rescored

    @staticmethod
    def _cosines(searcher: BaseSearcher, queries: list[str], running: list[str]) -> list[list[float]]:
        """Return ``[queries, running texts]``; 0 without an encoder, and for an empty text."""
        encoder = encoder_of(searcher)
        if encoder is None or not any(running):
            return [[0.0] * len(running) for _ in queries]
        vectors = (
            unit_vectors(encoder.encode_queries(queries)),
            unit_vectors(encoder.encode_passages([t or " " for t in running])),
        )
        products = np.einsum("ik,jk->ij", *vectors)  # a product of BLAS depends on the neighbouring rows
        rows: list[list[float]] = np.where([bool(text) for text in running], products, 0.0).tolist()
        return rows


def encoder_of(searcher: BaseSearcher) -> BaseEncoder | None:
    """Return the encoder of a searcher's sentence vectors: of its reranker, else of the first retriever that has one."""
    reranker = getattr(searcher, "reranker", None)
    parts = [*(reranker if isinstance(reranker, list) else [reranker]), *searcher.retrievers.values()]
    return next((part.encoder for part in parts if isinstance(getattr(part, "encoder", None), BaseEncoder)), None)


def unit_vectors(vectors: Vectors) -> NDArray[np.float64]:
    """Return vectors scaled to length 1; one of length 0 stays so."""
    whole = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(whole, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(whole, lengths, out=np.zeros_like(whole), where=lengths > 0)
    return scaled
