"""Two runs that differ in one parameter differ in one value of what is logged of them; each setting is there once."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker
from hashed_words import HashedWords

from nlp_retrieval import (
    Bm25Retriever,
    CombSUM,
    FaissRetriever,
    LinkGraphRetriever,
    OverlapReranker,
    ReciprocalRankFusion,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.benchmarks.grid import build_grid, with_grid
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.reports.logged_run import configs_of, dataset_of, tags_of
from nlp_retrieval.reports.view import view_of
from reports.report_data import configuration, measures_like, report_of


def configs(**searchers: BaseSearcher) -> dict[str, Config]:
    """The flat configurations of searchers, as if they had been run."""
    made = [configuration(name, measures_like(0.4)) for name in searchers]
    for one, searcher in zip(made, searchers.values(), strict=True):
        object.__setattr__(one, "config", searcher.config)
    return configs_of(view_of(report_of(*made)))


def differences(one: Config, other: Config) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key, None) != other.get(key, None)}


def faiss(model: str, **changed: object) -> FaissRetriever:
    return FaissRetriever(SentenceTransformerEncoder(model, **changed))  # type: ignore[arg-type]


LEXICAL = Bm25Retriever()


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        (Searcher([LEXICAL]), Searcher([Bm25Retriever(k1=1.2)]), "bm25/k1"),
        (Searcher([LEXICAL], depth=30), Searcher([LEXICAL], depth=40), "depth"),
        (Searcher([LEXICAL]), Searcher([LEXICAL], depth=40), "depth"),
        (Searcher([faiss("a/mini")]), Searcher([faiss("a/large")]), "encoder"),
        (Searcher([faiss("a/mini")]), Searcher([faiss("b/mini")]), "encoder"),
        (Searcher([faiss("a")]), Searcher([faiss("a", batch_size=8)]), "faiss/encoder/batch_size"),
        (Searcher([LEXICAL, Bm25Retriever(b=0.1)]), Searcher([LEXICAL, Bm25Retriever(b=0.2)]), "bm25-2/b"),
        (Searcher({"lex": LEXICAL}), Searcher({"lex": Bm25Retriever(k1=2.0)}), "lex/k1"),
        (
            Searcher([LEXICAL], reranker=OverlapReranker()),
            Searcher([LEXICAL], reranker=OverlapReranker(blend="replace")),
            "reranker/blend",
        ),
        (
            Searcher([LEXICAL, faiss("a")], fusion=ReciprocalRankFusion(k=10)),
            Searcher([LEXICAL, faiss("a")], fusion=ReciprocalRankFusion(k=60)),
            "fusion/k",
        ),
        (
            Searcher([LinkGraphRetriever(seeds=[LEXICAL])]),
            Searcher([LinkGraphRetriever(seeds=[Bm25Retriever(k1=1.2)])]),
            "link_graph/seeds/bm25/k1",
        ),
    ],
)
def test_one_other_parameter_is_one_other_value(one: Searcher, other: Searcher, key: str) -> None:
    found = configs(one=one, other=other)
    assert differences(found["one"], found["other"]) == {key}


def test_parts_are_told_by_short_names_that_are_columns_and_tags() -> None:
    hybrid = Searcher([LEXICAL, faiss("x/all-mini"), LinkGraphRetriever(seeds=[LEXICAL])], reranker=OverlapReranker())
    found = configs(hybrid=hybrid, alone=Searcher([LEXICAL]))
    told = {key: found["hybrid"][key] for key in ("retrievers", "encoder", "links", "fusion", "reranker", "processor")}
    assert told == {
        "retrievers": "bm25+faiss+link_graph",
        "encoder": "all-mini",
        "links": "title_mentions+shared_entities",
        "fusion": "rrf",
        "reranker": "overlap",
        "processor": "none",
    }
    assert tags_of(found["hybrid"]) == [
        "bm25", "faiss", "link_graph", "all-mini", "title_mentions", "shared_entities", "rrf", "overlap",
    ]  # fmt: skip
    assert tags_of(found["alone"], baseline=True) == ["bm25", "baseline"]


def test_every_parameter_that_is_not_null_is_there_under_its_place() -> None:
    found = configs(one=Searcher([LEXICAL, FaissRetriever(HashedWords(dimension=8))], fusion=CombSUM()))["one"]
    for label, retriever in (("bm25", LEXICAL), ("faiss", FaissRetriever(HashedWords(dimension=8)))):
        for key, value in retriever.config.items():
            if key not in ("name", "encoder") and value is not None:
                inner = value if isinstance(value, dict) else {"name": value}
                own = {f"{label}/{key}" if part == "name" else f"{label}/{key}/{part}": each for part, each in inner.items()}
                assert own.items() <= found.items()
    assert found["faiss/encoder/dimension"] == 8
    assert all(isinstance(value, str | bool | int | float | list) for value in found.values())


def of_grid(vary: dict[str, object], folder: Path) -> dict[str, Config]:
    """The flat configurations of a grid that was run, beside a searcher that is not of it."""
    grid = build_grid({"retrievers": [Bm25Retriever(), FaissRetriever(HashedWords())]}, vary)
    searchers = {"alone": Searcher([Bm25Retriever(k1=0.5)])} | dict(grid.searchers)
    run = with_grid(benchmarker(folder / "index", searchers=searchers, k_values=[3]).run(), grid)
    return configs_of(view_of(run.report))


def test_an_axis_of_a_grid_stands_under_grid_and_nowhere_else(tmp_path: Path) -> None:
    found = of_grid({"retrievers.bm25.k1": [0.9, 1.2], "fusion": [CombSUM(), ReciprocalRankFusion(k=7)]}, tmp_path)
    assert found["alone"]["bm25/k1"] == 0.5
    assert not [key for key in found["alone"] if key.startswith("grid/")]
    of_names = {name: config for name, config in found.items() if name != "alone"}
    assert {(one["grid/k1"], one["grid/fusion"]) for one in of_names.values()} == {
        (k1, fusion) for k1 in (0.9, 1.2) for fusion in ("combsum", "rrf")
    }
    for name, config in of_names.items():
        assert "bm25/k1" not in config
        assert "fusion" not in config
        for other_name, other in of_names.items():
            axes = {axis for axis in ("grid/k1", "grid/fusion") if config[axis] != other[axis]}
            assert differences(config, other) == axes, (name, other_name)
    assert "rrf" in tags_of(next(one for one in of_names.values() if one["grid/fusion"] == "rrf"))


def test_two_axes_of_one_name_are_told_apart_and_a_model_is_one_axis(tmp_path: Path) -> None:
    found = of_grid(
        {"retrievers.faiss.encoder": [HashedWords(8), HashedWords(16)], "retrievers.bm25.merge": ["max", "rrf"],
         "retrievers.faiss.merge": ["max", "rrf"]},
        tmp_path,
    )  # fmt: skip
    one = next(config for name, config in found.items() if name != "alone")
    assert {key for key in one if key.startswith("grid/")} == {"grid/encoder", "grid/bm25/merge", "grid/faiss/merge"}
    assert (one["encoder"], one["faiss/encoder/seed"]) == ("hashed-words", 0)
    assert "faiss/encoder/dimension" not in one
    assert one["grid/encoder"] == "hashed-words dimension=8"


@pytest.mark.parametrize(
    ("loader", "name"),
    [
        ({"name": "beir", "path": "../data/scifact"}, "scifact"),
        ({"name": "beir", "path": "/data/wiki/corpus.jsonl"}, "wiki"),
        ({"name": "jsonl", "path": "papers.jsonl.gz"}, "papers"),
        ({"name": "jsonl", "path": "corpus.jsonl"}, ""),
        ({"name": "chunker", "loader": {"name": "jsonl", "path": "laws/items.jsonl"}}, "laws"),
        ({"name": "ir_datasets", "dataset": "beir/nfcorpus/test"}, "nfcorpus"),
        ({"name": "database", "url": "sqlite:///shop.db", "table": "products"}, "products"),
        ({"name": "in-memory"}, ""),
        (None, ""),
    ],
)
def test_a_data_set_is_called_by_what_its_path_says(loader: Config | None, name: str) -> None:
    assert dataset_of({"corpus": {"loader": loader, "fingerprint": "f", "items": 3}}) == name


def test_what_looks_like_a_secret_is_hidden_however_deep_it_lies() -> None:
    class Tokens(HashedWords):
        """As its parent.

        Args:
            token: is used for nothing.
        """

        name = "with-token"

        def __init__(self, token: str = "") -> None:
            super().__init__()
            self.token = token

    found = configs(one=Searcher([FaissRetriever(Tokens("super secret words"))]))
    assert found["one"]["faiss/encoder/token"] == "***"
