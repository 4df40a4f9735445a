"""A cross-encoder's score is the model's own, whatever stands beside a pair; what is no such model is refused with a cure."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.errors import ModelError, RetrievalWarning
from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
from nlp_retrieval.rerankers.pair_models import OnnxPairs

from .tiny_models import MOST_TOKENS, TinyOnnx, save_bert

QUERY = "who wrote the novel that Kubrick filmed"
TEXTS = [
    "The Shining is a novel.",
    "red fox",
    "",
    "Köln, 東京 🦊",
    "blue whale, green tree, red fox and the novel that Kubrick filmed",
    "red red red",
]

CUT = pytest.mark.filterwarnings("ignore:.*are longer than the model reads")


def items_of(texts: list[str]) -> list[SearchableItem]:
    return [SearchableItem(item_id=f"d{row}", content=text) for row, text in enumerate(texts)]


def results(items: list[SearchableItem]) -> list[RetrievalResult]:
    return [
        RetrievalResult(item=item, score=10.0 - place, signals={"bm25.score": 10.0 - place, "bm25.rank": place + 1.0})
        for place, item in enumerate(items)
    ]


def scores_of(reranker: CrossEncoderReranker, query: str, texts: list[str]) -> NDArray[np.floating]:
    """By the public way, in the order of ``texts``."""
    hits = reranker.rerank([query], [results(items_of(texts))], len(texts))[0]
    found = {hit.item.item_id: hit.signals["cross_encoder.score"] for hit in hits}
    return np.array([found[f"d{row}"] for row in range(len(texts))])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TinyOnnx().save(tmp_path_factory.mktemp("models") / "onnx")


def by_transformers(folder: Path, query: str, text: str) -> NDArray[np.floating]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)([query], [text], truncation=True, return_tensors="pt")
    with torch.inference_mode():
        found: NDArray[np.floating] = AutoModelForSequenceClassification.from_pretrained(folder)(**tokens).logits[0].numpy()
    return found


def test_scores_by_torch_are_the_logits_that_transformers_gives_for_each_pair(bert: Path) -> None:
    wanted = [by_transformers(bert, QUERY, text)[0] for text in TEXTS]
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(scores_of(CrossEncoderReranker(str(bert), device="cpu"), QUERY, TEXTS), wanted, atol=1e-5)


def test_of_two_logits_the_score_is_the_second_less_the_first(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "two", labels=2)
    logits = np.array([by_transformers(folder, QUERY, text) for text in TEXTS])
    found = scores_of(CrossEncoderReranker(str(folder), device="cpu"), QUERY, TEXTS)
    np.testing.assert_allclose(found, logits[:, 1] - logits[:, 0], atol=1e-5)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx"])
def test_scores_by_onnx_are_those_of_the_graph_by_hand(tmp_path: Path, labels: int, file: str) -> None:
    model = TinyOnnx(labels)
    folder = model.save(tmp_path / "model", file)
    logits = np.array([model.logits(QUERY, text) for text in TEXTS])
    wanted = logits[:, 1] - logits[:, 0] if labels == 2 else logits[:, 0]
    found = scores_of(CrossEncoderReranker(str(folder), backend="onnx"), QUERY, TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_by_onnx_a_run_starts_no_threads_and_pairs_are_scored_on_as_many_cores_as_may_be_used(
    onnx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OnnxPairs(onnx, None)
    options = model._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    pairs = [(QUERY, text) for text in TEXTS * 7]
    alone = np.concatenate([model.logits([pair]) for pair in pairs])
    for cores in (1, 2, 8):
        monkeypatch.setattr("nlp_retrieval.encoders.backends.usable_cores", lambda cores=cores: cores)
        np.testing.assert_array_equal(model.logits(pairs), alone)


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_pairs_that_are_longer_than_the_model_reads_are_counted_and_said_once_a_call(
    bert: Path, onnx: Path, backend: str
) -> None:
    folder = bert if backend == "torch" else onnx
    reranker = CrossEncoderReranker(str(folder), backend=backend, max_length=9, batch_size=2)  # type: ignore[arg-type]
    fitting = ["red fox", "", "red red red"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores_of(reranker, "red fox", fitting)
    lists = [results(items_of([*fitting, "tree " * 5, "tree " * 90])), results(items_of(fitting[:1]))]
    said = r"cross_encoder: 3 of 6 pairs are longer than the model reads.*raise its lengths"
    with pytest.warns(RetrievalWarning, match=said) as caught:
        reranker.rerank(["red fox", "tree " * 9], lists, 9)
    assert len(caught) == 1


@CUT
@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_what_is_beyond_max_length_or_the_models_own_limit_is_not_read(bert: Path, onnx: Path, backend: str) -> None:
    folder, start = (bert if backend == "torch" else onnx), "the red fox the blue whale"
    settings: dict[str, Any] = {"model": str(folder), "backend": backend, "device": "cpu"}
    cut = CrossEncoderReranker(**settings, max_length=9)  # [CLS], query, [SEP], 5 words, [SEP]
    one, other, shorter = scores_of(cut, "red", [f"{start} {'tree ' * 90}", f"{start} film", "the red fox"])
    assert one == pytest.approx(other, abs=1e-6)
    assert one != pytest.approx(shorter, abs=1e-5)
    if backend == "torch":
        long = scores_of(CrossEncoderReranker(**settings), "red", ["tree " * (MOST_TOKENS - 4), "tree " * 900])
        assert long[0] == pytest.approx(long[1], abs=1e-6)


# what cannot be used


def test_a_model_of_three_logits_scores_no_relevance(tmp_path: Path) -> None:
    backend = "onnx"
    folder = tmp_path / "three"
    _ = save_bert(folder, labels=3) if backend == "torch" else TinyOnnx(3).save(folder)
    with pytest.raises(ModelError, match="gives 3 logits per pair; a model that scores relevance gives one or two"):
        scores_of(CrossEncoderReranker(str(folder), backend=backend, device="cpu"), "red", ["fox"])  # type: ignore[arg-type]


def test_a_model_without_a_scoring_head_is_refused_because_a_random_one_would_be_drawn(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "encoder", head=False)
    with pytest.raises(ModelError, match="is not a cross-encoder but BertModel, without a scoring head"):
        scores_of(CrossEncoderReranker(str(folder), device="cpu"), "red", ["fox"])


def test_a_folder_saved_by_sentence_transformers_is_a_cross_encoder(bert: Path, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    CrossEncoder(str(bert), device="cpu").save_pretrained(str(tmp_path / "saved"))
    saved = CrossEncoderReranker(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_allclose(
        scores_of(saved, QUERY, TEXTS), scores_of(CrossEncoderReranker(str(bert), device="cpu"), QUERY, TEXTS), atol=1e-6
    )


def test_weights_that_are_no_numbers_are_an_error(tmp_path: Path) -> None:
    model = TinyOnnx()
    model.words[:] = np.nan
    with pytest.raises(ModelError, match="gives NaN or infinity for 2 pairs"):
        scores_of(CrossEncoderReranker(str(model.save(tmp_path / "nan")), backend="onnx"), "red", ["fox", "whale"])


def test_damaged_weights_and_settings_are_errors_that_name_the_folder(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "broken")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"broken \(.*\) does not load as a cross-encoder"):
        scores_of(CrossEncoderReranker(str(folder)), "red", ["fox"])
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config.json cannot be read"):
        scores_of(CrossEncoderReranker(str(folder)), "red", ["fox"])
