"""A configuration file builds what Python builds by hand, and says what is wrong with it, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    HoverLoader,
    PyseriniRetriever,
    ReciprocalRankFusion,
    Searcher,
    SentenceTransformerEncoder,
    WandbSettings,
    WeightedSum,
)
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.errors import ConfigurationError, InputError

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

DESIGN = """
corpus: {{loader: beir, path: {folder}/corpus.jsonl}}
queries: {{loader: hover, path: {folder}/hover_dev_subset.json, hops: [3]}}
k: [5, 10, 21]
baseline: bm25
index: {folder}/indexes/wiki
output: {folder}/runs/wiki
wandb: {{project: hover, mode: offline}}
searchers:
  bm25:   {{retrievers: [{{name: pyserini, k1: 0.9, b: 0.4}}]}}
  dense:  {{retrievers: [{{name: faiss, encoder: sentence-transformers/all-MiniLM-L6-v2}}]}}
  hybrid:
    retrievers: [{{name: pyserini, k1: 0.9, b: 0.4}}, {{name: faiss, encoder: sentence-transformers/all-MiniLM-L6-v2}}]
    fusion: {{name: rrf, k: 60}}
"""


@pytest.fixture
def design(tmp_path: Path) -> dict[str, Any]:
    """The settings of section 6 of the design, to be changed in one place."""
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "a", "title": "T", "text": "a fox"}) + "\n")
    claim = {"uid": "c", "claim": "a fox", "supporting_facts": [["T", 0]], "label": "SUPPORTED", "num_hops": 3, "hpqa_id": "h"}
    (tmp_path / "hover_dev_subset.json").write_text(json.dumps([claim]))
    loaded: dict[str, Any] = yaml.safe_load(DESIGN.format(folder=tmp_path))
    return loaded


def written(folder: Path, settings: object) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(settings if isinstance(settings, str) else yaml.safe_dump(settings, sort_keys=False))
    return path


def test_the_file_of_the_design_builds_what_python_builds(tmp_path: Path) -> None:
    config = read_benchmark_config(written(tmp_path, DESIGN.format(folder=tmp_path)))
    lucene, dense = PyseriniRetriever(k1=0.9, b=0.4), FaissRetriever(MODEL)
    assert config.searchers == {
        "bm25": Searcher([lucene]),
        "dense": Searcher([dense]),
        "hybrid": Searcher([lucene, dense], fusion=ReciprocalRankFusion(k=60)),
    }
    assert config.searchers["dense"].config == Searcher([FaissRetriever(SentenceTransformerEncoder(MODEL))]).config
    assert config.loader == BeirLoader(f"{tmp_path}/corpus.jsonl")
    assert config.query_loader == HoverLoader(f"{tmp_path}/hover_dev_subset.json", hops=[3])
    assert (config.index_path, config.output) == (tmp_path / "indexes" / "wiki", tmp_path / "runs" / "wiki")
    assert config.wandb == WandbSettings("hover", "offline")
    assert (config.k_values, config.baseline, config.seed) == ([5, 10, 21], "bm25", 0)


GRID = {
    "searcher": {"retrievers": {"lexical": {"name": "bm25"}, "dense": {"name": "faiss"}}, "depth": 50},
    "vary": {"fusion": ["rrf", "weighted_sum"], "retrievers.lexical.k1": [0.9, 1.6]},
}
GRID_NAMES = ["rrf, k1=0.9", "rrf, k1=1.6", "weighted_sum, k1=0.9", "weighted_sum, k1=1.6"]


def test_the_configurations_of_a_grid_stand_behind_the_searchers_that_are_written_out(
    tmp_path: Path, design: dict[str, Any]
) -> None:
    config = read_benchmark_config(written(tmp_path, design | {"grid": GRID}))
    assert list(config.searchers) == ["bm25", "dense", "hybrid", *GRID_NAMES]
    assert config.searchers["weighted_sum, k1=1.6"] == Searcher(
        {"lexical": Bm25Retriever(k1=1.6), "dense": FaissRetriever()}, fusion=WeightedSum(), depth=50
    )
    assert config.grid is not None
    assert config.settings().baseline == "bm25"


def changed(design: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """The settings with the value at ``a.b.0.c`` replaced or added, or taken out where it is None."""
    target = design
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in path:
        target = target[part]
    if value is None:
        del target[last]
    else:
        target[last] = value
    return design


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("queries", None, r"sweep\.yaml: 'queries' missing"),
        ("corpus.loader", "hover", "corpus: 'hover' is not a BaseLoader"),
        ("k", [5, "10"], r"sweep\.yaml: k: a cutoff must be an integer of at least 1, not '10'"),
        ("searchers", 5, r"sweep\.yaml: searchers: expected searchers by name, such as .*, or a list, found 5"),
        ("wandb.projct", "x", r"wandb: unknown key 'projct'; did you mean 'project'"),
        ("mlflow", {"uri": 5}, r"mlflow: uri: Input should be a valid string"),
        ("searchers.hybrid.retrievers.1.encodr", "x",
         r"searchers\.hybrid\.retrievers\[1\]: faiss has no parameter 'encodr'; did you mean 'encoder'"),
        ("baseline", "bm52", "no searcher 'bm52'; did you mean 'bm25'"),
        ("latency_queries", 0, "latency_queries"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place_and_the_nearest_valid_name(
    tmp_path: Path, design: dict[str, Any], place: str, value: object, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read_benchmark_config(written(tmp_path, changed(design, place, value))).settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", r"sweep\.yaml, line 3: 'a' appears twice"),
        ("", "holds nothing, not a mapping"),
        ("corpus: {name: os.system}\nqueries: x\nindex: i\nsearchers: {a: {}}", "no loader called 'os.system'|searchers.a"),
    ],
)
def test_what_is_no_configuration_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_benchmark_config(written(tmp_path, text))
