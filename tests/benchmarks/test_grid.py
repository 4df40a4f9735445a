"""A grid is the product of its axes, less what skips leave out, each with a name of its own."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hashed_words import HashedWords
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import (
    Benchmarker,
    Bm25Retriever,
    FaissRetriever,
    OverlapReranker,
    ReciprocalRankFusion,
    Searcher,
    WeightedSum,
)
from nlp_retrieval.benchmarks import grid as grid_room
from nlp_retrieval.benchmarks.grid import build_grid, labels_of
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning


def expand_grid(*settings: Any, **options: Any) -> dict[str, Any]:
    return grid_room.expand_grid(*settings, **options).searchers


def test_configurations_are_named_by_the_values_of_their_axes() -> None:
    both, alone = {"lexical": {"name": "bm25"}, "dense": {"name": "faiss"}}, {"lexical": {"name": "bm25"}}
    vary = {
        "retrievers": {"both": both, "lexical only": alone},
        "fusion": [{"name": "rrf", "k": 10}, {"name": "rrf", "k": 60}],
        "retrievers.lexical.k1": [0.9],
        "reranker": [None, {"name": "overlap"}],
    }
    expanded = expand_grid({"retrievers": both, "depth": 100}, vary, [{"retrievers": "lexical only", "fusion": "rrf k=60"}])
    rerankers = ("reranker=none", "overlap")
    pairs = [("both", 10), ("both", 60), ("lexical only", 10)]
    assert list(expanded) == [f"{some}, rrf k={k}, k1=0.9, {reranker}" for some, k in pairs for reranker in rerankers]
    assert expanded["lexical only, rrf k=10, k1=0.9, overlap"] == {
        "retrievers": {"lexical": {"name": "bm25", "k1": 0.9}}, "depth": 100, "fusion": {"name": "rrf", "k": 10},
        "reranker": {"name": "overlap"},
    }  # fmt: skip


LABELS = ("a", "b", "c", "d")


@st.composite
def grids(draw: st.DrawFn) -> dict[str, Any]:
    """Axes of a few values each, and skips."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    # values of different axes may have one label: their names then need the axis
    values = {f"axis{place}": list(LABELS[place % 2 :][:size]) for place, size in enumerate(sizes)}
    paths = list(values)

    def terms(among: list[str]) -> dict[str, list[str]]:
        chosen = draw(st.lists(st.sampled_from(among), min_size=1, max_size=2, unique=True))
        return {path: draw(st.lists(st.sampled_from(values[path]), min_size=1, unique=True)) for path in chosen}

    skip = [terms(paths) for _ in range(draw(st.integers(0, 2)))]
    return {"searcher": {"fixed": 1}, "vary": values, "skip": skip}


def matches(varied: dict[str, str], terms: dict[str, list[str]]) -> bool:
    return all(path in varied and varied[path] in wanted for path, wanted in terms.items())


@given(grids())
def test_expansion_is_the_product_filtered_by_hand(grid: dict[str, Any]) -> None:
    every = [dict(zip(grid["vary"], chosen, strict=True)) for chosen in itertools.product(*grid["vary"].values())]
    left = [varied for varied in every if not any(matches(varied, terms) for terms in grid["skip"])]
    if not left:
        with pytest.raises(ConfigurationError, match="leaves no combination"):
            expand_grid(**grid)
        return
    expanded = expand_grid(**grid)
    assert list(expanded.values()) == [{"fixed": 1} | varied for varied in left]


