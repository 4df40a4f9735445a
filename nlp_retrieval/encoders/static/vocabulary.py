"""Which tokens get a vector: the pieces of words that a model knows, and the whole words of a corpus."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.encoders.base import BaseEncoder
from nlp_retrieval.encoders.shared_models import ModelHolder
from nlp_retrieval.errors import ItemError, ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DIGEST = "vocabulary_sha256"
_MOST_JSON = 1 << 28
_JOINED = "##"
_UNKNOWN = "[UNK]"
_MOST_CHARACTERS = 100
_BATCH = 1000


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a corpus.

    Args:
        tokenizer: splits a text into them.
        tokens: by their numbers.
        counts: how often each stands in the corpus.
    """

    tokenizer: Tokenizer
    tokens: list[str]
    counts: NDArray[np.int64]

    def spoken(self) -> NDArray[np.bool_]:
        """Which tokens stand for text, and not for a place in a model's input."""
        return np.array([not (token.startswith("[") and token.endswith("]") and len(token) > 2) for token in self.tokens])

    def as_texts(self) -> list[str]:
        """What is encoded for each token: a piece from within a word without its mark."""
        return [token.removeprefix(_JOINED) or token for token in self.tokens]

    def digest(self) -> str:
        """Of the tokens in their order, and how often each stands in the corpus."""
        return hashlib.sha256(canonical_json([self.tokens, self.counts.tolist()]).encode()).hexdigest()


def vocabulary_of(texts: Iterable[str], encoder: BaseEncoder, most_words: int, min_count: int) -> Vocabulary:
    """Return the tokens of a corpus: a model's own pieces of words where it has such, else characters; and whole words.

    Args:
        texts: the corpus; its distinct words are held in memory.
        encoder: whose pieces of words are taken, where it is a local model of WordPiece.
        most_words: at most so many whole words, the most frequent first.
        min_count: rarer words are made of pieces.

    Raises:
        ItemError: the texts hold no words.
        ModelError: the model's tokenizer cannot be read.
    """
    from tokenizers.models import WordPiece

    tokenizer, pieces = _pieces_of(encoder)
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text)))
    if not words:
        raise ItemError("the corpus has no words; a vocabulary cannot be made of it")
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


def vocabulary_note(tokens: Sequence[str]) -> dict[str, str]:
    """What a folder's settings say of its vocabulary, for :func:`check_vocabulary`."""
    return {_DIGEST: hashlib.sha256(canonical_json(list(tokens)).encode()).hexdigest()}


def check_vocabulary(settings: Mapping[str, Any], tokens: Sequence[str], folder: Path) -> None:
    """Compare a tokenizer with the vocabulary that vectors were distilled over.

    Raises:
        ModelError: it is another one. Settings that do not say are taken as they are.
    """
    noted = settings.get(_DIGEST)
    if noted is not None and noted != vocabulary_note(tokens)[_DIGEST]:
        raise ModelError(
            f"{folder}: the vectors were distilled over another vocabulary than that of tokenizer.json, so each token would "
            "get the vector of another; put the file back that belongs to them, or distil again"
        )


def _pieces_of(encoder: BaseEncoder) -> tuple[Tokenizer, list[str]]:
    """A tokenizer that splits texts into words as the model does, and the model's pieces of words; else as BERT does."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    file = encoder.files.folder / "tokenizer.json" if isinstance(encoder, ModelHolder) else None
    if file is not None and file.is_file():
        try:
            told = read_json_file(file, max_bytes=_MOST_JSON)
        except (OSError, ValueError) as error:
            raise ModelError(f"{file} cannot be read ({error}); put the model's own file back") from None
        own = told.get("model") if isinstance(told, dict) else None
        if isinstance(own, dict) and own.get("type") == "WordPiece" and isinstance(own.get("vocab"), dict):
            tokenizer = Tokenizer.from_file(str(file))
            vocabulary = tokenizer.get_vocab()
            usual = own.get("continuing_subword_prefix") == _JOINED and own.get("unk_token") == _UNKNOWN in vocabulary
            whole = sorted(vocabulary.values()) == list(range(len(vocabulary)))
            if usual and whole and tokenizer.normalizer is not None and tokenizer.pre_tokenizer is not None:
                tokenizer.no_padding()
                tokenizer.no_truncation()
                return tokenizer, sorted(vocabulary, key=lambda token: vocabulary[token])
    tokenizer = Tokenizer(WordPiece({_UNKNOWN: 0}, unk_token=_UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    return tokenizer, []
