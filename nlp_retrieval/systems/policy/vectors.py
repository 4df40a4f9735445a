"""Word vectors of an index, trained on its own passages: the second embedding of a study, by default.

They are kept in the index directory, under the fingerprint of the passages, and trained again when these change.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
import warnings
from dataclasses import dataclass

from nlp_retrieval import MultiSignalReranker, Searcher, WordVectorEncoder
from nlp_retrieval.core import BaseSearcher, ItemTable, progress
from nlp_retrieval.encoders import train_word_vectors
from nlp_retrieval.errors import DependencyError, ModelError, OutputError, RetrievalWarning
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.text import stems_of_language

FOLDER = "word_vectors"
"""Name of the folder in an index directory."""

LEAST_WORDS = 20_000
"""Words of a corpus that vectors can be trained on: what they are worth with how many is in bench/POLICY.md."""

_SIGNAL = "word_vectors"


@dataclass(frozen=True)
class TrainedVectors:
    """Word vectors of an index."""

    encoder: WordVectorEncoder | None
    line: str


def vectors_of(searcher: BaseSearcher, language: str | None) -> TrainedVectors:
    """Return the word vectors of an opened index, after training them if it has none for its present passages."""
    generation = searcher.opened
    identity = f"{generation.manifest.corpus.fingerprint} {language}"
    folder = generation.path / FOLDER / hashlib.sha256(identity.encode()).hexdigest()[:12]
    encoder = WordVectorEncoder(folder)
    try:
        encoder.encode_queries([])
    except ModelError:  # there are none, or they are damaged
        encoder = WordVectorEncoder(folder)
    else:
        return TrainedVectors(encoder, f"word vectors of this index: {folder}")
    n_words = _count(generation.items, language)
    if n_words < LEAST_WORDS:
        what = f"the index has {n_words:,} words, and training needs {LEAST_WORDS:,}"
        return TrainedVectors(None, f"no word vectors: {what}")
    begin = time.perf_counter()
    try:
        with progress("training word vectors", 1) as advance:
            n_vectors = train_word_vectors(generation.items.stream_live(), folder, language=language)
            advance(1)
    except (DependencyError, OutputError) as error:
        return TrainedVectors(None, f"no word vectors: {error}")
    for other in folder.parent.iterdir():
        if other != folder and other.is_dir() and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)
    seconds = time.perf_counter() - begin
    line = f"word vectors: {n_vectors:,}, trained on the {n_words:,} words of the index ({seconds:.1f} s): {folder}"
    return TrainedVectors(encoder, line)


def with_word_vectors(searcher: BaseSearcher) -> BaseSearcher:
    """Return a searcher whose reranker has word vectors of the index, if it scores by them and was given none."""
    reranker = searcher.reranker if isinstance(searcher, Searcher) else None
    if not isinstance(reranker, MultiSignalReranker) or reranker.word_vectors is not None or not reranker.weights[_SIGNAL]:
        return searcher
    if any(getattr(part, _SIGNAL, None) is not None for part in searcher.retrievers.values()):
        return searcher  # they come with the passages
    found = vectors_of(searcher, reranker.profile.language)
    note(logging.INFO, "run", found.line)
    if found.encoder is None:
        warnings.warn(f"{found.line}; word2vec_similarity is null, and the other signals count", RetrievalWarning, stacklevel=3)
        if not any(weight for name, weight in reranker.weights.items() if name != _SIGNAL):
            return searcher
    changed = {"word_vectors": found.encoder} if found.encoder is not None else {f"{_SIGNAL}_weight": 0.0}
    scoring = type(reranker)(**reranker._arguments | changed)
    return type(searcher)(**searcher._arguments | {"reranker": scoring}).open(searcher.opened.path)


def _count(items: ItemTable, language: str | None) -> int:
    """Return the number of words of an index, as far as it matters."""
    words = stems_of_language(language).as_written
    return sum(len(words(item.text)) for item in items.stream_live())
