"""Searchers made of names, of settings and of what an index holds are those made by hand."""

from __future__ import annotations

import json

import pytest
import yaml

from core.engines import TermCount, documents
from nlp_retrieval import (
    Bm25Retriever,
    ChunkingLoader,
    ClauseSplit,
    FaissRetriever,
    HyDE,
    JsonlLoader,
    LanguageModel,
    LinkGraphRetriever,
    OverlapReranker,
    PgvectorRetriever,
    ReciprocalRankFusion,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
    WeightedSum,
)
from nlp_retrieval.core.components.component import with_held
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.errors import (
    ConfigurationError,
    IndexMissingError,
    ModelError,
    RetrievalWarning,
    SourceError,
    UntrustedError,
)
from nlp_retrieval.retrievers import Hyperlinks, TitleMentions

LM = {"name": "dspy", "model": "openai/small", "base_url": "http://127.0.0.1:1/v1"}
OWN_LM = LanguageModel("openai/small", base_url=LM["base_url"])
TEXTS = ["red fox", "blue whale", "red panda"]
TITLED = [
    SearchableItem(item_id="d0", content="A red animal.", metadata={"title": "Red Fox"}),
    SearchableItem(item_id="d1", content="A whale is no Red Fox.", metadata={"title": "Blue Whale"}),
]


@pytest.mark.parametrize(
    ("named", "by_hand"),
    [
        (Searcher(["bm25", "faiss"]), Searcher([Bm25Retriever(), FaissRetriever()])),
        (
            Searcher(
                {"words": {"name": "bm25", "k1": 1.2}, "vectors": {"name": "faiss", "encoder": "a/b"}},
                processor="clauses",
                fusion={"name": "rrf", "k": 7},
                reranker={"name": "overlap", "blend": "rank"},
            ),
            Searcher(
                {"words": Bm25Retriever(k1=1.2), "vectors": FaissRetriever(SentenceTransformerEncoder("a/b"))},
                processor=ClauseSplit(),
                fusion=ReciprocalRankFusion(k=7),
                reranker=OverlapReranker(blend="rank"),
            ),
        ),
        (
            LinkGraphRetriever(seeds=["bm25"], links=["hyperlinks", {"name": "title_mentions", "rarity": 0.5}]),
            LinkGraphRetriever(seeds=[Bm25Retriever()], links=[Hyperlinks(), TitleMentions(rarity=0.5)]),
        ),
        (HyDE(LM), HyDE(OWN_LM)),
        (ChunkingLoader({"loader": "jsonl", "path": "a.jsonl"}), ChunkingLoader(JsonlLoader("a.jsonl"))),
    ],
)
def test_parts_given_by_name_are_those_made_by_hand(named, by_hand):
    assert named == by_hand
    assert named.config == by_hand.config
    assert repr(named) == repr(by_hand)
    assert list(map(type, with_held(named))) == list(map(type, with_held(by_hand))), "its parts are known as parts"


SEARCHERS = [
    Searcher({"1e5": Bm25Retriever(k1=0.1 + 0.2), "no": "faiss"}, fusion=WeightedSum([0.3, 1 / 3]), depth="all"),
    Searcher([LinkGraphRetriever(seeds=["bm25", "faiss"])], scope="per_subquery", quota=3),
    Searcher({"a \\ \U0001f433": Bm25Retriever(), "b": Bm25Retriever(k1=2), "c": "faiss"}),
]


