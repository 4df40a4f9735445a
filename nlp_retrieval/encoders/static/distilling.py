"""Distilling: any encoder becomes a table of vectors, one for each token of a corpus.

Each token is encoded as a text of its own; the vectors are centred, turned to their main axes and shortened, and scaled by how
rare the token is in the corpus (smooth inverse frequency: Arora, Liang and Ma, ICLR 2017). Nothing is drawn at random: the same
encoder, corpus and settings give the same bytes on the same machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.output import check_folder_for_output, write_output
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.encoders.base import BaseEncoder, checked_vectors
from nlp_retrieval.encoders.made_models import kept_model
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.encoders.static.encoder import require_static_extra
from nlp_retrieval.encoders.static.vocabulary import Vocabulary, vocabulary_note, vocabulary_of
from nlp_retrieval.errors import ConfigurationError, OutputError

_FORMAT = 1
_FILES = ("model.safetensors", "tokenizer.json", "modules.json", "config.json")
"""In the order in which they are written: without the last, a folder is no model."""
_BATCH = 4096


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
        folder: where to write, which must not hold anything yet; by default the user's cache, where the same encoder, words and
            settings are found again in any case.
        dimension: of the vectors; no more than the encoder's.
        most_words: at most so many whole words of the corpus, the most frequent first.
        min_count: rarer words are made of pieces.
        smoothing: a token with the share p of the corpus is scaled by ``smoothing / (smoothing + p)``.

    Returns:
        The folder.

    Raises:
        ConfigurationError: a number is out of range.
        ItemError: the corpus has no words.
        ModelError: the encoder cannot be used.
        OutputError: the folder cannot be written, or holds something.
        DependencyError: model2vec is not installed.
    """
    for name, value in {"dimension": dimension, "most_words": most_words, "min_count": min_count}.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < (0 if name == "most_words" else 1):
            raise ConfigurationError(f"distill_static: {name}={value!r}; a whole number above 0 is needed")
    if isinstance(smoothing, bool) or not isinstance(smoothing, int | float) or not 0 < smoothing <= 1:
        raise ConfigurationError(f"distill_static: smoothing={smoothing!r}; a number above 0, up to 1, is needed")
    require_static_extra()
    source = SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
    if not isinstance(source, BaseEncoder):
        raise ConfigurationError(f"distill_static: {source!r} gives no vector for a text; name an encoder that does")
    if folder is not None:
        _require_free(Path(folder))
    vocabulary = vocabulary_of((item.text for item in items), source, most_words, min_count)

    def write(scratch: Path) -> None:
        _write(source, vocabulary, dimension, smoothing, scratch)

    settings = {"dimension": dimension, "smoothing": smoothing, "vocabulary": vocabulary.digest()}
    kept = kept_model("static", {"format": _FORMAT, "encoder": source.identity} | settings, write)
    if folder is None:
        return kept
    for name in _FILES:
        write_output(Path(folder) / name, (kept / name).read_bytes())
    return Path(folder)


def _require_free(folder: Path) -> None:
    """Refuse a folder with anything in it but what a run left that was killed before the last file."""
    check_folder_for_output(folder)
    there = {file.name for file in folder.iterdir() if not file.name.startswith(".")} if folder.exists() else set()
    if not there <= set(_FILES[:-1]):
        raise OutputError(f"{folder} is not empty ({min(there)}); name another folder, or remove it first")


def _write(encoder: BaseEncoder, vocabulary: Vocabulary, dimension: int, smoothing: float, folder: Path) -> None:
    from safetensors.numpy import save_file

    table = _vectors_of(encoder, vocabulary, dimension)
    shares = (vocabulary.counts + 1) / (vocabulary.counts + 1).sum()
    table *= (smoothing / (smoothing + shares))[:, None]
    save_file({"embeddings": np.ascontiguousarray(table, np.float32)}, folder / "model.safetensors")
    vocabulary.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True, "max_length": None}
    noted = settings | {"embedding_dtype": "float32", "hidden_dim": table.shape[1]} | vocabulary_note(vocabulary.tokens)
    (folder / "config.json").write_text(json.dumps(noted, indent=1), "utf-8")
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate([(".", "StaticEmbedding"), ("1_Normalize", "Normalize")])
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=1), "utf-8")


def _vectors_of(encoder: BaseEncoder, vocabulary: Vocabulary, dimension: int) -> NDArray[np.float64]:
    """``[tokens, dimension]``: centred and turned to the main axes; zeros for tokens that stand for no text."""
    spoken = np.flatnonzero(vocabulary.spoken())
    texts = [text for text, speaks in zip(vocabulary.as_texts(), vocabulary.spoken(), strict=True) if speaks]
    batches = [texts[first : first + _BATCH] for first in range(0, len(texts), _BATCH)]
    encoded: list[NDArray[np.float32]] = []
    for batch in tracked("static: encoding tokens", batches, len(texts)):
        known = encoded[0].shape[1] if encoded else None
        encoded.append(checked_vectors(encoder.encode_passages(batch), batch, encoder, known))
    vectors = np.concatenate(encoded).astype(np.float64)
    vectors -= vectors.mean(axis=0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    axes = axes[:, ::-1][:, :dimension]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    table = np.zeros((len(vocabulary.tokens), axes.shape[1]))
    table[spoken] = vectors @ (axes * np.where(largest < 0, -1.0, 1.0))
    return table
