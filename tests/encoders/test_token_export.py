"""Late interaction by ONNX gives the vectors that torch gives, of queries filled up with mask tokens too, in any batch."""

from __future__ import annotations

import json
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from colbert_checkpoints import save_bert, save_pylate, save_stanford
from hashed_words import items_of, rows_of
from named_models import NAMED

from nlp_retrieval.encoders import backends as token_export
from nlp_retrieval.encoders import models
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.errors import IndexMismatchError
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

LONG = "A passage, about bridges and boats. " * 3
TEXTS = ["Stanley Kubrick filmed The Shining.", "red", "", "Köln: 東京 ,", LONG, "red fox", "who"]
pytestmark = pytest.mark.filterwarnings("ignore:.* is not a multi-vector checkpoint")


@pytest.fixture(scope="module", params=["stanford", "pylate", "attending", "no checkpoint"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("models")
    if request.param == "no checkpoint":
        NAMED["encoder"].save(above / "encoder", 0)
        return above / "encoder"
    if request.param == "pylate":
        return save_pylate(save_bert(above / "bert"), above / "colbert")
    folder = save_stanford(save_bert(above / "bert"), above / "colbert")
    if request.param == "attending":
        settings = json.loads((folder / "artifact.metadata").read_text()) | {"attend_to_mask_tokens": True}
        (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_open", WeakValueDictionary())


def by_torch(model: Path, **settings: object) -> ColbertEncoder:
    return ColbertEncoder(str(model), None, precision="float32", device="cpu", **settings)  # type: ignore[arg-type]


def by_onnx(model: Path, **settings: object) -> ColbertEncoder:
    return ColbertEncoder(str(model), None, backend="onnx", **settings)  # type: ignore[arg-type]


SETTINGS = [{"max_length": 9}, {"query_prompt": "red ", "passage_prompt": "a "}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["length", "prompts"])
def test_in_float32_vectors_are_those_of_torch(model: Path, own_cache: Path, settings: dict[str, object]) -> None:
    ours, theirs = by_onnx(model, precision="float32", **settings), by_torch(model, **settings)
    for found, wanted in [
        (ours.encode_queries(TEXTS), theirs.encode_queries(TEXTS)),
        (ours.encode_passages(TEXTS), theirs.encode_passages(TEXTS)),
    ]:
        assert [len(tokens) for tokens in found] == [len(tokens) for tokens in wanted]
        np.testing.assert_allclose(np.concatenate(found), np.concatenate(wanted), atol=1e-4)
    assert ours.cut_passages(TEXTS) == theirs.cut_passages(TEXTS)
    assert ours.dimension == theirs.dimension


def test_8_bits_are_near_and_depend_on_no_other_text(model: Path, own_cache: Path) -> None:
    encoder = by_onnx(model)
    assert encoder.precision == "int8"
    together, theirs = encoder.encode_passages(TEXTS), by_torch(model).encode_passages(TEXTS)
    assert (np.concatenate(together) * np.concatenate(theirs)).sum(axis=1).min() > 0.9
    assert not np.allclose(np.concatenate(together), np.concatenate(theirs), atol=1e-5)
    for text, found in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode_passages([text])[0], found, atol=1e-6)
    for text, found in zip(TEXTS, encoder.encode_queries(TEXTS), strict=True):
        np.testing.assert_allclose(encoder.encode_queries([text])[0], found, atol=1e-6)


def test_an_export_is_made_once_and_is_part_of_the_identity_of_an_index(
    model: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ColbertRetriever(by_onnx(model), bits=None).index(items_of(TEXTS[:4]), tmp_path / "index")
    wanted = by_onnx(model).encode_passages(TEXTS)
    (first,) = ColbertRetriever(by_onnx(model), bits=None).retrieve([["Kubrick filmed"]], tmp_path / "index", 3)
    monkeypatch.setattr(token_export, "write_graph", None)
    monkeypatch.setattr(token_export, "write_quantized", None)
    monkeypatch.setattr(models, "_open", WeakValueDictionary())
    again = by_onnx(model)
    for one, other in zip(again.encode_passages(TEXTS), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    (hits,) = ColbertRetriever(again, bits=None).retrieve([["Kubrick filmed"]], tmp_path / "index", 3)
    assert rows_of(hits) == rows_of(first)
    with pytest.raises(IndexMismatchError, match=r"encoder\.precision: indexed with 'int8', now 'float32'"):
        ColbertRetriever(by_torch(model), bits=None).retrieve([["red"]], tmp_path / "index", 1)
