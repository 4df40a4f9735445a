"""Static embeddings: a vector for each token, looked up and averaged; read from a folder, or distilled from an encoder."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.components.trust_rules import MODEL_RULES, may_set
from nlp_retrieval.core.files.atomic import check_folder_for_output, write_output
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.models import ModelFolder, ModelHolder, as_model_error, find_model, kept_model, turn_of
from nlp_retrieval.encoders.sentence_transformer import as_encoder, require_cosine
from nlp_retrieval.errors import ConfigurationError, DependencyError, ItemError, ModelError, OutputError, first_line, install

if TYPE_CHECKING:
    from model2vec import StaticModel
    from tokenizers import Tokenizer

# Tokens with a vector: a model's pieces of words, and the whole words of a corpus.

_MOST_JSON = 1 << 28
_JOINED = "##"
_UNKNOWN = "[UNK]"
_MOST_CHARACTERS = 100
_BATCH = 1000


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a corpus."""

    tokenizer: Tokenizer
    tokens: list[str]
    counts: NDArray[np.int64]

    def spoken(self) -> dict[int, str]:
        """Return the tokens that are text, and not markers in a model's input: a piece from within a word without its mark."""
        is_marker = re.compile(r"\[.+\]").fullmatch
        return {n: token.removeprefix(_JOINED) or token for n, token in enumerate(self.tokens) if not is_marker(token)}


def vocabulary_of(texts: Iterable[str], encoder: BaseEncoder, most_words: int, min_count: int) -> Vocabulary:
    """Return the tokens of a corpus: a model's own pieces of words if it has any, else characters; and whole words."""
    from tokenizers.models import WordPiece

    tokenizer, pieces = _pieces_of(encoder)
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text)))
    if not words:
        raise ItemError("the corpus has no words to make a vocabulary from")
    ordered = sorted(words, key=lambda word: (-words[word], word))
    if not pieces:
        letters = sorted({letter for word in ordered for letter in word})
        pieces = [_UNKNOWN, *letters, *(_JOINED + letter for letter in letters)]
    frequent = [word for word in ordered if words[word] >= min_count and word.isalnum() and len(word) <= _MOST_CHARACTERS]
    tokens = list(dict.fromkeys([*pieces, *frequent[:most_words]]))
    numbers = {token: number for number, token in enumerate(tokens)}
    tokenizer.model = WordPiece(numbers, unk_token=_UNKNOWN, max_input_chars_per_word=_MOST_CHARACTERS)
    counts = np.zeros(len(tokens), np.int64)
    for first in range(0, len(ordered), _BATCH):
        batch = ordered[first : first + _BATCH]
        for word, encoded in zip(batch, tokenizer.encode_batch_fast(batch, add_special_tokens=False), strict=True):
            np.add.at(counts, encoded.ids, words[word])
    return Vocabulary(tokenizer, tokens, counts)


