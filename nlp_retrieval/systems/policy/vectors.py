"""Word vectors of an index, trained on its own passages: the second embedding of a study, by default.

They are kept in the index directory, under the fingerprint of the passages, and trained again when these change.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import warnings
from contextlib import suppress

from nlp_retrieval import MultiSignalReranker, Searcher, WordVectorEncoder
from nlp_retrieval.core import BaseSearcher, progress
from nlp_retrieval.encoders import train_word_vectors
from nlp_retrieval.errors import DependencyError, ModelError, OutputError, RetrievalWarning
from nlp_retrieval.systems.policy.log import note
from nlp_retrieval.text import stems_of_language

FOLDER = "word_vectors"
"""Name of the folder in an index directory."""

LEAST_WORDS = 20_000
"""Words of a corpus that vectors can be trained on: what they are worth with how many is in bench/POLICY.md."""

_SIGNAL = "word_vectors"


def with_word_vectors(searcher: BaseSearcher) -> BaseSearcher:
    """Return a searcher whose reranker has word vectors of the index, if it scores by them and was given none."""
    reranker = searcher.reranker if isinstance(searcher, Searcher) else None
    if not isinstance(reranker, MultiSignalReranker) or reranker.word_vectors is not None or not reranker.weights[_SIGNAL]:
        return searcher
    if any(getattr(part, _SIGNAL, None) is not None for part in searcher.retrievers.values()):
        return searcher  # they come with the passages
    encoder, lacking = _trained(searcher, reranker.profile.language)
    if lacking:
        warnings.warn(
            f"no word vectors: {lacking}; word2vec_similarity is null, and the other signals count",
            RetrievalWarning,
            stacklevel=3,
        )
        if not any(weight for name, weight in reranker.weights.items() if name != _SIGNAL):
            return searcher
    changed = {f"{_SIGNAL}_weight": 0.0} if lacking else {"word_vectors": encoder}
    scoring = type(reranker)(**reranker._arguments | changed)
    return type(searcher)(**searcher._arguments | {"reranker": scoring}).open(searcher.opened.path)


def _trained(searcher: BaseSearcher, language: str | None) -> tuple[WordVectorEncoder, str]:
    """Return the word vectors of an opened index, trained if it has none for its present passages; and why there are none."""
    generation = searcher.opened
    identity = f"{generation.manifest.corpus.fingerprint} {language}"
    folder = generation.path / FOLDER / hashlib.sha256(identity.encode()).hexdigest()[:12]
    with suppress(ModelError):  # there are none, or they are damaged
        (encoder := WordVectorEncoder(folder)).encode_queries([])
        return encoder, ""
    encoder = WordVectorEncoder(folder)
    words = stems_of_language(language).as_written
    n_words = sum(len(words(item.text)) for item in generation.items.stream_live())
    if n_words < LEAST_WORDS:
        return encoder, f"the index has {n_words:,} words, and training needs {LEAST_WORDS:,}"
    try:
        with progress("training word vectors", 1) as advance:
            n_vectors = train_word_vectors(generation.items.stream_live(), folder, language=language)
            advance(1)
    except (DependencyError, OutputError) as error:
        return encoder, str(error)
    for other in folder.parent.iterdir():
        if other != folder and other.is_dir() and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)
    note(logging.INFO, "run", f"word vectors: {n_vectors:,}, trained on the {n_words:,} words of the index: {folder}")
    return encoder, ""
