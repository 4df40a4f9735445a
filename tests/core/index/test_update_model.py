"""Adding, updating, deleting, joining and searching in any order, against a list in memory that does the same."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_words import HashedWords
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from soaking import Figures

from core.engines import TermCount, terms
from core.test_filters import fulfils
from nlp_retrieval import Bm25Retriever, FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.core.index.generation import verify_index
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ItemError, QueryError, RetrievalWarning

WORDS = ["fox", "whale", "river", "bridge", "castle", "novel"]
IDS = ["a", "A", "\u00e9", "e\u0301", "0", "00", "../a", "' OR 1=1 --", "\x00", "contents:a"]
FILTERS: list[dict[str, Any]] = [
    {"n": {"gte": 2}}, {"n": {"lt": 2.5, "gt": 0}}, {"not": {"n": {"in": [0, 3]}}},
    {"year": {"gte": 3}}, {"year": 2}, {"year": "unknown"}, {"lang": {"in": ["en", "de"]}}, {"not": {"lang": "en"}},
    {"tags": "x"}, {"tags": {"exists": False}}, {"or": [{"year": {"lt": 2}}, {"lang": "de"}]},
    {"lang": "en", "year": {"lte": 3}},
]  # fmt: skip

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "year": st.integers(0, 5) | st.sampled_from([2.5, 3.0, "unknown", 2**60]),
        "n": st.integers(0, 3),
        "lang": st.sampled_from(["en", "de", ""]),
        "tags": st.lists(st.sampled_from("xyz"), max_size=2),
        "k'ey": st.none() | st.booleans() | st.fixed_dictionaries({"inner": st.integers(0, 1)}),
        "title": st.sampled_from(["Fox", "", "River."]),
    },
)
items = st.builds(SearchableItem, item_id=st.sampled_from(IDS), content=texts, metadata=metadata)
several = st.lists(items, min_size=1, max_size=3, unique_by=lambda item: item.item_id)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)

ENCODER = HashedWords(8)
steps = count()


def searchers() -> dict[str, Searcher]:
    return {
        "terms": Searcher([TermCount()]),
        "bm25": Searcher([Bm25Retriever()]),
        "faiss": Searcher([FaissRetriever(ENCODER)]),
    }


def found(searcher: Searcher, query: str, where: dict[str, Any] | None, k: int = 100) -> list[tuple[SearchableItem, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # that nothing was found
        return [(hit.item, hit.score) for hit in searcher.search(query, k, where)[0]]


def outcome(searcher: Searcher, query: str, where: dict[str, Any] | None) -> object:
    try:
        return [(item.item_id, score) for item, score in found(searcher, query, where)]
    except QueryError as error:
        return str(error)


@dataclass
class Reader:
    """Searchers that keep what they opened, and what was there then."""

    own: dict[str, Searcher]
    live: list[SearchableItem]
    changes: int


class Updates(RuleBasedStateMachine):
    """One index with three retrievers, one writer and one reader; ``live`` is what there should be, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "index"
        self.live: list[SearchableItem] = []
        self.changes = 0
        self.reader: Reader | None = None

    def teardown(self) -> None:
        self.reader = None
        self.folder.cleanup()

    @initialize(made=several)
    def build(self, made: list[SearchableItem]) -> None:
        self.live = list(made)
        self.reopen(first=True)
        self.reader = Reader({name: one.open(self.path) for name, one in searchers().items()}, list(made), 0)

    def reopen(self, *, first: bool = False) -> None:
        self.writer = Searcher([TermCount(), Bm25Retriever(), FaissRetriever(ENCODER)])
        if first:
            self.writer.index(self.live, self.path)
        self.writer.open(self.path)
        self.own = {name: one.open(self.path) for name, one in searchers().items()}

    @rule(given=several, auto=st.booleans())
    def add(self, given: list[SearchableItem], auto: bool) -> None:
        taken = [item.item_id for item in given if item.item_id in self.ids]
        if taken:
            with pytest.raises(ItemError, match="is in"):
                self.writer.add(given, auto_compact=auto)
            return
        report = self.writer.add(given, auto_compact=auto)
        assert (report.added, report.replaced, report.deleted) == (len(given), 0, 0)
        self.changed([*self.live, *given])

    @rule(given=several, auto=st.booleans())
    def update(self, given: list[SearchableItem], auto: bool) -> None:
        new = {item.item_id for item in given}
        kept = [item for item in self.live if item.item_id not in new]
        replaced = len(self.live) - len(kept)
        report = self.writer.update(given, auto_compact=auto)
        assert (report.added, report.replaced) == (len(given) - replaced, replaced)
        self.changed([*kept, *given])

    @rule(data=st.data(), auto=st.booleans())
    def delete(self, data: st.DataObject, auto: bool) -> None:
        gone = data.draw(
            st.lists(st.sampled_from(IDS) | st.sampled_from(sorted(self.ids)), min_size=1, max_size=3, unique=True)
        )
        if not set(gone) < self.ids:
            with pytest.raises(ItemError, match=r"nothing was deleted|no item would be left"):
                self.writer.delete(gone, auto_compact=auto)
            return
        report = self.writer.delete(gone, auto_compact=auto)
        assert (report.added, report.deleted) == (0, len(gone))
        self.changed([item for item in self.live if item.item_id not in gone])

    @rule()
    def compact(self) -> None:
        """Joined, the index answers as one that is built at once from the same items, to the last bit and word."""
        assert self.writer.compact().segments == 1
        self.changed(self.live)
        with tempfile.TemporaryDirectory() as other:
            Searcher([TermCount(), Bm25Retriever(), FaissRetriever(ENCODER)]).index(self.live, Path(other) / "at once")
            for name, at_once in searchers().items():
                at_once.open(Path(other) / "at once")
                for query in ("fox river novel", "whale"):
                    for where in (None, *FILTERS):
                        assert outcome(self.own[name], query, where) == outcome(at_once, query, where)

    @rule()
    def open_again(self) -> None:
        self.reopen()
        assert verify_index(self.path) == []

    @rule(query=queries, where=st.none() | st.sampled_from(FILTERS), k=st.integers(1, 4))
    def search(self, query: str, where: dict[str, Any] | None, k: int) -> None:
        self.check_answers(self.own, self.live, query, where, k)

    @rule(query=queries, where=st.none() | st.sampled_from(FILTERS))
    def read(self, query: str, where: dict[str, Any] | None) -> None:
        """The reader finds what there was when it opened the index."""
        assert self.reader is not None
        self.check_answers(self.reader.own, self.reader.live, query, where, 100)

    @precondition(lambda self: self.reader is not None)
    @rule()
    def refresh(self) -> None:
        assert self.reader is not None
        news = [one.refresh() for one in self.reader.own.values()]
        assert not any(news) or self.reader.changes < self.changes
        self.reader = Reader(self.reader.own, list(self.live), self.changes)

    @invariant()
    def exactly_the_live_items_are_there(self) -> None:
        if not self.live:
            return
        table = self.writer.opened.items
        rows = table.rows_of([item.item_id for item in self.live])
        assert rows.tolist() == sorted(rows.tolist())
        assert table.items(rows) == self.live
        assert self.writer.opened.manifest.corpus.n_items == len(self.live)
        next(steps)

    @property
    def ids(self) -> set[str]:
        return {item.item_id for item in self.live}

    def changed(self, live: list[SearchableItem]) -> None:
        self.live = live
        self.changes += 1
        for one in self.own.values():
            one.refresh()

    def check_answers(
        self, own: dict[str, Searcher], live: list[SearchableItem], query: str, where: dict[str, Any] | None, k: int
    ) -> None:
        wanted = [item for item in live if where is None or fulfils(item.metadata, where)]
        try:
            answers = {name: found(searcher, query, where, k) for name, searcher in own.items()}
        except QueryError:
            assert where is not None
            assert not comparable(where, live)
            return
        matching = [(item, float(len(terms(query) & terms(item.text)))) for item in wanted]
        counted = sorted((pair for pair in matching if pair[1]), key=lambda pair: -pair[1])
        assert answers["terms"] == counted[:k]
        every = [item for item, score in found(own["bm25"], query, where)]
        assert {item.item_id for item in every} == {item.item_id for item, _ in counted}
        assert [item for item, _ in answers["bm25"]] == every[:k]
        by_id = {item.item_id: item for item in wanted}
        assert all(by_id[item.item_id] == item for item in every)
        wanted = [item for item in wanted if not has_no_words(item.text)]
        by_id = {item.item_id: item for item in wanted}
        near = ENCODER.encode_passages([item.text for item in wanted]) @ ENCODER.encode_queries([query])[0]
        dense = dict(zip(by_id, near.tolist(), strict=True))
        assert [score for _, score in answers["faiss"]] == pytest.approx(np.sort(near)[::-1][:k].tolist(), abs=1e-5)
        for item, score in answers["faiss"]:
            assert by_id[item.item_id] == item
            assert score == pytest.approx(dense[item.item_id], abs=1e-5)


def comparable(where: dict[str, Any], live: list[SearchableItem]) -> bool:
    """Whether every key of a filter is held by some item, with a value of the type that it is compared with."""
    for key, wanted in where.items():
        if key in ("or", "and", "not"):
            if not all(comparable(one, live) for one in (wanted if isinstance(wanted, list) else [wanted])):
                return False
            continue
        held = [item.metadata[key] for item in live if item.metadata.get(key) is not None]
        operands = [one for value in (wanted.values() if isinstance(wanted, dict) else [wanted]) for one in _listed(value)]
        single = [one for value in held for one in _listed(value)]
        compared = [one for one in operands if not isinstance(one, bool)]
        if not held or any(not any(isinstance(value, str) is isinstance(one, str) for value in single) for one in compared):
            return False
    return True


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_any_sequence_of_updates_leaves_what_a_list_in_memory_has(effort: int, figures: Figures) -> None:
    before = next(steps)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Updates, settings=settings(max_examples=8 * effort, stateful_step_count=12, deadline=None)
    )
    done = next(steps) - before
    figures.add(
        "Live updates", "steps of the state machine", done, done, "add, update, delete, compact, reopen, refresh, search"
    )