@pytest.mark.parametrize("searcher", SEARCHERS, ids=lambda one: f"{one.name}-{len(one.config['retrievers'])}")
def test_a_searcher_is_made_again_of_its_configuration(searcher, tmp_path):
    config = searcher.to_config()
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
    (tmp_path / "one.json").write_text(json.dumps(config), "utf-8")
    for source in (config, tmp_path / "one.yaml", str(tmp_path / "one.json")):
        made = type(searcher).from_config(source)
        assert made == searcher
        assert type(made) is type(searcher)
        assert made.fingerprint == searcher.fingerprint
    assert build("searchers", config) == searcher, "it is the form of a benchmark's configuration"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"retrievers": ["bm25"], "fusoin": "rrf"}, "config: searcher has no parameter 'fusoin'; did you mean 'fusion'"),
        ({"name": "trec_run", "path": "a.trec"}, "config: 'trec_run' is not a Searcher"),
    ],
)
def test_a_configuration_that_is_none_is_told(config, said):
    with pytest.raises(ConfigurationError) as caught:
        Searcher.from_config(config)
    assert said in str(caught.value)
    for path, where in (("nowhere.yaml", "no such file in '/"), ("/no/x.yaml", "file: the folder '/no' does not exist;")):
        with pytest.raises(SourceError, match=where):
            Searcher.from_config(path)


def test_a_secret_is_not_written_into_a_configuration():
    for retriever, setting in [
        (PgvectorRetriever(url="postgresql://me:correct-horse@host/db"), "url"),
        (_Keyed("correct-horse-battery"), "api_key"),
    ]:
        with pytest.raises(ConfigurationError, match=f"{setting} holds what looks like a secret, and is not written") as caught:
            Searcher([retriever]).to_config()
        assert "correct" not in str(caught.value)


class _Keyed(TermCount):
    name = "keyed_terms"

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key


# open


def test_a_class_opens_an_index_with_the_retrievers_that_it_holds(tmp_path):
    retrievers = [Bm25Retriever(stopwords=None, k1=1.5), LinkGraphRetriever(seeds=[Bm25Retriever()])]
    by_hand = Searcher(retrievers)
    by_hand.index(TITLED, tmp_path)
    opened = Searcher.open(tmp_path)
    assert opened == Searcher(retrievers), "and no mere parts"
    assert opened.search("red fox") == by_hand.search("red fox")
    again = Searcher.open(str(tmp_path), retrievers=["bm25"], reranker="overlap", depth=2)
    assert again == Searcher(["bm25"], reranker="overlap", depth=2)
    assert [hit.item.item_id for hit in again.search("whale")[0]] == ["d1"]


def test_an_index_that_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(IndexMissingError, match="there is no index at"):
        Searcher.open(tmp_path / "nowhere")
    Searcher(["bm25"]).index(documents(TEXTS), tmp_path)
    with pytest.raises(IndexMissingError, match="holds no index of 'link_graph'"):
        Searcher.open(tmp_path, retrievers=[LinkGraphRetriever(seeds=["bm25"])])
    with pytest.raises(TypeError, match="depht"):
        Searcher.open(tmp_path, depht=3)


def test_an_index_of_a_stranger_loads_no_model_from_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    searcher = Searcher([TermCount()])
    searcher.index(documents(TEXTS), tmp_path / "index")
    from nlp_retrieval.core.index.generation import publish_manifest, read_manifest

    manifest = read_manifest(tmp_path / "index")
    assert manifest is not None
    config = {"name": "faiss", "encoder": "./models/theirs"}
    theirs = manifest.retrievers[0].model_copy(update={"config": config})
    publish_manifest(tmp_path / "index", manifest, manifest.corpus, [theirs])
    with pytest.raises(UntrustedError, match=r"read the model at '\./models/theirs'"):
        Searcher.open(tmp_path / "index")
    Searcher([TermCount(), Bm25Retriever()]).index(documents(TEXTS), tmp_path / "index", replace=True)
    manifest = read_manifest(tmp_path / "index")
    assert manifest is not None
    both = [
        record if record.config["name"] == TermCount.name else record.model_copy(update={"config": config})
        for record in manifest.retrievers
    ]
    publish_manifest(tmp_path / "index", manifest, manifest.corpus, both)
    searcher.open(tmp_path / "index")
    with pytest.raises(UntrustedError, match="in Python: trust=True"):
        searcher.delete(["0"])
    for change in (lambda: searcher.delete(["0"], trust=True), lambda: searcher.compact(trust=True)):
        with pytest.warns(RetrievalWarning, match="is trusted"), pytest.raises(ModelError, match="no model folder"):
            change()