def _pieces_of(encoder: BaseEncoder) -> tuple[Tokenizer, list[str]]:
    """A tokenizer that splits texts into words as the model does, and the model's pieces of words; else as BERT does."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    file = encoder.files.folder / "tokenizer.json" if isinstance(encoder, ModelHolder) else None
    if file is not None and file.is_file():
        with as_model_error(str(file)):
            tokenizer = Tokenizer.from_file(str(file))
            model = read_json_file(file, max_bytes=_MOST_JSON)["model"]
        usual = model.get("type") == "WordPiece" and model.get("continuing_subword_prefix") == _JOINED
        if usual and model.get("unk_token") == _UNKNOWN and tokenizer.normalizer and tokenizer.pre_tokenizer:
            vocabulary = tokenizer.get_vocab()
            tokenizer.no_padding()
            tokenizer.no_truncation()
            return tokenizer, sorted(vocabulary, key=vocabulary.__getitem__)
    tokenizer = Tokenizer(WordPiece({_UNKNOWN: 0}, unk_token=_UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    return tokenizer, []


# Encoding without a network: the mean of the tokens' fixed vectors.


class StaticEncoder(ModelHolder["StaticModel"], BaseEncoder):
    """Static embeddings: the mean of a text's token vectors, scaled to length 1 (model2vec: Tulkens and van Dongen, 2024).

    No network is run, so a text costs little more than its tokens; word order and context are lost. The model is any folder or
    hub model of model2vec (``minishlab/potion-base-8M``), or one that :func:`distill_static` makes from another encoder and a
    corpus. Texts of any length are read whole. A text without a known token gets a vector of zeros, which finds nothing.

    Args:
        model: a hub name, or a folder with ``model.safetensors``, ``tokenizer.json`` and ``config.json``.
        revision: commit, tag or branch on the hub.

    Examples:
        >>> Searcher([FaissRetriever(StaticEncoder("minishlab/potion-base-8M"))])
        Searcher(retrievers=[FaissRetriever(encoder=StaticEncoder(model='minishlab/potion-base-8M'))])
    """

    name = "static"
    manifest_may_set = may_set(model=MODEL_RULES["model"], revision=MODEL_RULES["revision"])

    def __init__(self, model: str | Path, revision: str | None = None) -> None:
        self.model = str(model)
        self.revision = revision

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._encode(check_queries(queries))

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"))

    def find_model(self) -> ModelFolder:
        require_static_extra()
        return find_model(self.model, self.revision, local_only=self.local_only)

    def load_model(self) -> StaticModel:
        require_static_extra()
        from model2vec import StaticModel

        folder = self.files.folder
        try:
            model = StaticModel.from_pretrained(folder, normalize=True, max_length=None)
        except Exception as error:
            reason = first_line(error)
            raise ModelError(
                f"{self.model} ({folder}) does not load as static embeddings: {reason}; name a folder of model2vec, or one "
                "that nlp-retrieval index --distill made"
            ) from error
        model.embedding = np.array(model.embedding, np.float32)  # private memory, and means without rounding to 16 bits
        return model

    def _encode(self, texts: list[str]) -> Vectors:
        model = self.open_model()
        if not texts:
            return np.zeros((0, model.dim), np.float32)
        with turn_of(model), as_model_error(self.model):
            vectors: Vectors = model.encode(texts, use_multiprocessing=False)
        return vectors


def require_static_extra() -> None:
    """Raise :class:`DependencyError` unless model2vec is installed."""
    if importlib.util.find_spec("model2vec") is None:
        raise DependencyError(f"static embeddings need model2vec: {install('static')}")


# Distilling: any encoder becomes a table of vectors, one for each token of a corpus.
#
# Each token is encoded as a text of its own; the vectors are centred, reduced to their principal axes, and scaled by the rarity
# of the token in the corpus (smooth inverse frequency: Arora, Liang and Ma, ICLR 2017). Nothing is random: the same encoder,
# corpus and settings give the same bytes on the same machine.

_DISTILLING_BATCH = 4096


def distill_static(
    encoder: str | BaseEncoder,
    items: Iterable[SearchableItem],
    folder: str | Path | None = None,
    *,
    dimension: int = 256,
    most_words: int = 30_000,
    min_count: int = 2,
    smoothing: float = 1e-4,
) -> Path:
    """Distil an encoder into static embeddings over the words of a corpus, for :class:`StaticEncoder` to read.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        items: the corpus; its distinct words are held in memory.
        folder: an empty folder to write to; by default the user's cache, where the same encoder, words and settings are found
            again in any case.
        dimension: of the vectors; no more than the encoder's.
        most_words: most whole words of the corpus, the most frequent first.
        min_count: rarer words are split into pieces.
        smoothing: a token with the share p of the corpus is scaled by ``smoothing / (smoothing + p)``.

    Returns:
        The folder.

    Raises:
        ConfigurationError: a number is out of range.
        ItemError: the corpus has no words.
        ModelError: the encoder cannot be used.
        OutputError: the folder cannot be written, or is not empty.
        DependencyError: model2vec is not installed.

    Examples:
        >>> folder = distill_static("sentence-transformers/all-MiniLM-L6-v2", items)  # doctest: +SKIP
        >>> FaissRetriever(StaticEncoder(folder))  # doctest: +SKIP
    """
    for name, value, least in (("dimension", dimension, 1), ("most_words", most_words, 0), ("min_count", min_count, 1)):
        if value < least:
            raise ConfigurationError(f"distill_static: {name}={value}; at least {least} is needed")
    if not 0 < smoothing <= 1:
        raise ConfigurationError(f"distill_static: smoothing={smoothing}; a number above 0, up to 1, is needed")
    require_static_extra()
    source = as_encoder(encoder)
    require_cosine(source, "distill_static")
    if folder is not None:
        check_folder_for_output(Path(folder))
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise OutputError(f"{folder} is not empty; name another folder, or remove it first")
    vocabulary = vocabulary_of((item.text for item in items), source, most_words, min_count)

    def write(scratch: Path) -> None:
        _write(source, vocabulary, dimension, smoothing, scratch)

    words = hashlib.sha256(canonical_json([vocabulary.tokens, vocabulary.counts.tolist()]).encode()).hexdigest()
    settings = {"dimension": dimension, "smoothing": smoothing, "vocabulary": words}
    made = kept_model("static", {"encoder": source.identity} | settings, write)
    if folder is None:
        return made
    for file in made.iterdir():
        write_output(Path(folder) / file.name, file.read_bytes())
    return Path(folder)


def _write(encoder: BaseEncoder, vocabulary: Vocabulary, dimension: int, smoothing: float, folder: Path) -> None:
    from safetensors.numpy import save_file

    table = _vectors_of(encoder, vocabulary, dimension)
    shares = (vocabulary.counts + 1) / (vocabulary.counts + 1).sum()
    table *= (smoothing / (smoothing + shares))[:, None]
    save_file({"embeddings": np.ascontiguousarray(table, np.float32)}, folder / "model.safetensors")
    vocabulary.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings: dict[str, object] = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "normalize": True,
        "max_length": None,
    }
    settings |= {"embedding_dtype": "float32", "hidden_dim": table.shape[1]}
    (folder / "config.json").write_text(json.dumps(settings, indent=1), "utf-8")
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate([(".", "StaticEmbedding"), ("1_Normalize", "Normalize")])
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=1), "utf-8")


def _vectors_of(encoder: BaseEncoder, vocabulary: Vocabulary, dimension: int) -> NDArray[np.float64]:
    """``[tokens, dimension]``: centred and reduced to the principal axes; zeros for tokens that are not text."""
    spoken = vocabulary.spoken()
    texts = list(spoken.values())
    batches = [texts[first : first + _DISTILLING_BATCH] for first in range(0, len(texts), _DISTILLING_BATCH)]
    encoded: list[NDArray[np.float32]] = []
    for batch in tracked("static: encoding tokens", batches, len(texts)):
        known_dimension = encoded[0].shape[1] if encoded else None
        encoded.append(checked_vectors(encoder.encode_passages(batch), batch, encoder, known_dimension))
    vectors = np.concatenate(encoded).astype(np.float64)
    vectors -= vectors.mean(axis=0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    axes = axes[:, ::-1][:, :dimension]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    table = np.zeros((len(vocabulary.tokens), axes.shape[1]))
    table[list(spoken)] = vectors @ (axes * np.where(largest < 0, -1.0, 1.0))
    return table
