"""Queries by numpy against sentence-transformers: the same vectors, the same hits, and no other kind of model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nlp_retrieval.encoders.sentence_transformer as room
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.bert import NumpyBert, open_bert
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from tests.encoders.test_sentence_transformer import NAME, TEXTS, carried_folder, with_model_files

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ROUNDING = 1e-6
DEMO = Path(__file__).parents[2] / "nlp_retrieval" / "demo"
ODD = [
    *TEXTS,
    "[SEP] in a text [MASK]",
    "a\x00b\ufffdc\u200bd",
    "naïve İstanbul ﬁ ½",
    "x" * 120,
    "who " * 240,
    " \t\n",
    "don't-stop...now!?",
]


@pytest.fixture(scope="module")
def torch_model() -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(carried_folder()), device="cpu")


@pytest.fixture(scope="module")
def passages() -> list[str]:
    lines = (DEMO / "corpus.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"][:200] for line in lines[:60]]


@pytest.fixture(scope="module")
def claims() -> list[str]:
    return [claim["claim"] for claim in json.loads((DEMO / "claims.json").read_text("utf-8"))][:50]


def bert_of(folder: Path) -> NumpyBert:
    model = open_bert(folder, None)
    assert model is not None
    return model


def by_torch(model: SentenceTransformer, texts: list[str]) -> Vectors:
    return np.asarray(model.encode(texts, show_progress_bar=False), np.float32)


def test_vectors_and_hits_are_those_of_torch(torch_model: SentenceTransformer, passages: list[str], claims: list[str]) -> None:
    texts = [*claims, *passages, *ODD]
    expected = by_torch(torch_model, texts)
    computed = bert_of(carried_folder()).encode(texts)

    assert np.abs(computed - expected).max() < ROUNDING

    collection = expected[len(claims) : len(claims) + len(passages)].astype(np.float64)
    hits = [np.argsort(-(queries.astype(np.float64) @ collection.T), kind="stable")[:, :10] for queries in (computed, expected)]
    assert (hits[0][: len(claims)] == hits[1][: len(claims)]).all()


def test_other_models_of_the_kind_are_opened_as_sentence_transformers_saves_them(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for pooling, lower, scaled in [("cls", True, True), ("mean", False, False)]:
        with subtests.test(pooling=pooling, lower=lower, scaled=scaled):
            tmp_path = tmp_path_factory.mktemp("case")
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.models import Normalize, Pooling, Transformer
            from transformers import BertConfig, BertModel, BertTokenizer

            words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Who", "who", "wrote", "the", "novel", "##s", "s", ".", "é"]
            (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
            config = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
            BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=32, **config)).save_pretrained(
                tmp_path / "bert"
            )
            BertTokenizer(str(tmp_path / "vocab.txt"), do_lower_case=lower, model_max_length=32).save_pretrained(
                tmp_path / "bert"
            )
            transformer = Transformer(str(tmp_path / "bert"))
            modules = [transformer, Pooling(24, pooling_mode=pooling), *([Normalize()] if scaled else [])]
            model = SentenceTransformer(modules=modules, device="cpu")
            model.save_pretrained(str(tmp_path / "model"))
            texts = ["Who wrote the novels?", "who wrote THE novel.", "", "the " * 50, "é É e"]

            assert np.abs(bert_of(tmp_path / "model").encode(texts) - by_torch(model, texts)).max() < ROUNDING


def changed(name: str, **entries: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / name
        file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | entries), "utf-8")

    return change


def test_models_with_anything_unknown_are_left_to_torch(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for change in [
        changed("config.json", hidden_act="relu"),
        changed("config.json", some_new_setting=1),
        changed("config.json", num_hidden_layers=5),
        changed("sentence_bert_config.json", max_seq_length=513),
        changed("tokenizer_config.json", truncation_side="left"),
        changed("tokenizer.json", pre_tokenizer={"type": "Whitespace"}),
        changed("1_Pooling/config.json", pooling_mode_max_tokens=True),
        changed("config_sentence_transformers.json", truncate_dim=64),
        lambda folder: (folder / "modules.json").write_text("[]"),
    ]:
        with subtests.test(change=change):
            tmp_path = tmp_path_factory.mktemp("case")
            folder = with_model_files(tmp_path / "model")
            assert open_bert(folder, None) is not None
            change(folder)
            assert open_bert(folder, None) is None


SCRIPT = """
import json, sys
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder

vectors = SentenceTransformerEncoder(query_prompt="query: ", device="cpu").encode_queries(json.loads(sys.argv[1]))
print(json.dumps(["torch" in sys.modules, vectors.tolist()]))
"""


def test_a_new_process_encodes_queries_without_torch_to_the_same_vectors() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(ODD)], capture_output=True, text=True, check=True)
    imported, vectors = json.loads(done.stdout)
    expected = SentenceTransformerEncoder(NAME, query_prompt="query: ", device="cpu").encode_queries(ODD)

    assert not imported
    assert np.abs(np.array(vectors, np.float32) - expected).max() < ROUNDING


def test_queries_are_in_float32_where_passages_are_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "resolved_precision", lambda precision, device: "bfloat16" if precision == "auto" else precision)
    whole = SentenceTransformerEncoder(NAME, precision="float32", device="cpu")
    encoder = SentenceTransformerEncoder(NAME, device="cpu")

    assert np.array_equal(encoder.encode_queries(TEXTS), whole.encode_queries(TEXTS))
    assert encoder.used_precision == "bfloat16"
    assert not np.array_equal(encoder.encode_passages(TEXTS), whole.encode_passages(TEXTS))
