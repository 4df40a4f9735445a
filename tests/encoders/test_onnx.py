"""Exports to ONNX: what torch computes, made once, refused where they do not match, and chosen only where that is allowed."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from named_models import NAMED

from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.encoders import models
from nlp_retrieval.encoders.backends import OnnxModel
from nlp_retrieval.errors import ConfigurationError

TEXTS = [
    "who wrote the novel that Kubrick filmed",
    "red",
    "",
    "köln 東京 . , film",
    "the shining red fox and the blue whale " * 3,
    "a green tree, a red tree",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three modules: a random BERT, pooling, and a dense layer."""
    folder = tmp_path_factory.mktemp("models") / "model"
    NAMED["encoder"].save(folder, 0)
    return folder


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_open", WeakValueDictionary())


def by_torch(model: Path, **settings: object) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(str(model), precision="float32", device="cpu", **settings)  # type: ignore[arg-type]


def by_onnx(model: Path, **settings: object) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(str(model), backend="onnx", **settings)  # type: ignore[arg-type]


def exports(cache: Path) -> list[Path]:
    return sorted((cache / "nlp-retrieval" / "models" / "onnx").glob("[0-9a-f]*"))


def test_in_float32_vectors_are_those_of_torch(model: Path, subtests: pytest.Subtests) -> None:
    for settings in [{}, {"query_prompt": "who ", "passage_prompt": "the "}, {"normalize": False}, {"max_length": 5}]:
        with subtests.test(settings=settings):
            ours, theirs = by_onnx(model, precision="float32", **settings), by_torch(model, **settings)
            np.testing.assert_allclose(ours.encode_passages(TEXTS), theirs.encode_passages(TEXTS), atol=2e-5)
            np.testing.assert_allclose(ours.encode_queries(TEXTS), theirs.encode_queries(TEXTS), atol=2e-5)
            assert ours.cut_passages(TEXTS) == theirs.cut_passages(TEXTS)
            assert ours.encode_queries([]).shape == (0, 8)


def test_weights_of_an_8_bit_export_are_quantised_by_column_with_a_bit_to_spare(model: Path, own_cache: Path) -> None:
    """Without VNNI, 8 whole bits overflow where two products are added in 16."""
    import onnx

    by_onnx(model).encode_queries(["red"])
    graphs = [onnx.load(str(folder / "model.onnx")).graph for folder in exports(own_cache)]
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}
    weights = [values for name, values in tensors.items() if name.endswith("_quantized")]
    assert len(weights) == 7, "query, key, value, output, two of the feed-forward layer, and the dense one"
    assert all(weight.dtype == np.int8 and weight.min() >= -64 and weight.max() <= 64 for weight in weights)
    scales = [values.size for name, values in tensors.items() if name.endswith("_scale")]
    assert sorted(scales) == sorted(weight.shape[1] for weight in weights)


def test_an_export_is_made_once_and_read_without_torch_afterwards(
    model: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = by_onnx(model).encode_queries(TEXTS)
    made = exports(own_cache)
    assert len(made) == 2, "one in float32, one in 8 bits made of it"
    monkeypatch.setattr(SentenceTransformerEncoder, "_load_torch", lambda *_, **__: pytest.fail("torch loads a model"))
    monkeypatch.setattr(models, "_open", WeakValueDictionary())
    again = by_onnx(model)
    np.testing.assert_array_equal(again.encode_queries(TEXTS), wanted)
    assert isinstance(again.open_model(), OnnxModel)
    assert exports(own_cache) == made


def test_a_vector_does_not_depend_on_the_rest_of_the_batch_and_threads_share_a_model(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = by_onnx(model)
    options = encoder.open_model()._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    texts = TEXTS * 7
    alone = np.concatenate([encoder.encode_passages([text]) for text in texts])
    for cores in (1, 2, 8):
        monkeypatch.setattr("nlp_retrieval.encoders.backends.usable_cores", lambda cores=cores: cores)
        np.testing.assert_array_equal(encoder.encode_passages(texts), alone)


def test_more_tokens_than_the_model_has_places_for_are_refused_and_as_many_are_read(
    model: Path, subtests: pytest.Subtests
) -> None:
    for made in [by_torch, by_onnx]:
        with subtests.test(made=made):
            with pytest.raises(
                ConfigurationError, match=r"max_length=99: .* reads at most \d+ tokens; pass max_length=\d+"
            ) as refused:
                made(model, max_length=99).encode_queries(["red"])
            most = int(str(refused.value).rpartition("=")[2])
            assert np.isfinite(made(model, max_length=most).encode_queries(["red fox " * 60])).all()
