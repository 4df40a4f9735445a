"""Retrievers made of retrievers: each part keeps an index of its own, built once, shared, and opened with the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.engines import TermCount, TermShare, documents
from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.base_searcher import builders_of, labelled
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError, IndexMismatchError, IndexMissingError

ITEMS = documents(["alpha beta", "beta gamma delta", "gamma", "alpha alpha", "delta beta"])


class Sum(BaseRetriever):
    """Adds up what its parts score, and tells what each did.

    Args:
        of: its parts.
        size: of its index.
    """

    name = "sum"
    search_only = frozenset({"of"})

    def __init__(self, of: Sequence[BaseRetriever], size: int = 1) -> None:
        self.of = of
        self.size = size

    def parts(self) -> Sequence[BaseRetriever]:
        return self.of

    def build(self, items: ItemTable, folder: Path) -> None:
        (folder / "sum.json").write_text(json.dumps(len(items)))

    def load(self, folder: Path) -> None:
        self.n_items = json.loads((folder / "sum.json").read_text())

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        scores = np.full((len(queries), len(self._opened_parts), self.n_items), np.nan)
        for place, part in enumerate(self._opened_parts):
            hits = part.search_batch(queries, self.n_items, allowed)
            owner = np.repeat(np.arange(len(queries)), np.diff(hits.offsets))
            scores[owner, place, hits.rows] = hits.scores
        lists, told = [], []
        for one in scores:
            rows = np.flatnonzero(~np.isnan(one).all(axis=0))
            total = np.nansum(one[:, rows], axis=0)
            best = np.lexsort((rows, -total))[:k]
            lists.append((rows[best], total[best]))
            told.append(one[:, rows[best]])
        joined = np.concatenate(told, axis=1) if told else np.zeros((len(self._opened_parts), 0))
        hits = Hits.from_lists(lists)
        return Hits(hits.offsets, hits.rows, hits.scores, {f"part{place}": column for place, column in enumerate(joined)})


def names_of(identities: Sequence[BaseRetriever]) -> list[str]:
    return [one.name for one in identities]


def test_parts_stand_before_what_is_made_of_them_and_each_index_once() -> None:
    inner = Sum([TermCount(), TermShare()])
    outer = Sum([inner, TermCount(boost=3.0)], size=2)
    assert names_of(with_parts([outer])) == ["terms", "share", "sum", "sum"]
    assert names_of(with_parts([TermShare(), outer, inner])) == ["share", "terms", "sum", "sum"]
    assert names_of(with_parts([TermCount(), TermCount(min_length=2), Sum([TermCount(boost=2.0)])])) == [
        "terms",
        "terms",
        "sum",
    ]
    assert [builder.name for builder in builders_of([outer])] == ["terms", "share", "sum", "sum"]
    assert with_parts([]) == []


def test_an_ordinary_retriever_has_no_parts() -> None:
    assert list(TermCount().parts()) == []
    assert with_parts([TermCount()]) == [TermCount()]


def test_a_part_that_another_configuration_uses_is_built_once(tmp_path: Path) -> None:
    searcher = Searcher([TermCount(), Sum([TermCount(boost=2.0), TermShare()])])
    assert searcher.index(ITEMS, tmp_path).built == ["terms", "share", "sum"]
    again = Sum([TermShare(), TermCount()]).index(ITEMS, tmp_path)
    assert (again.built, again.found) == ([], ["share", "terms", "sum"])
    other = Sum([TermCount(min_length=3)]).index(ITEMS, tmp_path)
    assert (other.built, other.found) == (["terms"], ["sum"])


def test_each_part_searches_with_its_own_settings(tmp_path: Path) -> None:
    retriever = Sum([TermCount(boost=10.0), Sum([TermShare()])])
    retriever.index(ITEMS, tmp_path)
    (hits,) = retriever.retrieve([["alpha beta"]], tmp_path, 10)
    assert {hit.item.item_id: hit.score for hit in hits} == pytest.approx(
        {"d0": 20 + 1.0, "d1": 10 + 1 / 3, "d3": 10 + 1.0, "d4": 10 + 1 / 2}
    )


def test_signals_of_hits_arrive_under_the_label_without_what_is_nan(tmp_path: Path) -> None:
    searcher = Searcher({"all": Sum([TermCount(min_length=5), TermShare()]), "words": TermCount(min_length=1)})
    searcher.index(documents(["red", "alpha red", "alpha"]), tmp_path)
    by_id = {hit.item.item_id: hit.signals for hit in searcher.search("red alpha", 10)[0]}
    assert {key: value for key, value in by_id["d1"].items() if key.startswith("all.part")} == {
        "all.part0": 1.0,
        "all.part1": 1.0,
    }
    assert "all.part0" not in by_id["d0"]
    assert by_id["d0"]["all.part1"] == 1.0
    assert not any(key.startswith("words.part") for signals in by_id.values() for key in signals)


@pytest.mark.parametrize("rule", ["max", "rrf", "round_robin"])
def test_signals_of_merged_sub_queries_are_those_of_the_one_that_found_the_item_best(tmp_path: Path, rule: str) -> None:
    retriever = Sum([TermShare()])
    retriever.index(ITEMS, tmp_path)
    retriever.merge = rule  # type: ignore[assignment]
    subqueries = ["gamma", "beta", "alpha beta"]
    alone = [
        {hit.item.item_id: hit.signals["sum.part0"] for hit in hits}
        for hits in retriever.retrieve([[q] for q in subqueries], tmp_path, 9)
    ]
    opened = retriever.open(open_generation(tmp_path))
    batch = opened.candidates([subqueries], 9, len(ITEMS))
    for row, subquery, told in zip(batch.rows, batch.subquery, batch.signals["sum.part0"], strict=True):
        assert told == alone[subquery][f"d{row}"]


def test_signals_are_sorted_and_cut_with_their_hits(tmp_path: Path) -> None:
    retriever = Sum([TermShare(), TermCount()])
    retriever.index(ITEMS, tmp_path)
    whole = retriever.retrieve([["alpha beta gamma"], ["delta"]], tmp_path, 9)
    for k in (1, 2, 3):
        assert retriever.retrieve([["alpha beta gamma"], ["delta"]], tmp_path, k) == [hits[:k] for hits in whole]
    for hit in whole[0]:
        assert hit.score == pytest.approx(hit.signals["sum.part0"] + hit.signals["sum.part1"])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_signal_is_an_error_that_names_it(value: float) -> None:
    hits = Hits(np.array([0, 2]), np.array([3, 1]), np.array([2.0, 1.0]), {"told": np.array([np.nan, value])})
    with pytest.raises(EngineError, match="engine gave a signal 'told' that is infinite"):
        hits.checked(1, 10, 5, "engine")


def test_signals_of_another_length_than_the_hits_are_an_error(tmp_path: Path) -> None:
    class Careless(TermCount):
        name = "careless"

        def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
            hits = super().search_batch(queries, k, allowed)
            return Hits(hits.offsets, hits.rows, hits.scores, {"told": np.zeros(len(hits.rows) + 1)})

    Careless().index(ITEMS, tmp_path)
    with pytest.raises(EngineError, match=r"Careless.*unequal length"):
        Careless().retrieve([["alpha"]], tmp_path, 3)


def test_a_part_without_an_index_is_missing_and_one_of_another_configuration_does_not_fit(tmp_path: Path) -> None:
    Sum([TermCount()]).index(ITEMS, tmp_path)
    with pytest.raises(IndexMissingError, match=r"no index of 'share' \(retrievers there: sum, terms\)"):
        Sum([TermCount(), TermShare()]).retrieve([["alpha"]], tmp_path, 3)
    with pytest.raises(IndexMismatchError, match=r"terms index .*min_length: indexed with 1, now 2"):
        Sum([TermCount(min_length=2)]).retrieve([["alpha"]], tmp_path, 3)


def test_a_damaged_file_of_a_part_is_found(tmp_path: Path) -> None:
    Sum([TermCount()]).index(ITEMS, tmp_path)
    (file,) = tmp_path.glob("terms-*/terms.json")
    file.write_text("[]")
    with pytest.raises(IndexDamagedError, match=r"terms\.json"):
        Sum([TermCount()]).retrieve([["alpha"]], tmp_path, 3)


def test_parts_follow_to_a_newer_generation(tmp_path: Path) -> None:
    searcher = Searcher([Sum([TermCount()])])
    searcher.index(ITEMS, tmp_path)
    retriever = Sum([TermCount()])
    assert len(retriever.retrieve([["alpha"]], tmp_path, 9)[0]) == 2
    Sum([TermCount()]).index(documents(["alpha", "alpha", "alpha"]), tmp_path, replace=True)
    assert len(searcher.search("alpha", 9)[0]) == 2
    assert searcher.refresh()
    assert len(searcher.search("alpha", 9)[0]) == len(retriever.retrieve([["alpha"]], tmp_path, 9)[0]) == 3


def test_the_records_of_a_searcher_are_those_of_its_retrievers_and_their_parts(tmp_path: Path) -> None:
    Searcher([Sum([TermCount()]), TermShare()]).index(ITEMS, tmp_path)
    for searcher, names in (
        (Searcher([Sum([TermCount()])]), ["sum", "terms"]),
        (Searcher([TermShare()]), ["share"]),
        (Searcher([Sum([TermCount(), TermShare()]), TermCount()]), ["share", "sum", "terms"]),
    ):
        assert sorted(record.identity["name"] for record in searcher.open(tmp_path).index_records()) == names


def test_the_fingerprint_of_a_searcher_tells_parts_apart() -> None:
    prints = {
        Searcher([Sum(parts)]).fingerprint
        for parts in ([TermCount()], [TermCount(boost=2.0)], [TermCount(min_length=2)], [TermCount(), TermShare()])
    }
    assert len(prints) == 4
    assert Searcher([Sum([TermCount()])]).fingerprint == Searcher([Sum([TermCount(boost=1.0)])]).fingerprint


class Listed(TermCount):
    """An engine whose index depends on components in a list.

    Args:
        inner: any components.
    """

    name = "listed"

    def __init__(self, inner: Sequence[BaseRetriever]) -> None:
        super().__init__()
        self.inner = inner

    def index_identity(self) -> Config:
        return super().index_identity() | {"inner": [one.index_identity() for one in self.inner]}


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ([TermCount(), TermShare(min_length=4)], r"\(inner\[1\]\.min_length: indexed with 3, now 4\)"),
        ([TermCount(min_length=2), TermShare()], r"inner\[0\]\.min_length: .*; inner\[1\]\.min_length: "),
        ([TermShare(min_length=3), TermCount()], r"\(inner: indexed with \["),
        ([TermCount()], r"\(inner: indexed with \["),
        ([], r"\(inner: indexed with \["),
    ],
)
def test_a_configuration_that_differs_inside_a_list_is_named_there(
    tmp_path: Path, inner: list[BaseRetriever], said: str
) -> None:
    Listed([TermCount(), TermShare(min_length=3)]).index(ITEMS, tmp_path)
    with pytest.raises(IndexMismatchError, match=said):
        Listed(inner).retrieve([["alpha"]], tmp_path, 3)


# labels


def test_labels_are_the_names_numbered_where_two_share_one_or_those_given() -> None:
    several = [TermCount(), TermShare(), TermCount(boost=2.0)]
    assert labelled(several, "here") == dict(zip(["terms", "share", "terms-2"], several, strict=True))
    assert labelled({"a": several[0]}, "here") == {"a": several[0]}


@pytest.mark.parametrize("wrong", [[], {}])
def test_no_retrievers_at_all_are_an_error_that_says_where(wrong: list[BaseRetriever]) -> None:
    with pytest.raises(ConfigurationError, match="here is empty; pass at least one"):
        labelled(wrong, "here")


@pytest.mark.parametrize("label", ["", "a.b", "a[0]"])
def test_a_label_that_would_be_mistaken_for_a_part_of_a_signal_is_an_error(label: str) -> None:
    with pytest.raises(ConfigurationError, match=r"here: .* cannot be a label"):
        labelled({label: TermCount()}, "here")
