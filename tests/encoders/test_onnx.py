"""Exports to ONNX: what torch computes, made once, refused where they do not match, and chosen only where that is allowed."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import shutil
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hashed_words import items_of, rows_of
from named_models import NAMED

from nlp_retrieval import FaissRetriever, RetrievalWarning, Searcher, SentenceTransformerEncoder
from nlp_retrieval.encoders import backends as choice
from nlp_retrieval.encoders import backends as export
from nlp_retrieval.encoders import models
from nlp_retrieval.encoders.backends import Chosen, OnnxModel
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexMismatchError, ModelError

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


def cosines(one: Vectors, other: Vectors) -> Vectors:
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def exports(cache: Path) -> list[Path]:
    return sorted((cache / "nlp-retrieval" / "models" / "onnx").glob("[0-9a-f]*"))


@pytest.mark.parametrize(
    "settings",
    [{}, {"query_prompt": "who ", "passage_prompt": "the "}, {"normalize": False}, {"max_length": 5}],
    ids=["plain", "prompts", "lengths", "cut"],
)
def test_in_float32_vectors_are_those_of_torch(model: Path, settings: dict[str, object]) -> None:
    ours, theirs = by_onnx(model, precision="float32", **settings), by_torch(model, **settings)
    np.testing.assert_allclose(ours.encode_passages(TEXTS), theirs.encode_passages(TEXTS), atol=2e-5)
    np.testing.assert_allclose(ours.encode_queries(TEXTS), theirs.encode_queries(TEXTS), atol=2e-5)
    assert ours.cut_passages(TEXTS) == theirs.cut_passages(TEXTS)
    assert ours.encode_queries([]).shape == (0, 8)


def test_prompts_of_the_model_are_put_before_texts(model: Path, tmp_path: Path) -> None:
    prompted = Path(shutil.copytree(model, tmp_path / "prompted"))
    prompts = {"prompts": {"query": "who ", "document": "the "}}
    (prompted / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    ours, theirs = by_onnx(prompted, precision="float32"), by_torch(prompted)
    plain = by_torch(model).encode_queries(TEXTS)
    assert not np.allclose(theirs.encode_queries(TEXTS), plain, atol=1e-3)
    np.testing.assert_allclose(ours.encode_queries(TEXTS), theirs.encode_queries(TEXTS), atol=2e-5)
    np.testing.assert_allclose(ours.encode_passages(TEXTS), theirs.encode_passages(TEXTS), atol=2e-5)
    np.testing.assert_allclose(by_onnx(prompted, precision="float32", query_prompt="").encode_queries(TEXTS), plain, atol=2e-5)


def test_8_bit_weights_are_close_and_the_usual_precision_of_this_backend(model: Path) -> None:
    encoder = by_onnx(model)
    assert encoder.chosen == Chosen("onnx", "int8")
    assert (cosines(encoder.encode_passages(TEXTS), by_torch(model).encode_passages(TEXTS)) > 0.98).all()


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


def test_an_export_of_another_model_is_not_taken_for_it(model: Path, tmp_path: Path, own_cache: Path) -> None:
    """Files swapped between two exports are not what their folders say, and are made again."""
    NAMED["encoder"].save(tmp_path / "other", 3)
    wanted = by_onnx(model, precision="float32").encode_queries(TEXTS)
    (mine,) = exports(own_cache)
    theirs = by_onnx(tmp_path / "other", precision="float32").encode_queries(TEXTS)
    (other,) = set(exports(own_cache)) - {mine}
    assert not np.allclose(wanted, theirs, atol=1e-2)
    shutil.copyfile(other / "model.onnx", mine / "model.onnx")
    models._open.clear()
    np.testing.assert_array_equal(by_onnx(model, precision="float32").encode_queries(TEXTS), wanted)
    for name in ("model.onnx", "tokenizer.json", "settings.json", "made.json"):
        models._open.clear()
        content = bytearray((mine / name).read_bytes())
        content[len(content) // 3] ^= 4
        (mine / name).write_bytes(content)
        np.testing.assert_array_equal(by_onnx(model, precision="float32").encode_queries(TEXTS), wanted)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_export_that_does_not_match_its_model_is_refused_and_not_kept(
    model: Path, own_cache: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Turned(OnnxModel):
        """As where the exporter or the quantiser changed what is computed."""

        wrong = 0

        def __init__(self, folder: Path, max_length: int | None = None) -> None:
            super().__init__(folder, max_length)
            Turned.wrong += 1
            self.turned = precision == "float32" or Turned.wrong == 3

        def encode(self, texts: list[str]) -> Vectors:  # type: ignore[override]
            vectors = super().encode(texts)
            return vectors[:, ::-1] if self.turned else vectors

    monkeypatch.setattr(export, "OnnxModel", Turned)
    with pytest.raises(ModelError, match=rf"the {precision} export does not match its model: .* cosine .*; pass "):
        by_onnx(model, precision=precision).encode_queries(TEXTS)
    assert len(exports(own_cache)) == (precision == "int8")


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


def test_more_tokens_than_the_model_has_places_for_is_an_error_that_says_so(model: Path) -> None:
    with pytest.raises(ModelError, match=r"fails at a text of 99 tokens: .*; set max_length"):
        by_onnx(model, max_length=99).encode_queries(["red fox " * 60])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "torch", "precision": "int8"}, "precision='int8' is for backend='onnx'"),
        ({"backend": "onnx", "precision": "bfloat16"}, "precision='bfloat16' is for backend='torch'"),
        ({"backend": "onnx", "device": "cuda"}, "device='cuda': backend='onnx' runs on the CPU"),
        ({"backend": "openvino"}, "backend"),
        ({"precision": "int4"}, "precision"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SentenceTransformerEncoder(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "message"),
    [("cuda:9", r"no device 'cuda:9' here \(found: cpu"), ("toaster", "device='toaster' is not a torch device")],
)
def test_a_device_that_is_not_there_is_an_error(model: Path, device: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SentenceTransformerEncoder(str(model), precision="float32", device=device).encode_queries(["x"])


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_a_missing_package_is_an_error_with_the_command_that_installs_it(
    model: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DependencyError, match=rf"needs {package}: pip install 'nlp_retrieval\[onnx\]'"):
        by_onnx(model).encode_queries(["x"])


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, float]], list[str]]:
    """Have backends take the times that a test says; returns the list of those that were tried."""

    def told(seconds: dict[str, float]) -> list[str]:
        tried: list[str] = []

        def measured(encoder: SentenceTransformerEncoder) -> float:
            encoder.encode_passages(["red"])
            tried.append(f"{encoder.chosen.backend} {encoder.chosen.precision}")
            return seconds[tried[-1].split()[0]]

        monkeypatch.setattr(choice, "_seconds", measured)
        return tried

    return told


def auto(model: Path, **settings: object) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(str(model), backend="auto", device="cpu", **settings)  # type: ignore[arg-type]


def test_the_fastest_is_taken_and_never_one_of_lower_precision_than_was_allowed(
    model: Path, timed: Callable[[dict[str, float]], list[str]]
) -> None:
    tried = timed({"torch": 2.0, "onnx": 1.0})
    assert auto(model).chosen == Chosen("onnx", "int8")
    assert len(tried) == 2
    assert auto(model, precision="float32").chosen == Chosen("onnx", "float32")
    assert tried[2:] == ["torch float32", "onnx float32"]
    assert auto(model, precision="bfloat16").chosen == Chosen("torch", "bfloat16")
    assert auto(model, precision="int8").chosen == Chosen("onnx", "int8")
    assert len(tried) == 4, "where one alone is allowed, nothing is tried"


def test_a_trial_is_made_once_for_a_machine_and_a_model(
    model: Path, tmp_path: Path, own_cache: Path, timed: Callable[[dict[str, float]], list[str]]
) -> None:
    timed({"torch": 1.0, "onnx": 2.0})
    chosen = auto(model, precision="float32").chosen
    assert chosen == Chosen("torch", "float32")
    tried = timed({"torch": 2.0, "onnx": 1.0})
    assert auto(model, precision="float32").chosen == chosen
    assert not tried
    (trial,) = (own_cache / "nlp-retrieval" / "models" / "trials").glob("[0-9a-f]*/choice.json")
    assert json.loads(trial.read_text())["seconds"] == {"torch float32": 1.0, "onnx float32": 2.0}
    NAMED["encoder"].save(tmp_path / "other", 3)
    assert auto(tmp_path / "other", precision="float32").chosen == Chosen("onnx", "float32")


def test_a_trial_of_another_processor_of_this_name_is_not_taken_for_one_of_this(
    model: Path, own_cache: Path, timed: Callable[[dict[str, float]], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines of a cluster may share a cache and a name, and a container may wake up elsewhere."""
    timed({"torch": 1.0, "onnx": 2.0})
    monkeypatch.setattr(choice, "resolved_precision", lambda precision, device: "bfloat16")
    assert auto(model).chosen == Chosen("torch", "bfloat16")
    monkeypatch.setattr(choice, "resolved_precision", lambda precision, device: "float32")
    assert auto(model).chosen == Chosen("torch", "float32")