@pytest.mark.parametrize(
    ("searcher", "path", "expected"),
    [
        ({"fusion": "rrf"}, "fusion.k", {"fusion": {"name": "rrf", "k": 7}}),
        ({"fusion": ReciprocalRankFusion(60)}, "fusion.k", {"fusion": ReciprocalRankFusion(60).config | {"k": 7}}),
        ({}, "depth", {"depth": 7}),
        ({"retrievers": ["bm25", {"name": "faiss"}]}, "retrievers.faiss.merge",
         {"retrievers": ["bm25", {"name": "faiss", "merge": 7}]}),
        ({"retrievers": ["bm25", "bm25"]}, "retrievers.1.k1", {"retrievers": ["bm25", {"name": "bm25", "k1": 7}]}),
        ({"retrievers": ({"name": "bm25"},)}, "retrievers.bm25", {"retrievers": [7]}),
        ({"retrievers": {"a": {"name": "faiss", "encoder": "org/model"}}}, "retrievers.a.encoder.batch_size",
         {"retrievers": {"a": {"name": "faiss", "encoder": {"name": "org/model", "batch_size": 7}}}}),
    ],
)  # fmt: skip
def test_a_path_leads_through_mappings_lists_and_components(searcher: dict, path: str, expected: dict) -> None:  # type: ignore[type-arg]
    assert list(expand_grid(searcher, {path: [7]}).values()) == [expected]


def test_axes_that_replace_the_components_of_a_list_are_combined() -> None:
    vary = {"retrievers.bm25": ["bm25", "splade"], "retrievers.colbert": ["colbert", "faiss"]}
    expanded = expand_grid({"retrievers": ["bm25", "colbert"]}, vary)
    every = itertools.product(*vary.values())
    assert [settings["retrievers"] for settings in expanded.values()] == [list(chosen) for chosen in every]


