"""The manifest of an index or a run decides settings of a search, and nothing else: no code, no file, no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import refused, run

from nlp_retrieval import Bm25Retriever, FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.core.components.component import parameters_of
from nlp_retrieval.core.components.registry import component_class, kinds, names
from nlp_retrieval.core.search.base_searcher import retrievers_of
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import ModelError, UntrustedError

from .planting import write_forged
from .test_remote_code import own_architecture, planted

ITEMS = [SearchableItem(item_id=f"i{number}", content=f"red fox and whale {number}") for number in range(5)]


def test_no_parameter_of_any_component_that_is_registered_leads_anywhere(tmp_path: Path) -> None:
    """Of all kinds and names that the registry has, so that none can be forgotten."""
    outside = tmp_path / "outside"
    planted(outside, own_architecture, head=False)
    (outside / "secret.jsonl").write_text('{"_id": "s", "text": "secret"}\n')
    done = subprocess.run(
        [sys.executable, "-m", "attacks.manifest_trials", str(outside)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["outcomes"]["UntrustedError"] > 200
    assert found["outcomes"]["used"] > 20, "harmless settings are obeyed"


def test_an_index_that_ships_a_model_with_code_runs_it_for_nobody_who_has_not_said_so(tmp_path: Path) -> None:
    index = tmp_path / "index"
    model, ran = planted(tmp_path, own_architecture, head=False)
    encoder = SentenceTransformerEncoder(str(model), trust_remote_code=True)
    Searcher([FaissRetriever(encoder), Bm25Retriever()]).index(ITEMS, index)
    assert ran.is_dir(), "the plant is a real one"
    ran.rmdir()
    corpus = tmp_path / "more.jsonl"
    corpus.write_text('{"id": "n", "text": "new"}\n')
    for words in (["search", str(index), "fox"], ["add", str(corpus), str(index)]):
        done = run(*words)
        refused(done, 2, "run the Python code that comes with the model", f"read the model at {str(model)!r}", "--trust")
        assert not ran.exists(), words
    with pytest.raises(UntrustedError, match=r"faiss\.encoder\.trust_remote_code: run the Python code"):
        Searcher([Bm25Retriever()]).open(index).add([SearchableItem(item_id="n", content="new")])
    assert not ran.exists()
    done = run("search", str(index), "fox", "--trust")
    assert done.returncode == 0, done.stderr
    assert "is trusted: faiss.encoder.model: read the model at" in done.stderr
    assert ran.is_dir()


def test_a_model_that_a_manifest_names_is_taken_from_the_cache_and_from_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of that name in the working directory is not a model of the cache."""
    model, _ = planted(tmp_path, own_architecture, head=False)
    (tmp_path / "organisation").mkdir()
    model.rename(tmp_path / "organisation" / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    encoder = SentenceTransformerEncoder("organisation/model", trust_remote_code=True)
    Searcher([FaissRetriever(encoder)]).index(ITEMS, tmp_path / "index")
    manifest = tmp_path / "index" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["retrievers"][0]["config"]["encoder"]["trust_remote_code"]
    write_forged(tmp_path / "index", content)
    with pytest.raises(ModelError, match="may name only models in this machine's cache"):
        retrievers_of(tmp_path / "index")


def test_every_component_rules_on_all_its_parameters() -> None:
    """A new parameter is refused until somebody has thought about it; the rule of a removed one goes with it."""
    for kind in kinds():
        for name in names(kind):
            cls = component_class(kind, name)
            assert sorted(cls.manifest_may_set) == sorted(parameters_of(cls)), name