def test_onnxruntime_may_be_installed_under_any_of_its_names(
    model: Path, own_cache: Path, timed: Callable[[dict[str, float]], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same module comes as onnxruntime, onnxruntime-gpu and others."""

    def version(distribution: str) -> str:
        if distribution == "onnxruntime":
            raise PackageNotFoundError(distribution)
        return importlib.metadata.version(distribution)

    monkeypatch.setattr(choice, "version", version)
    timed({"torch": 2.0, "onnx": 1.0})
    assert auto(model, precision="float32").chosen == Chosen("onnx", "float32")


@pytest.mark.parametrize("hostile", ["auto", "float8", "../../etc", "", None, True, 7, ["int8"], {"name": "int8"}])
def test_what_an_index_tells_of_a_trial_is_one_of_the_choices_or_nothing(hostile: object) -> None:
    wanted = {"name": "sentence-transformers", "model_fingerprint": "f"}
    for changed in ({"backend": hostile}, {"precision": hostile}):
        told = wanted | {"backend": "onnx", "precision": "int8"} | changed
        assert choice.recorded_choice([{"encoder": [told]}], wanted, "auto") is None
    honest = wanted | {"backend": "onnx", "precision": "int8"}
    assert choice.recorded_choice([{"encoder": honest}], wanted, "auto") == Chosen("onnx", "int8")
    assert choice.recorded_choice([{"encoder": honest}], wanted, "float32") is None


def test_a_trial_on_this_machine_takes_times_above_nothing(
    model: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_SECONDS", 0.0)
    assert auto(model).chosen.backend in {"torch", "onnx"}
    (trial,) = (own_cache / "nlp-retrieval" / "models" / "trials").glob("[0-9a-f]*/choice.json")
    assert all(seconds > 0 for seconds in json.loads(trial.read_text())["seconds"].values())


def test_an_index_records_what_was_chosen_and_is_opened_with_that(
    model: Path, tmp_path: Path, own_cache: Path, timed: Callable[[dict[str, float]], list[str]]
) -> None:
    items = items_of(["red fox", "blue whale", "green tree"])
    timed({"torch": 2.0, "onnx": 1.0})
    Searcher([FaissRetriever(auto(model))]).index(items, tmp_path / "index")
    encoder = json.loads((tmp_path / "index" / "manifest.json").read_text())["retrievers"][0]["config"]["encoder"]
    assert (encoder["backend"], encoder["precision"]) == ("onnx", "int8")
    shutil.rmtree(own_cache / "nlp-retrieval" / "models" / "trials")
    tried = timed({"torch": 1.0, "onnx": 2.0})
    searcher = Searcher([FaissRetriever(auto(model))])
    searcher.open(tmp_path / "index")
    with pytest.warns(RetrievalWarning, match="is trusted"):
        described = Searcher.open(tmp_path / "index", trust=True)
    for opened in (searcher, described):
        assert rows_of(opened.search("blue whale", 1)[0]) == [1]
    retriever = FaissRetriever(auto(model))
    assert retriever.retrieve([["blue whale"]], tmp_path / "index", 1)[0][0].item.item_id == "d1"
    assert not tried, "no trial where the manifest tells"
    with pytest.raises(IndexMismatchError, match=r"encoder\.backend: indexed with 'onnx', now 'torch'"):
        FaissRetriever(by_torch(model)).retrieve([["red"]], tmp_path / "index", 1)


def test_encoders_that_were_chosen_to_use_different_backends_do_not_share_a_model(
    model: Path, timed: Callable[[dict[str, float]], list[str]]
) -> None:
    timed({"torch": 2.0, "onnx": 1.0})
    tried, recorded = auto(model, precision="float32"), auto(model, precision="float32")
    recorded.take_recorded([{"encoder": by_torch(model).index_identity() | {"backend": "torch"}}])
    for encoder, kind in ((tried, "onnx"), (recorded, "torch")):
        encoder.encode_queries(["red"])
        assert isinstance(encoder.open_model(), OnnxModel) == (kind == "onnx")
        assert copy.deepcopy(encoder).chosen == Chosen(kind, "float32")  # type: ignore[arg-type]


def test_precision_and_backend_belong_to_the_index(model: Path) -> None:
    made = [by_torch(model), by_onnx(model), by_onnx(model, precision="float32"), SentenceTransformerEncoder(str(model))]
    identities = [json.dumps(encoder.index_identity(), sort_keys=True) for encoder in made]
    assert len(set(identities)) == 4
    assert by_onnx(model).index_identity() == by_onnx(model, precision="int8").index_identity()


def test_one_short_query_is_computed_by_one_thread_of_torch_and_others_by_as_many_as_before(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    encoder = by_torch(model)
    opened = encoder.open_model()
    seen: list[int] = []
    whole = type(opened).encode_query

    def watched(self: object, *given: object, **named: object) -> object:
        seen.append(torch.get_num_threads())
        return whole(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(opened), "encode_query", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        encoder.encode_queries(["red"])
        encoder.encode_queries(["red", "fox"])
        encoder.encode_queries(["red fox " * 200])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 2, 2]


def test_exporting_says_nothing(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_onnx(model).encode_queries(["red"])
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
