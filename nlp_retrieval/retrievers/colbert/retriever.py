"""Late interaction: a vector per token, compressed on disk, and MaxSim (ColBERTv2; Santhanam et al., NAACL 2022).

The parts: ``build`` writes an index in bounded memory, with the codec of ``codec`` on the centroids of ``centroids``;
``files`` opens it; ``search`` searches it, by the loops of ``steps`` or the same loops compiled, ``kernel``, which
``divided`` shares out among threads; ``exact`` searches an index that is not compressed; ``join`` joins segments. Items that
join an index are compressed by its codec, unless that was trained on far fewer tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.backend import Backend
from nlp_retrieval.core.candidates import Hits, Mask, Rows, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.files.column_streams import Stream
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.measure import stage
from nlp_retrieval.core.notes import ENCODER_LIMIT, warn_of_cut
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.joining.merge import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.passages import encoded_tokens
from nlp_retrieval.encoders.token_base import BaseTokenEncoder, checked_tokens
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers.colbert.build import TOKENS, sample_tokens, write_compressed
from nlp_retrieval.retrievers.colbert.codec import Bits, Codec, Compressor, compressor_of, train_compressor
from nlp_retrieval.retrievers.colbert.exact import ExactIndex
from nlp_retrieval.retrievers.colbert.files import (
    ColbertFiles,
    Compressed,
    Sizes,
    codec_of,
    open_files,
    open_segments,
    start_of,
    write_projection,
    write_settings,
)
from nlp_retrieval.retrievers.colbert.join import join_segments, live_counts
from nlp_retrieval.retrievers.colbert.search import CompressedIndex, SearchSettings

_BATCH = 256
_FEW_CENTROIDS = 64
_OUTGROWN = 4


class ColbertRetriever(BaseRetriever):
    """Late interaction over compressed token vectors, searched as PLAID does (Santhanam et al., CIKM 2022).

    A token takes 2 or 4 bytes for its centroid and ``bits`` per dimension for the rest: 34 bytes at 128 dimensions and 2 bits
    (36 above 65,536 centroids), 66 at 4 bits; inverted lists take up to 4 more. While building, a temporary file in the index
    directory takes 256 bytes per token. Passages without a token are never found; one warning counts the passages that are
    longer than the encoder reads.

    The same token vectors give the same files and lists, to the bit, on any number of threads and any CPU of an architecture.

    Added passages are compressed by the centroids and weights of the index, and searched beside the earlier ones:
    candidates are chosen, and ``rescored`` of them scored, in each segment separately. A passage's score does not change
    when segments are joined, to the bit, and a list can differ only where ``rescored`` cut candidates off. An index built at
    once would train its centroids on all passages: its scores differ by no more than compression loses (with ``bits=None``
    they are equal). If the added passages need more than four times the centroids of the index, or the index has fewer than
    64, new centroids are trained: on the added passages, and on all passages once segments are joined. Only then are
    passages encoded again.

    Args:
        encoder: a model's hub name, a local folder, or a token encoder.
        bits: bits per dimension, 2 or 4. None stores tokens as float16 and scores every passage, which is exact and slow.
        centroids: number of centroids; by default the power of two below 16 times the square root of the number of tokens.
        train_size: the most tokens sampled for training centroids, in memory; the default takes 256 MB at 128 dimensions.
        seed: seed of the sample and of the k-means.
        nprobe: how many centroids per query token give candidates; more if they give too few.
        rescored: how many of the candidates are scored exactly; at least twice k.
        prune: the first scoring of candidates skips tokens whose centroid has a cosine below this with every token of the
            query.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would. All give the
            same results.
    """

    name = "colbert"
    manifest_may_set = may_set(
        *("bits", "centroids", "train_size", "seed", "nprobe", "rescored", "prune", "merge", "backend"), encoder=reads_model
    )
    search_only = frozenset({"nprobe", "rescored", "prune", "merge", "backend"})

    def __init__(
        self,
        encoder: str | BaseTokenEncoder = "colbert-ir/colbertv2.0",
        bits: Literal[2, 4] | None = 4,
        centroids: Annotated[int, Field(ge=1)] | None = None,
        train_size: Annotated[int, Field(ge=256)] = 500_000,
        seed: Annotated[int, Field(ge=0)] = 0,
        nprobe: Annotated[int, Field(ge=1)] = 4,
        rescored: Annotated[int, Field(ge=1)] = 1024,
        prune: Annotated[float, Field(ge=-1, le=1)] = 0.4,
        merge: MergeRule = "alternate",
        backend: Backend = "auto",
    ) -> None:
        self.encoder = ColbertEncoder(encoder) if isinstance(encoder, str) else encoder
        self.bits: Bits | None = bits
        self.centroids = centroids
        self.train_size = train_size
        self.seed = seed
        self.nprobe = nprobe
        self.rescored = rescored
        self.prune = prune
        self.merge = merge
        self.backend: Backend = backend
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def index_identity(self) -> Config:
        identity = super().index_identity()
        if self.bits is None:
            return {key: value for key, value in identity.items() if key not in ("centroids", "train_size", "seed")}
        return identity

    def build(self, items: ItemTable, folder: Path) -> None:
        self._write(items, folder, self.encoder, None)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self._write(items, folder, self._encoder_of(segments[0]), codec_of(segments))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        opened, codec, encoder = open_segments(segments), codec_of(segments), self._encoder_of(segments[0])
        live = live_counts(segments, opened)
        if codec is not None and not self._suffices(codec, sum(int(counts.sum()) for counts in live)):
            self._write(items, folder, encoder, None)
            return

        def encode(first: int, end: int) -> Iterator[Vectors]:
            texts = _part_of(items, first, end)
            return (batch.rows for batch in encoded_tokens(encoder, texts, end - first, f"{first}:{end}"))

        join_segments(segments, opened, live, codec, folder, encode)

    def load(self, folder: Path) -> None:
        self._take([open_files(folder)])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._take(open_segments(segments))

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            tokens = self.encode(queries)
        return self.search_tokens(tokens, k, allowed)

    def encode(self, queries: list[str]) -> list[Vectors]:
        """Return the token vectors of queries, ``[tokens, dimension]`` each; for an opened retriever."""
        tokens: list[Vectors] = []
        for part in tracked("colbert: encoding queries", _slices(queries), len(queries)):
            tokens += checked_tokens(self.encoder.encode_queries(part), part, self.encoder)
        self._warn_of_cut(self.encoder.cut_queries(queries), len(queries), "queries")
        return tokens

    def search_tokens(self, tokens: list[Vectors], k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""
        has_tokens = [number for number, vectors in enumerate(tokens) if len(vectors)]
        queries = [tokens[number] for number in has_tokens]
        if isinstance(self._index, ExactIndex):
            hits = self._index.search(queries, k, allowed)
        else:
            settings = SearchSettings(self.nprobe, self.rescored, self.prune, self.backend)
            hits = self._index.search(queries, k, allowed, settings)
        counts = np.zeros(len(tokens), np.int64)
        counts[has_tokens] = np.diff(hits.offsets)
        return Hits(offsets_of(counts), hits.rows, hits.scores)

    def _encoder_of(self, segment: SegmentFolder) -> BaseTokenEncoder:
        """The encoder with the projection of a segment."""
        sizes, projection = start_of(segment)
        encoder = self.encoder if projection is None else self.encoder.with_projection(projection)
        if encoder.dimension != sizes.dimension:
            raise ModelError(
                f"{encoder!r} gives vectors of dimension {encoder.dimension}, and those in {segment.folder} have "
                f"{sizes.dimension}; use the model that was indexed, or index again"
            )
        return encoder

    def _take(self, opened: Sequence[ColbertFiles]) -> None:
        """Open these segments for searching."""
        compressed = [(files.offsets, files.tokens) for files in opened if isinstance(files.tokens, Compressed)]
        whole = [(files.offsets, files.tokens) for files in opened if not isinstance(files.tokens, Compressed)]
        self._index: ExactIndex | CompressedIndex
        self._index = CompressedIndex(compressed) if compressed else ExactIndex(whole)
        if opened[0].projection is not None:
            self.encoder = self.encoder.with_projection(opened[0].projection)

    def _write(self, items: ItemTable, folder: Path, encoder: BaseTokenEncoder, codec: Codec | None) -> None:
        """Write an index of items; a codec is trained if the given one does not suffice."""
        offsets = self._write_tokens(items, folder / TOKENS, encoder)
        n_tokens = int(offsets[-1])
        np.save(folder / "offsets.npy", offsets, allow_pickle=False)
        n_centroids = n_listed = 0
        if self.bits is not None:
            if codec is not None and self._suffices(codec, n_tokens):
                trained = compressor_of(codec, n_tokens, self.seed)
            else:
                trained = self._trained(folder, n_tokens, self.bits)
            n_centroids = len(trained.codec.centroids)
            n_listed = write_compressed(folder, trained, offsets)
            (folder / TOKENS).unlink()
        projected_from = write_projection(folder, encoder.projection_matrix())
        sizes = (len(items), n_tokens, encoder.dimension, self.bits or 0, n_centroids, n_listed, projected_from)
        write_settings(folder, Sizes(*sizes))

    def _trained(self, folder: Path, n_tokens: int, bits: Bits) -> Compressor:
        n_centroids = self._n_centroids(n_tokens)
        sample = sample_tokens(folder, n_tokens, self.train_size, self.seed)
        return train_compressor(sample, n_centroids, bits, self.seed)

    def _write_tokens(self, items: ItemTable, path: Path, encoder: BaseTokenEncoder) -> Rows:
        """Encode all items into a file of float16, and return where the tokens of each begin."""
        counts = np.zeros(len(items), np.int64)
        first = n_cut = 0
        with Stream(path, np.float16, encoder.dimension) as stream:
            batches = tracked("colbert: encoding", items.texts(_BATCH), len(items))
            for batch in encoded_tokens(encoder, batches, len(items)):
                counts[first : first + len(batch.counts)] = batch.counts
                stream.write(batch.rows)
                n_cut += batch.n_cut
                first += len(batch.counts)
        self._warn_of_cut(n_cut, len(items), "passages")
        return offsets_of(counts)

    def _n_centroids(self, n_tokens: int) -> int:
        n_trained = min(n_tokens, self.train_size)
        if self.centroids is None:
            return 1 << int(math.log2(max(1, min(16 * math.sqrt(n_tokens), n_trained / 4))))
        if self.centroids > n_trained:
            raise ConfigurationError(
                f"colbert: centroids={self.centroids} cannot be trained on {n_trained} tokens; lower it, or leave it out"
            )
        return self.centroids

    def _suffices(self, codec: Codec, n_tokens: int) -> bool:
        """Whether a codec was trained on enough tokens to compress this many."""
        if self.centroids is not None:
            return True
        count = len(codec.centroids)
        return n_tokens == 0 or (count >= _FEW_CENTROIDS and _OUTGROWN * count >= self._n_centroids(n_tokens))

    def _warn_of_cut(self, n_cut: int, n_all: int, what: str) -> None:
        limit, cure = ENCODER_LIMIT
        if what == "queries":
            cure = "where the model can read more, raise query_length"
        warn_of_cut(self.name, n_cut, n_all, limit, cure, what)


def _part_of(items: ItemTable, first: int, end: int) -> Iterator[list[str]]:
    """The texts of the rows ``first:end``, in batches."""
    begin = 0
    for texts in items.texts(_BATCH):
        part = texts[max(first - begin, 0) : max(end - begin, 0)]
        begin += len(texts)
        if part:
            yield part


def _slices(queries: list[str]) -> list[list[str]]:
    return [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