@pytest.mark.parametrize(
    ("searcher", "path", "said"),
    [
        ({}, "fusion.k", "the searcher has no 'fusion'"),
        ({"fusion": None}, "fusion.k", "fusion is null, which has no 'k'"),
        ({"retrievers": {"lexical": "bm25"}}, "retrievers.lexcal.k1", "retrievers has no 'lexcal'; did you mean 'lexical'"),
        ({"retrievers": ["bm25"]}, "retrievers.1.k1", "retrievers has no '1'; .*, or a number from 0"),
        ({"retrievers": ["bm25"] * 2}, "retrievers.bm25.k1", "retrievers has several entries called .bm25.; write a number"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_that_names_it(searcher: dict, path: str, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ConfigurationError, match=rf"^grid\.vary\.{path.replace('.', '[.]')}: {said}"):
        expand_grid(searcher, {path: [7]})


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([10, 0.5, 1e-6], ["10", "0.5", "1e-06"]),
        (["rrf", {"name": "rrf", "k": 10}, "weighted_sum"], ["rrf", "rrf k=10", "weighted_sum"]),
        ([{"name": "f", "a": 1, "b": 2}, {"name": "f", "a": 1, "b": 3}, {"name": "f", "a": 1}], ["f b=2", "f b=3", "f"]),
        ([ReciprocalRankFusion(k=10), ReciprocalRankFusion(k=60)], ["rrf k=10", "rrf k=60"]),
        ([{"name": "w", "e": {"name": "m"}}, {"name": "w", "e": {"name": "n"}}], ["w e=m", "w e=n"]),
        ([[{"name": "f", "a": 1}, "g"], [{"name": "f", "a": 2}, "g"]], ["f a=1+g", "f a=2+g"]),
        ([{"a": {"name": "bm25", "k1": 1}}, {"a": {"name": "bm25", "k1": 2}}], ["bm25 k1=1", "bm25 k1=2"]),
    ],
)  # fmt: skip
def test_a_value_is_called_what_tells_it_from_the_others(values: list[Any], labels: list[str]) -> None:
    assert labels_of(values) == labels


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"vary": None}, r"grid\.vary: expected axes by their paths.*found None"),
        ({"vary": {"a": 5}}, r"grid\.vary\.a: expected a list of values, even of one, or values by name, found 5"),
        ({"vary": {"a": {"name": "rrf", "k": 10}}}, r"grid\.vary\.a: expected a list of values, even of one, .*'name': 'rrf'"),
        ({"vary": {"a": [1, 2, 1.0]}}, r"grid\.vary\.a: the value 1 is there twice"),
        ({"vary": {"a": [None, "none"]}}, r"grid\.vary\.a: two values would be called 'none'; give them names"),
        ({"skip": "fusion"}, r"grid\.skip: expected a list of combinations"),
        ({"skip": [{"fusion": "rrf"}, {"fsion": "rrf"}]}, r"grid\.skip\[1\]: there is no axis 'fsion'; did you mean 'fusion'"),
        ({"skip": [{"fusion": "rff"}]}, r"grid\.skip\[0\]\.fusion: 'fusion' has no value called 'rff'"),
        ({"skip": [{"fusion": ["rrf", "raw"]}]}, r"grid\.skip: leaves no combination"),
        ({"vary": {"retrievers.bm25.k1": [0.9, 1.2], "retrievers.0.k1": [0.5, 0.7]}},
         r"grid\.vary\.retrievers\.0\.k1: sets the same value as retrievers\.bm25\.k1; make them one axis"),
        ({"vary": {"retrievers.0.k1": [0.9], "retrievers.bm25.k1": [0.9]}},
         r"grid\.vary\.retrievers\.bm25\.k1: sets the same value as retrievers\.0\.k1; make them one axis"),
        ({"vary": {f"axis{place}": list(range(22)) for place in range(3)}},
         r"grid: 10,648 combinations are more than 10,000; vary less"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(changed: dict[str, Any], said: str) -> None:
    grid = {"searcher": {"retrievers": ["bm25"]}, "vary": {"fusion": ["rrf", "raw"]}} | changed
    with pytest.raises(ConfigurationError, match=said):
        expand_grid(**grid)


def test_skips_may_name_numbers_truth_values_null_and_labels() -> None:
    vary: dict[str, Any] = {"a": [None, 10, True, 0.5, "text"], "b": [1, 2]}
    names = list(expand_grid({}, vary))
    for number, wanted in enumerate([None, 10.0, True, 0.5, "text"]):
        left = list(expand_grid({}, vary, skip=[{"a": wanted}]))
        assert left == [name for place, name in enumerate(names) if place // 2 != number]
    assert list(expand_grid({}, {"a": vary["a"]}, skip=[{"a": ["none", "10"]}, {"a": True}])) == ["a=0.5", "text"]


def test_a_grid_builds_what_python_builds_and_what_comes_out_equal_once() -> None:
    with pytest.warns(RetrievalWarning, match=r"4 configurations equal an earlier one.*'rrf, k1=0\.9, reranker=none'"):
        grid = build_grid(
            {"retrievers": ["bm25", FaissRetriever(HashedWords())]},
            {"fusion": [None, "rrf", WeightedSum()], "retrievers.bm25.k1": [0.9, 1.6], "reranker": [None, OverlapReranker()]},
        )
    dense = FaissRetriever(HashedWords())
    assert grid.searchers == {
        f"{label}, k1={k1}, {reranked}": Searcher(
            [Bm25Retriever(k1=k1), dense], fusion=fusion, reranker=OverlapReranker() if reranked == "overlap" else None
        )
        for (label, fusion), k1, reranked in itertools.product(
            (("fusion=none", ReciprocalRankFusion()), ("weighted_sum", WeightedSum())), (0.9, 1.6), ("reranker=none", "overlap")
        )
    }
    assert grid.values.keys() == grid.searchers.keys(), "rrf is the fusion where none is given"


def test_a_searcher_is_the_base_of_a_grid_as_its_settings_are() -> None:
    bm25, overlap = Bm25Retriever(), OverlapReranker()
    searcher = bm25 % 30 + FaissRetriever(HashedWords()) >> overlap % 10
    vary = {"retrievers.bm25.k1": [0.9, 1.6], "depth.overlap": [5, "all"], "reranker": [overlap, [overlap, overlap]]}
    grid = build_grid(searcher, vary)
    assert grid == build_grid(searcher._arguments, vary)
    assert len(grid.searchers) == 8
    assert grid.searchers["k1=1.6, overlap=5, overlap"] == (
        Bm25Retriever(k1=1.6) % 30 + FaissRetriever(HashedWords()) >> overlap % 5
    )
    assert Benchmarker.grid(searcher, vary) == grid.searchers
    with pytest.raises(ConfigurationError, match="expected the settings of a searcher"):
        build_grid(bm25, vary)  # type: ignore[arg-type]
