"""Static embeddings: what model2vec computes from the same folder, what is distilled, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from hashed_words import HashedWords, items_of
from rerankers.tiny_models import SPECIAL, save_bert
from safetensors.numpy import load_file, save_file
from static_models import save_static

from nlp_retrieval import FaissRetriever, SentenceTransformerEncoder, StaticEncoder
from nlp_retrieval.cli.app import app
from nlp_retrieval.encoders import distill_static
from nlp_retrieval.errors import (
    ModelError,
)

TEXTS = [
    "The red fox jumps over the green tree",
    "A blue whale, a red whale and a red fox",
    "Köln liegt am Rhein; 東京 is in Japan",
    "the the the tree",
]
SMOOTHING = 1e-2
CALLS: list[int] = []


class Counting(HashedWords):
    """Hashed words that are counted when they are encoded."""

    def encode_passages(self, passages: list[str]) -> np.ndarray:
        CALLS.append(len(passages))
        return super().encode_passages(passages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("static") / "words", TEXTS, dimension=16, min_count=1, smoothing=SMOOTHING)


def test_vectors_are_those_of_model2vec(folder: Path) -> None:
    from model2vec import StaticModel

    texts = [*TEXTS, "fox fox Qwertz!", "a text " * 900]
    theirs = StaticModel.from_pretrained(folder, normalize=True, max_length=None).encode(texts)
    encoder = StaticEncoder(folder)
    for ours in (encoder.encode_passages(texts), encoder.encode_queries(texts)):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_word_is_its_vector_centred_and_turned_and_weighed_by_how_rare_it_is(folder: Path) -> None:
    """By hand: turning keeps inner products, so those of centred vectors, each scaled by its weight, are what is found."""
    words = ["red", "fox", "the", "whale"]
    tokens = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    plain = HashedWords().encode_passages([token.removeprefix("##") or token for token in tokens if token != "[UNK]"])
    centred = {token: row - plain.mean(axis=0) for token, row in zip((t for t in tokens if t != "[UNK]"), plain, strict=True)}
    table = load_file(folder / "model.safetensors")["embeddings"]
    counts = {"red": 3, "fox": 2, "the": 5, "whale": 2}
    apart = [text.replace(",", " ,").replace(";", " ;").replace("東京", "東 京").split() for text in TEXTS]
    total = sum(map(len, apart)) + len(tokens)
    weights = {word: SMOOTHING / (SMOOTHING + (count + 1) / total) for word, count in counts.items()}
    wanted = [[centred[a] @ centred[b] * weights[a] * weights[b] for a in words] for b in words]
    rows = table[[tokens[word] for word in words]]
    np.testing.assert_allclose(rows @ rows.T, wanted, rtol=1e-3, atol=1e-5)


def test_the_pieces_of_a_model_of_wordpiece_are_kept_and_the_words_of_the_corpus_join_them(tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece

    model = save_bert(tmp_path / "model", head=False)
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    pieces = [*SPECIAL, *ascii_lowercase, *(f"##{letter}" for letter in ascii_lowercase)]
    tokenizer.model = WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer.save(str(model / "tokenizer.json"))
    config = json.loads((model / "config.json").read_text())
    shutil.rmtree(tmp_path / "model")
    _save_of_size(tmp_path / "model", len(pieces), config)
    tokenizer.save(str(model / "tokenizer.json"))
    source = SentenceTransformerEncoder(str(model), precision="float32", device="cpu")
    made = distill_static(source, items_of(TEXTS), tmp_path / "static", dimension=8, min_count=2)
    tokens = json.loads((made / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert list(tokens)[: len(pieces)] == pieces
    assert {"the", "red", "whale", "tree", "fox"} <= set(tokens)
    assert "green" not in tokens, "it stands once"
    vectors = StaticEncoder(made).encode_queries(["green", "red", "köln"])
    assert vectors.shape == (3, 8)
    np.testing.assert_allclose(np.linalg.norm(vectors[:2], axis=1), 1, atol=1e-5)


def _save_of_size(folder: Path, size: int, config: dict[str, object]) -> None:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    BertModel(BertConfig(**(config | {"vocab_size": size}))).save_pretrained(folder)


def test_the_same_words_and_settings_are_distilled_once_and_kept(own_cache: Path) -> None:
    CALLS.clear()
    first = distill_static(Counting(), items_of(TEXTS))
    n_calls = len(CALLS)
    assert first.is_relative_to(own_cache)
    assert distill_static(Counting(), iter(items_of(TEXTS))) == first
    assert len(CALLS) == n_calls
    others = [
        distill_static(Counting(seed=1), items_of(TEXTS)),
        distill_static(Counting(), items_of([*TEXTS, "more words"])),
        distill_static(Counting(), items_of(TEXTS), dimension=8),
        distill_static(Counting(), items_of(TEXTS), smoothing=1.0),
    ]
    assert len({first, *others}) == 5


def test_a_table_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    n_tokens = len(load_file(folder / "model.safetensors")["embeddings"])
    for table in (np.zeros(n_tokens, np.float32), np.full((n_tokens, 2), np.nan, np.float32)):
        save_file({"embeddings": table}, broken / "model.safetensors")
        with pytest.raises(ModelError):
            FaissRetriever(StaticEncoder(broken)).index(items_of(TEXTS), tmp_path / "index")
    (broken / "model.safetensors").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match=r"broken.*does not load as static embeddings"):
        StaticEncoder(broken).encode_queries(["fox"])


@pytest.mark.filterwarnings("ignore:word_vectors.* have no word with a vector")
def test_on_the_command_line(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from nlp_retrieval.encoders.word_vectors import write_word_vectors

    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": f"d{n}", "content": text}) + "\n" for n, text in enumerate(TEXTS)), "utf-8")
    words = sorted({word.lower() for text in TEXTS for word in text.split()})
    write_word_vectors(tmp_path / "words", words, np.eye(len(words), dtype=np.float32), [1.0] * len(words))
    run = CliRunner().invoke
    made = run(app, ["index", str(corpus), str(tmp_path / "static"), "--distill", f"word_vectors:model={tmp_path / 'words'}"])
    assert made.exit_code == 0, made.output
    encoder = f"{{name: static, model: {tmp_path / 'static'}}}"
    indexed = run(app, ["index", str(corpus), str(tmp_path / "index"), "-r", f"faiss:encoder={encoder}"])
    assert indexed.exit_code == 0, indexed.output
    wrong = run(app, ["index", str(corpus), str(tmp_path / "static"), "--distill", f"word_vectors:model={tmp_path / 'words'}"])
    assert wrong.exit_code != 0
    assert "is not empty" in wrong.output
