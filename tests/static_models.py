"""Static embeddings in a folder, as model2vec saves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hashed_words import HashedWords

_UNKNOWN = "[UNK]"


def save_static(folder: Path, texts: Sequence[str], seed: int = 0, dimension: int = 16) -> Path:
    """Save a random vector for each word of texts, one of zeros for any other; another seed gives other vectors."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordLevel({_UNKNOWN: 0}, unk_token=_UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    pieces = (tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text)) for text in texts)
    words = sorted({word for of_text in pieces for word, _ in of_text})
    tokenizer.model = WordLevel({word: number for number, word in enumerate([_UNKNOWN, *words])}, unk_token=_UNKNOWN)
    vectors = HashedWords(dimension, seed).encode_passages(["", *words])
    StaticModel(np.ascontiguousarray(vectors), tokenizer, normalize=True).save_pretrained(folder)
    return folder
