"""Late interaction: a vector per token, compressed on disk, and MaxSim (ColBERTv2; Santhanam et al., NAACL 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows, offsets_of
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.files.columns import Stream, mapped
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors, checked_tokens
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.passages import encoded_tokens
from nlp_retrieval.errors import ConfigurationError, DependencyError, ModelError, install
from nlp_retrieval.retrievers.colbert.codec import Bits, Codec, train_codec
from nlp_retrieval.retrievers.colbert.files import (
    join_compressed,
    join_exact,
    live_offsets,
    open_codec,
    open_compressed,
    open_exact,
    open_projection,
    sample_tokens,
    token_blocks,
    write_compressed,
)
from nlp_retrieval.retrievers.colbert.search import CompressedIndex, ExactIndex
from nlp_retrieval.retrievers.vectors import warn_of_cut

_BATCH = 256
_FEW_CENTROIDS = 64
_OUTGROWN = 4


class ColbertRetriever(BaseRetriever):
    """Late interaction over compressed token vectors, searched as PLAID does (Santhanam et al., CIKM 2022).

    A token takes 2 or 4 bytes for its centroid and ``bits`` per dimension for the rest: 34 bytes at 128 dimensions and 2 bits
    (36 above 65,536 centroids), 66 at 4 bits; inverted lists take up to 4 more. While building, a temporary file in the index
    directory takes 256 bytes per token. Passages without a token are never found; one warning counts the passages that are
    longer than the encoder reads.

    Added passages are compressed by the centroids and weights of the index, and searched together with the earlier ones. If
    they need more than four times its centroids, or it has fewer than 64, new centroids are trained: on the added passages, and
    on all passages, which are encoded again, once segments are joined.

    Compressed tokens are searched by compiled loops, which need numba; compiling takes two to three seconds, at the first
    search of a process.

    Args:
        encoder: a model's hub name, a local folder, or a token encoder.
        bits: bits per dimension, 2 or 4. None stores tokens as float16 and scores every passage, which is exact and slow.
        centroids: number of centroids; by default the power of two below 16 times the square root of the number of tokens.
        train_size: the most tokens sampled for training centroids, in memory; the default takes 256 MB at 128 dimensions.
        seed: seed of the sample and of the k-means.
        nprobe: number of centroids per query token that give candidates; more if they give too few.
        rescored: number of candidates that are scored exactly; at least twice k.
        prune: the first scoring of candidates skips tokens whose centroid has a cosine below this with every token of the
            query.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([ColbertRetriever("colbert-ir/colbertv2.0", bits=2)])
        Searcher(retrievers=[ColbertRetriever(encoder=ColbertEncoder(), bits=2)])
    """

    name = "colbert"
    manifest_may_set = may_set(
        *("bits", "centroids", "train_size", "seed", "nprobe", "rescored", "prune", "merge"), encoder=reads_model
    )
    format_version = 2
    search_only = frozenset({"nprobe", "rescored", "prune", "merge"})

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
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    def check_ready(self) -> None:
        """Require numba, where tokens are compressed."""
        if self.bits is not None and find_spec("numba") is None:
            raise DependencyError(
                f"colbert needs numba to search compressed tokens: {install('dense')}; or set bits=None, which needs none"
            )

    def build(self, items: ItemTable, folder: Path) -> None:
        self._build(items, folder, self.encoder, None)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        codec = None if self.bits is None else _largest_codec(segments, self.bits)
        self._build(items, folder, self._encoder_of(segments[0].folder), codec)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        encoder = self._encoder_of(segments[0].folder)
        if self.bits is None:
            join_exact(segments, open_exact(segments), folder)
        else:
            opened, codec = open_compressed(segments, self.bits), _largest_codec(segments, self.bits)
            if not self._suffices(codec, int(live_offsets(segments, [files.offsets for files in opened])[-1])):
                self._build(items, folder, encoder, None)
                return
            join_compressed(segments, opened, codec, folder)
        _save_projection(folder, encoder)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._index: ExactIndex | CompressedIndex
        if self.bits is None:
            self._index = ExactIndex(open_exact(segments))
        else:
            self.check_ready()
            self._index = CompressedIndex(open_compressed(segments, self.bits))
        projection = open_projection(segments[0].folder)
        if projection is not None:
            self.encoder = self.encoder.with_projection(projection)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            tokens = self.encode(queries)
        return self.search_tokens(tokens, k, allowed)

    def encode(self, queries: list[str]) -> list[Vectors]:
        """Return the token vectors of queries, ``[tokens, dimension]`` each; for an opened retriever."""
        tokens: list[Vectors] = []
        batches = [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
        for batch in tracked("colbert: encoding queries", batches, len(queries)):
            tokens += checked_tokens(self.encoder.encode_queries(batch), batch, self.encoder)
        warn_of_cut(self.name, self.encoder.cut_queries(queries), len(queries), "queries", cure="shorten the query")
        return tokens

    def search_tokens(self, tokens: list[Vectors], k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""
        has_tokens = [number for number, vectors in enumerate(tokens) if len(vectors)]
        queries = [tokens[number] for number in has_tokens]
        if isinstance(self._index, ExactIndex):
            hits = self._index.search(queries, k, allowed)
        else:
            width = self.nprobe, self.rescored, self.prune
            hits = self._index.search(queries, k, allowed, *width)
        counts = np.zeros(len(tokens), np.int64)
        counts[has_tokens] = np.diff(hits.offsets)
        return Hits(offsets_of(counts), hits.rows, hits.scores)

    def _encoder_of(self, folder: Path) -> BaseTokenEncoder:
        """The encoder with the projection of an index."""
        column, dtype = ("tokens.npy", np.float16) if self.bits is None else ("centroids.npy", np.int16)
        projection, dimension = open_projection(folder), mapped(folder / column, dtype, (None, None)).shape[1]
        encoder = self.encoder if projection is None else self.encoder.with_projection(projection)
        if encoder.dimension != dimension:
            raise ModelError(
                f"{encoder!r} gives vectors of dimension {encoder.dimension}, and those in {folder} have {dimension}; "
                "use the model that was indexed, or index again"
            )
        return encoder

    def _build(self, items: ItemTable, folder: Path, encoder: BaseTokenEncoder, codec: Codec | None) -> None:
        """Write an index of items in bounded memory; a codec is trained if the given one does not suffice."""
        self.check_ready()
        offsets = self._write_tokens(items, folder / "tokens.npy", encoder)
        np.save(folder / "offsets.npy", offsets, allow_pickle=False)
        _save_projection(folder, encoder)
        if self.bits is not None:
            n_tokens = int(offsets[-1])
            if codec is None or not self._suffices(codec, n_tokens):
                sample = sample_tokens(folder, n_tokens, self.train_size, self.seed)
                codec = train_codec(sample, self._n_centroids(n_tokens), self.bits, self.seed)
            encoded = (codec.encode(block.astype(np.float32)) for block in token_blocks(folder))
            write_compressed(folder, codec, offsets, encoded)
            (folder / "tokens.npy").unlink()

    def _write_tokens(self, items: ItemTable, path: Path, encoder: BaseTokenEncoder) -> Rows:
        """Encode all items into a file of float16, and return where the tokens of each begin."""
        counts: list[Rows] = [np.zeros(0, np.int64)]
        n_cut = 0
        with Stream(path, np.float16, encoder.dimension) as stream:
            batches = tracked("colbert: encoding", items.texts(_BATCH), len(items))
            for batch in encoded_tokens(encoder, batches, len(items)):
                counts.append(batch.counts.astype(np.int64))
                stream.write(batch.rows)
                n_cut += batch.n_cut
        warn_of_cut(self.name, n_cut, len(items))
        return offsets_of(np.concatenate(counts))

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
        """Return whether a codec was trained on enough tokens to compress this many."""
        if self.centroids is not None or n_tokens == 0:
            return True
        count = len(codec.centroids)
        return count >= _FEW_CENTROIDS and _OUTGROWN * count >= self._n_centroids(n_tokens)


def _largest_codec(segments: Sequence[SegmentFolder], bits: Bits) -> Codec:
    """The codec with the most centroids, the first of equals."""
    return max((open_codec(segment.folder, bits) for segment in segments), key=lambda codec: len(codec.centroids))


def _save_projection(folder: Path, encoder: BaseTokenEncoder) -> None:
    matrix = encoder.projection_matrix()
    if matrix is not None:
        np.save(folder / "projection.npy", matrix, allow_pickle=False)
