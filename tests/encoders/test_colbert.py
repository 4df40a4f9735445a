"""The token encoder gives what each kind of checkpoint was trained to give, and never vectors that change between loads."""

from __future__ import annotations

import json
import shutil
import string
import warnings
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from colbert_checkpoints import by_hand, carried_folder, save_bert, save_pylate, save_stanford

from nlp_retrieval.encoders import models
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.errors import ModelError, RetrievalWarning

NAME = "sentence-transformers/all-MiniLM-L6-v2"
PASSAGES = [
    "Stanley Kubrick filmed The Shining.",
    "red",
    "Köln liegt am Rhein; 東京 is in Japan.",
    "A long passage about bridges, rivers and boats. " * 3,
]
QUERY = "Who wrote the novel that Stanley Kubrick filmed?"


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def stanford(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_stanford(bert, tmp_path_factory.mktemp("stanford") / "colbert")


@pytest.fixture(scope="session")
def pylate(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pylate(bert, tmp_path_factory.mktemp("pylate") / "colbert")


@pytest.fixture(scope="session")
def native(stanford: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As sentence-transformers itself saves it."""
    from sentence_transformers import MultiVectorEncoder

    folder = tmp_path_factory.mktemp("native") / "colbert"
    MultiVectorEncoder(str(stanford), device="cpu").save(str(folder), create_model_card=False)
    return folder


def encoder(folder: Path, **settings: object) -> ColbertEncoder:
    return ColbertEncoder(str(folder), precision="float32", device="cpu", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["stanford", "pylate", "native"])
def test_a_colbert_checkpoint_gives_what_colbert_computes(request: pytest.FixtureRequest, bert: Path, kind: str) -> None:
    model = encoder(request.getfixturevalue(kind))
    assert model.is_multi_vector
    assert model.dimension == 24
    for text, vectors in zip(PASSAGES, model.encode_passages(PASSAGES), strict=True):
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, by_hand(bert, text, query=False), atol=1e-4)
    (query,) = model.encode_queries([QUERY])
    assert query.shape == (16, 24)
    np.testing.assert_allclose(query, by_hand(bert, QUERY, query=True), atol=1e-4)


def test_what_is_cut_off_is_counted(stanford: Path) -> None:
    model = encoder(stanford)
    assert model.cut_passages([*PASSAGES, "word " * 17, "word " * 18]) == 2
    assert model.cut_queries([QUERY, "word " * 13, "word " * 14]) == 1
    assert encoder(stanford, max_length=60).cut_passages(PASSAGES) == 0


@pytest.fixture(scope="module")
def plain() -> Iterator[ColbertEncoder]:
    model = ColbertEncoder(NAME, precision="float32", device="cpu")
    with pytest.warns(RetrievalWarning, match="not a multi-vector checkpoint"):
        model.encode_queries(["open the model"])
    yield model  # noqa: PT022 -- held, so that the model stays loaded for the module


def quietly(**settings: object) -> ColbertEncoder:
    model = ColbertEncoder(NAME, **({"precision": "float32", "device": "cpu"} | settings))  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        model.encode_queries(["open the model"])
    return model


def test_any_encoder_is_read_token_by_token(plain: ColbertEncoder) -> None:
    from sentence_transformers import SentenceTransformer

    by_library = SentenceTransformer(str(carried_folder()), device="cpu")
    whole = quietly(projection=None)
    assert whole.dimension == 384
    for text in PASSAGES[:2]:
        wanted = by_library.encode([text], output_value="token_embeddings")[0].numpy()
        ids = by_library.tokenizer(text)["input_ids"]
        marks = set(by_library.tokenizer.convert_tokens_to_ids(list(string.punctuation)))
        wanted = wanted[[number not in marks for number in ids]]
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        (found,) = whole.encode_passages([text])
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        matrix = plain.projection_matrix()
        assert matrix is not None
        projected = wanted @ matrix
        projected /= np.linalg.norm(projected, axis=1, keepdims=True)
        np.testing.assert_allclose(plain.encode_passages([text])[0], projected, atol=1e-4)


def test_the_projection_has_orthonormal_columns(plain: ColbertEncoder) -> None:
    matrix = plain.projection_matrix()
    assert matrix is not None
    assert matrix.shape == (384, 128)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(128), atol=1e-5)


@pytest.mark.parametrize("saved", [{}, {"model_type": "SentenceTransformer"}])
def test_a_checkpoint_that_the_library_would_add_a_random_projection_to_is_read_token_by_token(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: dict[str, str]
) -> None:
    import torch

    folder = tmp_path / "without"
    shutil.copytree(native, folder)
    modules = [one for one in json.loads((folder / "modules.json").read_text()) if not one["type"].endswith("Dense")]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(saved))
    found = []
    for seed in (0, 1):
        monkeypatch.setattr(models, "_open", WeakValueDictionary())
        torch.manual_seed(seed)
        with pytest.warns(RetrievalWarning, match="read token by token, and was not trained"):
            found += encoder(folder, projection=16).encode_passages([PASSAGES[0]])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_checkpoint_of_stanford_without_its_projection_is_refused(stanford: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "without"
    shutil.copytree(stanford, folder)
    weights = {key: value for key, value in load_file(stanford / "model.safetensors").items() if key != "linear.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"without.*does not load.*its weights hold no linear\.weight; download it again"):
        encoder(folder).encode_queries(["x"])
