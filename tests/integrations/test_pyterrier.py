"""In PyTerrier a searcher is a transformer, and PyTerrier's transformers retrieve and rerank for a searcher."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher, evaluate
from nlp_retrieval.integrations.pyterrier import PyTerrierReranker, PyTerrierRetriever, PyTerrierTransformer

from .conftest import CITIES, QUERY

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyterrier", "ignore:.*inplace keyword")

TOPICS = pd.DataFrame([["q1", QUERY], ["q2", "rain between mountains"]], columns=["qid", "query"])
QRELS = pd.DataFrame(
    [["q1", "oslo", 1], ["q1", "osaka", 2], ["q1", "rome", 1], ["q2", "bergen", 1], ["q2", "kyoto", 0]],
    columns=["qid", "docno", "label"],
)
MEASURES = ["nDCG@10", "AP", "RR", "R@2"]


class Longest(pt.Transformer):  # type: ignore[misc]
    """Ranks documents by how long their texts are: all of the collection, or those that it is given."""

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        if "docno" not in inp.columns:
            inp = inp.merge(pd.DataFrame({"docno": [c[0] for c in CITIES], "text": [c[2] for c in CITIES]}), how="cross")
        return pt.model.add_ranks(inp.assign(score=inp["text"].str.len().astype(float)))


def by_length(names: list[str]) -> list[str]:
    lengths = {name: len(content) for name, _, content, _ in CITIES}
    return sorted(names, key=lambda name: -lengths[name])


def test_an_experiment_gives_the_figures_of_evaluate(searcher: Searcher) -> None:
    measures = list(map(ir_measures.parse_measure, MEASURES))
    table = pt.Experiment([PyTerrierTransformer(searcher)], TOPICS, QRELS, measures, names=["bm25"])
    gold = {qid: dict(zip(rows["docno"], rows["label"], strict=True)) for qid, rows in QRELS.groupby("qid")}
    ours = evaluate(searcher.search(TOPICS, 1000), gold, MEASURES)
    for measure in MEASURES:
        assert table[measure][0] == pytest.approx(ours[measure], abs=1e-9)


def test_a_row_has_the_hit_its_rank_from_0_and_what_the_topic_had(searcher: Searcher) -> None:
    topics = TOPICS.assign(topic_type=["short", "long"])
    frame = PyTerrierTransformer(searcher, 2, where={"country": "Norway"}, text=True)(topics)
    first = searcher.search(QUERY, 2, where={"country": "Norway"})[0]
    rows = frame[frame["qid"] == "q1"]
    assert rows["docno"].tolist() == [hit.item.item_id for hit in first]
    assert np.allclose(rows["score"], [hit.score for hit in first])
    assert rows["rank"].tolist() == [0, 1]
    assert rows["text"].tolist() == [hit.item.content for hit in first]
    assert set(frame["topic_type"]) == {"short", "long"}
    assert PyTerrierTransformer(searcher)(TOPICS[:0]).empty


def test_a_transformer_retrieves_for_a_searcher(items: list[SearchableItem], tmp_path: Path) -> None:
    searcher = Searcher([PyTerrierRetriever.of(Longest())])
    searcher.index(items, tmp_path)
    found = searcher.search(["any", "thing"], 3)
    assert [[hit.item.item_id for hit in hits] for hits in found] == [by_length([c[0] for c in CITIES])[:3]] * 2
    assert [hit.item.item_id for hit in searcher.search("x", 9, where={"country": "Japan"})[0]] == by_length(["kyoto", "osaka"])


def test_a_transformer_reranks_for_a_searcher(items: list[SearchableItem], tmp_path: Path) -> None:
    searcher = Bm25Retriever() % 3 >> PyTerrierReranker.of(Longest())
    searcher.index(items, tmp_path)
    candidates = [hit.item.item_id for hit in Searcher.open(tmp_path).search(QUERY, 3)[0]]
    assert [hit.item.item_id for hit in searcher.search(QUERY, 3)[0]] == by_length(candidates)
