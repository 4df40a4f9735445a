"""Late interaction: a vector per token, compressed on disk, and MaxSim (ColBERTv2; Santhanam et al., NAACL 2022).

``build`` writes an index in bounded memory, by the codec and the centroids of ``codec``; ``files`` opens it. This module
searches it, with the loops of ``steps`` or the same loops compiled in ``kernel``, which ``divided`` runs in threads. It also
searches uncompressed indexes and joins segments. Items that join an index are compressed by its codec, unless that was trained
on far fewer tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nlp_retrieval.core.backend import Backend, CompiledLoops
from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, entries_of, offsets_of, top_k, top_k_mask
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import ENCODER_LIMIT, stage, warn_of_cut
from nlp_retrieval.core.files.columns import Stream, read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.processes import usable_cores
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors, checked_tokens
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.passages import encoded_tokens
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers.colbert import steps as colbert_steps
from nlp_retrieval.retrievers.colbert.codec import (
    Bits,
    Codec,
    Codes,
    Compressor,
    blocks_of,
    code_type,
    compressor_of,
    in_units,
    packed_size,
    train_compressor,
)
from nlp_retrieval.retrievers.colbert.files import (
    TOKENS,
    TOKENS_AT_ONCE,
    ColbertFiles,
    Compressed,
    DividedSteps,
    Sizes,
    Steps,
    codec_of,
    open_files,
    open_segments,
    sample_tokens,
    start_of,
    write_codec,
    write_compressed,
    write_lists,
    write_projection,
    write_settings,
)
from nlp_retrieval.retrievers.exact_kmeans import units_of

# Search over compressed tokens in steps, each more expensive and on fewer passages (PLAID; Santhanam et al., CIKM 2022,
# https://arxiv.org/abs/2205.09707).
#
# All centroids are compared with the query once. Candidates are the passages in the lists of the centroids closest to each
# query token. They are scored by centroids alone, first without tokens whose centroid is far from the whole query, then the
# best with all their tokens. The best of those are decoded and scored by MaxSim.

_loops = CompiledLoops(compiling_seconds=3.0)
_PRUNED_TO = 4  # times the number of passages that are scored exactly, as in PLAID


@dataclass(frozen=True)
class SearchSettings:
    """Width of a search; see :class:`~nlp_retrieval.retrievers.colbert.retriever.ColbertRetriever`."""

    nprobe: int
    rescored: int
    prune: float
    backend: Backend


class CompressedIndex:
    """Search over centroids and residuals.

    Candidates are chosen in each segment separately; a passage that is scored has the same score in any segment.

    Args:
        segments: for each, offsets ``[passages + 1]``, where passage p has the tokens ``offsets[p]:offsets[p + 1]``, and
            compressed tokens and inverted lists. Rows of passages run through all segments.
    """

    def __init__(self, segments: Sequence[tuple[Rows, Compressed]]) -> None:
        codecs: list[Codec] = []
        self._segments: list[tuple[Rows, Compressed, int]] = []
        for offsets, columns in segments:
            number = next((n for n, codec in enumerate(codecs) if codec.equals(columns.codec)), len(codecs))
            codecs += [columns.codec] if number == len(codecs) else []
            self._segments.append((offsets, columns, number))
        self._centroids = [codec.centroids.astype(np.float32) for codec in codecs]
        self._tables = [codec.table() for codec in codecs]
        self._squared_unit = units_of(segments[0][1].codec.dimension) ** 2
        self._has_tokens = np.concatenate([np.diff(offsets) > 0 for offsets, _ in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None, settings: SearchSettings) -> Hits:
        """Return at most k passages that have tokens per query, best first; ties go to the lowest rows.

        Args:
            queries: ``[tokens, dimension]`` each, at least one token.
            k: at most this many.
            allowed: ``[passages]``, or None.
            settings: width of the search.
        """
        present = self._has_tokens if allowed is None else self._has_tokens & allowed
        loops = _steps(settings.backend)

        def search(query: Vectors, steps: DividedSteps) -> tuple[Rows, Scores]:
            return self._search(in_units(query), k, present, settings, steps)

        if loops is colbert_steps:
            with _loops.in_numpy():
                return Hits.from_lists([search(query, DividedSteps(loops)) for query in queries])
        count = usable_cores()
        with ThreadPoolExecutor(count) as threads:  # compiled steps release the interpreter's lock
            if len(queries) == 1:
                return Hits.from_lists([search(queries[0], DividedSteps(loops, threads, count))])
            return Hits.from_lists(list(threads.map(search, queries, repeat(DividedSteps(loops)))))

    def _search(
        self, query: Vectors, k: int, present: Mask, settings: SearchSettings, steps: DividedSteps
    ) -> tuple[Rows, Scores]:
        by_dimension = np.ascontiguousarray(query.T)
        wanted = max(settings.rescored, 2 * k)
        scores: dict[int, Vectors] = {}
        all_rows, all_sums = [np.zeros(0, np.int64)], [np.zeros(0)]
        first = 0
        for offsets, columns, number in self._segments:
            in_segment = present[first : first + len(offsets) - 1]
            rows = np.flatnonzero(in_segment)
            if len(rows) > wanted:
                if number not in scores:
                    scores[number] = steps.centroid_scores(by_dimension, self._centroids[number])
                rows = self._candidates(offsets, columns, scores[number], in_segment, wanted, settings, steps)
            if len(rows):
                codec = self._centroids[number], self._tables[number]
                all_rows.append(rows + first)
                all_sums.append(steps.maxsim(by_dimension, *codec, columns, offsets, rows))
            first += len(in_segment)
        return top_k(np.concatenate(all_rows), np.concatenate(all_sums) / self._squared_unit, k)

    def _candidates(
        self,
        offsets: Rows,
        columns: Compressed,
        scores: Vectors,
        present: Mask,
        wanted: int,
        settings: SearchSettings,
        steps: DividedSteps,
    ) -> Rows:
        """The passages of a segment to score exactly, ascending; for a segment with more than are wanted.

        Args:
            offsets: offsets of the segment.
            columns: columns of the segment.
            scores: ``[centroids, query tokens]``.
            present: ``[passages]``, True for allowed ones.
            wanted: how many passages to score.
            settings: width of the search.
            steps: the inner loops.
        """
        bounds, listed = columns.list_offsets, columns.list_rows
        probed = np.zeros(len(scores), np.bool_)
        nprobe = min(settings.nprobe, len(scores))
        while True:
            steps.steps.closest_centroids(scores, nprobe, probed)
            listed_passages = np.zeros(len(present), np.bool_)
            for centroid in np.flatnonzero(probed).tolist():
                listed_passages[listed[bounds[centroid] : bounds[centroid + 1]]] = True
            rows = np.flatnonzero(listed_passages & present)
            if len(rows) >= wanted or nprobe == len(scores):
                break
            nprobe = min(4 * nprobe, len(scores))
        close = probed.copy()
        steps.steps.close_centroids(scores, np.float32(settings.prune * self._squared_unit), close)
        for kept, most in ((close, wanted * _PRUNED_TO), (np.ones_like(close), wanted)):
            if len(rows) > most:
                rows = rows[top_k_mask(steps.interaction(scores, kept, columns, offsets, rows), most)]
        return rows


def _steps(backend: Backend) -> Steps:
    if not _loops.chosen(backend):
        return colbert_steps
    from nlp_retrieval.retrievers.colbert import kernel

    return kernel


# Joining segments: tokens of passages that are not deleted are copied unchanged, in blocks.
#
# Only passages compressed by another codec are encoded again. Segments have different codecs if the first was trained on too
# few tokens for the items that joined later.


class Encode(Protocol):
    """Encodes passages of the joined index."""

    def __call__(self, first: int, end: int) -> Iterator[Vectors]:
        """Yield the tokens of passages ``first:end``, several passages at a time."""


def live_counts(segments: Sequence[SegmentFolder], opened: Sequence[ColbertFiles]) -> list[Rows]:
    """Per segment, how many tokens each of its passages has that is not deleted."""
    counts = [np.diff(files.offsets) for files in opened]
    return [lengths if s.live is None else lengths[s.live] for s, lengths in zip(segments, counts, strict=True)]


def join_segments(
    segments: Sequence[SegmentFolder],
    opened: Sequence[ColbertFiles],
    live: Sequence[Rows],
    codec: Codec | None,
    folder: Path,
    encode: Encode,
) -> None:
    """Join several segments into one index without deleted passages.

    Args:
        segments: adjacent segments.
        opened: their files.
        live: the result of :func:`live_counts` for them.
        codec: codec of the index; None if no segment has tokens, or tokens are not compressed.
        folder: an empty folder.
        encode: encodes passages that another codec compressed.

    Raises:
        ModelError: a passage that is encoded again has a different number of tokens.
    """
    offsets = offsets_of(np.concatenate(live))
    np.save(folder / "offsets.npy", offsets, allow_pickle=False)
    first = opened[0]
    n_centroids = n_listed = 0
    if isinstance(first.tokens, Compressed):
        codec = codec or first.tokens.codec
        n_centroids = len(codec.centroids)
        write_codec(folder, codec)
        n_tokens = [int(lengths.sum()) for lengths in live]
        bounds = offsets_of([len(lengths) for lengths in live])
        counts_of = np.zeros(n_centroids, np.int64)
        with (
            Stream(folder / "codes.npy", code_type(n_centroids)) as codes,
            Stream(folder / "residuals.npy", np.uint8, packed_size(codec.dimension, codec.bits)) as residuals,
        ):
            for part, (segment, files) in enumerate(zip(segments, opened, strict=True)):
                passages = (int(bounds[part]), int(bounds[part + 1]))
                for numbers, packed in _codes(segment, files, codec, encode, passages, n_tokens[part]):
                    counts_of += np.bincount(numbers, minlength=n_centroids)
                    codes.write(numbers)
                    residuals.write(packed)
        n_listed = write_lists(folder, counts_of, offsets)
    else:
        with Stream(folder / TOKENS, np.float16, first.sizes.dimension) as stream:
            for segment, files in zip(segments, opened, strict=True):
                for tokens in _live_blocks(segment, files, TOKENS):
                    stream.write(tokens)
    projected_from = write_projection(folder, first.projection)
    sizes = (len(offsets) - 1, int(offsets[-1]), first.sizes.dimension, first.sizes.bits, n_centroids, n_listed, projected_from)
    write_settings(folder, Sizes(*sizes))


def _codes(
    segment: SegmentFolder, files: ColbertFiles, codec: Codec, encode: Encode, passages: tuple[int, int], n_tokens: int
) -> Iterator[tuple[Codes, NDArray[np.uint8]]]:
    """Yield codes and residuals of the passages of a segment that are not deleted, a block at a time."""
    if n_tokens == 0:
        return
    if isinstance(files.tokens, Compressed) and files.tokens.codec.equals(codec):
        columns = (_live_blocks(segment, files, name) for name in ("codes.npy", "residuals.npy"))
        yield from zip(*columns, strict=True)
        return
    compressor, n_encoded = compressor_of(codec, n_tokens, 0), 0
    for tokens in encode(*passages):
        n_encoded += len(tokens)
        yield compressor.compress(tokens.astype(np.float16).astype(np.float32))  # rounded as in tokens.npy
    if n_encoded != n_tokens:
        raise ModelError(f"the encoder gives {n_encoded} tokens for passages that had {n_tokens}; index again")


def _live_blocks(segment: SegmentFolder, files: ColbertFiles, name: str) -> Iterator[NDArray[Any]]:
    """Yield a column of tokens, a block at a time, without those of deleted passages."""
    first = 0
    for block in read_blocks(segment.folder / name, TOKENS_AT_ONCE) if files.sizes.tokens else ():
        yield block if segment.live is None else block[_tokens_of(segment.live, files.offsets, first, len(block))]
        first += len(block)


def _tokens_of(live: Mask, offsets: Rows, first: int, count: int) -> Mask:
    """Return a mask of ``count`` tokens from ``first`` on: those of passages that are not deleted."""
    passages = np.searchsorted(offsets, np.arange(first, first + count), side="right") - 1
    is_live: Mask = live[passages]
    return is_live


# Exact search: MaxSim with every passage of an uncompressed index.
#
# Vectors are rounded to multiples of 2**-22. Products and the sums of up to 500 of them are then exact in float64, in any
# order, so that a score is the same to the last bit in any batch.

_UNITS = 2.0**22
_TOKENS_AT_ONCE = 2**14
_QUERY_TOKENS_AT_ONCE = 512
_SCORES_AT_ONCE = 16 * 2**20


class ExactIndex:
    """Search over uncompressed tokens.

    Args:
        segments: for each, offsets ``[passages + 1]``, where passage p has the tokens ``offsets[p]:offsets[p + 1]``, and
            tokens ``[tokens, dimension]``. Rows of passages run through all segments.
    """

    def __init__(self, segments: Sequence[tuple[Rows, NDArray[np.float16]]]) -> None:
        self._segments = segments
        self._has_tokens = np.concatenate([np.diff(offsets) > 0 for offsets, _ in segments])

    def search(self, queries: list[Vectors], k: int, allowed: Mask | None) -> Hits:
        """Return at most k passages that have tokens per query, best first; ties go to the lowest rows.

        Args:
            queries: ``[tokens, dimension]`` each, at least one token.
            k: at most this many.
            allowed: ``[passages]``, or None.
        """
        rows = np.flatnonzero(self._has_tokens if allowed is None else self._has_tokens & allowed)
        lists: list[tuple[Rows, Scores]] = []
        chunk: list[Vectors] = []
        for number, query in enumerate(queries):
            chunk.append(query)
            following = len(queries[number + 1]) if number + 1 < len(queries) else _QUERY_TOKENS_AT_ONCE
            too_long = sum(map(len, chunk)) + following > _QUERY_TOKENS_AT_ONCE
            if too_long or (len(chunk) + 1) * len(rows) > _SCORES_AT_ONCE:
                lists += [top_k(rows, scores, k) for scores in self._scores(chunk, rows)]
                chunk = []
        return Hits.from_lists(lists)

    def _scores(self, queries: list[Vectors], rows: Rows) -> Scores:
        """``[queries, rows]``."""
        query_tokens = _in_units(np.concatenate(queries))
        bounds = offsets_of([len(query) for query in queries])[:-1]
        scores = np.zeros((len(queries), len(rows)))
        first = 0
        for offsets, tokens in self._segments:
            begin, end = np.searchsorted(rows, [first, first + len(offsets) - 1]).tolist()
            local_rows = rows[begin:end] - first
            for block in blocks_of(local_rows, offsets, _TOKENS_AT_ONCE):
                part = local_rows[block]
                products = query_tokens @ _in_units(tokens[entries_of(offsets, part)[0]]).T
                starts = offsets_of(offsets[part + 1] - offsets[part])[:-1]
                best = np.maximum.reduceat(products, starts, axis=1)
                scores[:, begin + block.start : begin + block.stop] = np.add.reduceat(best, bounds, axis=0)
            first += len(offsets) - 1
        return scores / _UNITS**2


def _in_units(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    units: NDArray[np.float64] = np.trunc(vectors.astype(np.float64) * _UNITS)
    return units


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

    Added passages are compressed by the centroids and weights of the index, and searched together with the earlier ones:
    candidates are chosen, and ``rescored`` of them scored, in each segment separately. A passage's score does not change when
    segments are joined, to the bit, and a list can differ only if ``rescored`` cut candidates off. An index built at once would
    train its centroids on all passages: its scores differ by no more than compression loses (with ``bits=None`` they are
    equal). If the added passages need more than four times the centroids of the index, or the index has fewer than 64, new
    centroids are trained: on the added passages, and on all passages once segments are joined. Only then are passages encoded
    again.

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
        backend: ``numpy``, ``numba``, or ``auto``: numba, once searching has taken longer than compiling would. All give the
            same results.

    Examples:
        >>> Searcher([ColbertRetriever("colbert-ir/colbertv2.0", bits=2)])
        Searcher(retrievers=[ColbertRetriever(encoder=ColbertEncoder(), bits=2)])
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
        self._open_segments([open_files(folder)])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._open_segments(open_segments(segments))

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

    def _open_segments(self, opened: Sequence[ColbertFiles]) -> None:
        compressed = [(files.offsets, files.tokens) for files in opened if isinstance(files.tokens, Compressed)]
        uncompressed = [(files.offsets, files.tokens) for files in opened if not isinstance(files.tokens, Compressed)]
        self._index: ExactIndex | CompressedIndex
        self._index = CompressedIndex(compressed) if compressed else ExactIndex(uncompressed)
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
            batches = tracked("colbert: encoding", items.texts(_BATCH), len(items), at_once=True)
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
        """Return whether a codec was trained on enough tokens to compress this many."""
        if self.centroids is not None:
            return True
        count = len(codec.centroids)
        return n_tokens == 0 or (count >= _FEW_CENTROIDS and _OUTGROWN * count >= self._n_centroids(n_tokens))

    def _warn_of_cut(self, n_cut: int, n_all: int, unit: str) -> None:
        limit, cure = ENCODER_LIMIT
        if unit == "queries":
            cure = "where the model can read more, raise query_length"
        warn_of_cut(self.name, n_cut, n_all, limit, cure, unit)


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
