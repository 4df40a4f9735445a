"""Word vectors trained on a corpus: word2vec's skip-gram with negative sampling, the same bytes for the same corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders.word_vectors.files import write_word_vectors
from nlp_retrieval.errors import ConfigurationError, DependencyError, ItemError, install
from nlp_retrieval.text.stems import stems_of_language

__all__ = ["train_word_vectors"]


def train_word_vectors(
    items: Iterable[SearchableItem],
    folder: str | Path,
    *,
    dimension: int = 300,
    window: int = 5,
    epochs: int = 10,
    min_count: int = 2,
    seed: int = 0,
) -> int:
    """Train word vectors on the texts of items (Mikolov et al., NeurIPS 2013) and write them into a folder.

    One thread, a fixed order and a fixed seed: the same corpus gives the same vectors on the same machine.

    Args:
        items: the corpus; their words are held in memory.
        folder: for :class:`WordVectorEncoder` to name.
        dimension: of the vectors.
        window: words on each side that are foretold.
        epochs: passes over the corpus.
        min_count: rarer words get no vector.
        seed: of the first vectors and of what is drawn.

    Returns:
        How many words have a vector.

    Raises:
        ConfigurationError: a number is not positive.
        ItemError: no word is frequent enough.
        OutputError: the folder cannot be written.
        DependencyError: gensim is not installed.
    """
    settings = {"dimension": dimension, "window": window, "epochs": epochs, "min_count": min_count}
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"train_word_vectors: {name}={value!r}; a whole number from 1 is needed")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise DependencyError(f"training word vectors needs gensim: {install('word-vectors')}") from None
    stems = stems_of_language(None)
    texts = [stems.words(item.text) for item in items]
    frequencies = Counter(word for words in texts for word in set(words))
    counts = Counter(word for words in texts for word in words)
    if not any(count >= min_count for count in counts.values()):
        raise ItemError(f"no word stands {min_count} times or more in {len(texts):,} texts; nothing can be trained")
    trained = Word2Vec(
        sentences=list(_sentences(texts)),
        vector_size=dimension,
        window=window,
        epochs=epochs,
        min_count=min_count,
        seed=seed,
        sg=1,
        workers=1,
        sorted_vocab=1,
    ).wv
    words = list(trained.index_to_key)
    idf = [math.log((len(texts) + 1) / frequencies[word]) for word in words]
    write_word_vectors(Path(folder), words, np.asarray(trained.vectors, np.float32), idf)
    return len(words)


def _sentences(texts: list[list[str]], longest: int = 5000) -> Iterator[list[str]]:
    """The texts in pieces that the trainer takes whole: it leaves out what is beyond 10,000 words."""
    for words in texts:
        for first in range(0, len(words), longest):
            yield words[first : first + longest]
