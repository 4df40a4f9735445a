"""Targets that read what the project wrote itself: indexes, runs, results of stages, and small files of notes.

A checksum that a fuzzer cannot guess is put right before a file is read, so that what stands behind it is reached too.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.small_benchmark import GOLD as GOLD_OF_QUERIES
from benchmarks.small_benchmark import QUERIES as ALL_QUERIES
from benchmarks.small_benchmark import benchmarker
from core.engines import TermCount, TermShare
from sparse_models import HashedTerms

from nlp_retrieval import Bm25Retriever, Searcher, write_run_files
from nlp_retrieval.benchmarks import runs as saved
from nlp_retrieval.benchmarks.comparing import judged_again
from nlp_retrieval.benchmarks.runs import PER_QUERY, REPORT, read_run_folder
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.index.generation import MANIFEST_FILE, SegmentFolder
from nlp_retrieval.core.index.generation import read_manifest as read_index_manifest
from nlp_retrieval.encoders.endpoint import KeptVectors
from nlp_retrieval.errors import IndexDamagedError, ModelError, RetrievalError, SourceError
from nlp_retrieval.evaluation.ranking_files import HITS, PASSAGES, QUERIES, read_lists
from nlp_retrieval.lm.engine import AnswerStore
from nlp_retrieval.retrievers.colbert.files import open_compressed as open_colbert
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, open_added_links
from nlp_retrieval.retrievers.splade import SpladeRetriever

from .inputs import a_folder, parts, scratch

GRAPH = ("graph.json", "offsets.npy", "neighbours.npy", "weights.npy", "types.npy", "sums.npy")
LINKS = ("links.json", "link_sources.npy", "link_targets.npy", "link_weights.npy")
BM25 = ("vocabulary.json", "rows.npy", "frequencies.npy", "indptr.npy", "lengths.npy")
SPLADE = ("rows.npy", "weights.npy", "indptr.npy", "counts.npy")
COLBERT = ("offsets.npy", "projection.npy", "centroids.npy", "weights.npy")
COLBERT += ("codes.npy", "residuals.npy", "list_offsets.npy", "list_rows.npy")
TABLES = (HITS, QUERIES, PER_QUERY, PASSAGES)


def manifest(data: bytes) -> bool:
    """The manifest of an index, as it stands and with its checksum put right."""
    found = None
    for raw in (data, _sealed(data)):
        try:
            found = read_index_manifest(a_folder("index", {MANIFEST_FILE: raw}))
        except IndexDamagedError:
            continue
        assert found is not None
        assert not any("/" in name for name in found.folders)
    return found is not None


def stages(data: bytes) -> bool:
    """A result of a stage, as it stands and with its checksum put right: what cannot be believed is not there."""
    found = None
    for raw in (data, _sealed_stage(data)):
        folder = a_folder("stages", {"group/name.stage": raw})
        found = StageStore(folder).find("group", "name")
        assert len(list(StageStore(folder).entries("group"))) == (found is not None)
    return found is not None


def report(data: bytes) -> bool:
    """The report of a finished run, with its checksums put right, read and judged again."""
    return _judge({name: (run_folder() / name).read_bytes() for name in TABLES}, data, data)


def lists(data: bytes) -> bool:
    """The tables of a finished run, with any values in their columns."""
    try:
        content = json.loads(data)
        files = {name: _parquet(content[name], name, content.get("about")) for name in TABLES}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException, OverflowError):
        return False
    return _judge(files, (run_folder() / REPORT).read_bytes(), data)


def tables(data: bytes) -> bool:
    """The same tables, damaged."""
    folder = a_folder("run", dict(zip(TABLES, parts(data, len(TABLES)), strict=True)))
    try:
        read_lists(folder)
    except SourceError:
        return False
    return True


def graph(data: bytes) -> bool:
    """A graph of links: what opens can be walked."""
    try:
        found = LinkGraph.open(a_folder("graph", dict(zip(GRAPH, parts(data, len(GRAPH)), strict=True))))
    except IndexDamagedError:
        return False
    assert ((found.neighbours >= 0) & (found.neighbours < found.n_nodes)).all()
    return True


def added_links(data: bytes) -> bool:
    """The links of items that joined an index of one item: what opens leads to items that are there."""
    folder = a_folder("links", dict(zip(LINKS, parts(data, len(LINKS)), strict=True)))
    try:
        found = open_added_links(SegmentFolder(folder, 1, 3))
    except IndexDamagedError:
        return False
    for one in found.values():
        assert all(0 <= row < 3 for row in [*one.sources.tolist(), *one.targets.tolist()])
    return True


def bm25(data: bytes) -> bool:
    """Postings: what opens can be searched, by compiled code too."""
    retriever = Bm25Retriever()
    try:
        retriever.load(a_folder("bm25", dict(zip(BM25, parts(data, len(BM25)), strict=True))))
    except IndexDamagedError:
        return False
    retriever.search_batch(["fox tree whale"], 3, None)
    return True


def splade(data: bytes) -> bool:
    """Postings with weights: what opens can be searched."""
    retriever = SpladeRetriever(HashedTerms(7))
    try:
        retriever.load(a_folder("splade", dict(zip(SPLADE, parts(data, len(SPLADE)), strict=True))))
        retriever.search_batch(["fox tree whale"], 3, None)
    except (IndexDamagedError, ModelError):  # of another number of terms
        return False
    return True


def colbert(data: bytes) -> bool:
    """The columns of a ColBERT index: what opens can be followed by compiled code."""
    try:
        folder = a_folder("colbert", dict(zip(COLBERT, parts(data, len(COLBERT)), strict=True)))
        (found,) = open_colbert([SegmentFolder(folder, 0, 2)], 2)
    except IndexDamagedError:
        return False
    assert found.offsets[-1] == len(found.codes) == len(found.residuals)
    return True


def notes(data: bytes) -> bool:
    """Small files that are a convenience: what cannot be believed is not there, and nothing is raised."""
    store = AnswerStore(scratch() / "answers")
    question: dict[str, Any] = {"model": "m", "messages": []}
    path = store.path_of(question)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    answer = store.find(question)
    assert answer is None or isinstance(answer["text"], str)
    return answer is not None


def kept_vector(data: bytes) -> bool:
    """A vector of an endpoint on disk."""
    store = KeptVectors(scratch() / "vectors", VECTOR_ASKED)
    path = store.path_of("a text")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    found = store.find("a text")
    assert found is None or (len(found.vectors) > 0 and np.isfinite(found.vectors).all())
    return found is not None


VECTOR_ASKED: dict[str, object] = {"url": "http://localhost/v1", "model": "m"}


@cache
def run_folder() -> Path:
    """A finished run of two configurations."""
    folder = scratch() / "finished"
    searchers = {"terms": Searcher([TermCount()]), "share": Searcher([TermShare()])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = {"queries": ALL_QUERIES[:4], "gold": GOLD_OF_QUERIES[:4], "k_values": [3]}
        write_run_files(benchmarker(folder / "index", searchers=searchers, **few).run(), folder / "run")
    return folder / "run"


def _sealed_stage(data: bytes) -> bytes:
    """A file of a stage with its checksum put right."""
    _, _, rest = data.partition(b"\n")
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _judge(files: dict[str, bytes], report: bytes, data: bytes) -> bool:
    """Read a run, and judge one of eight again, which takes longer."""
    folder = a_folder("run", files | {REPORT: _sealed_report(files, report)})
    try:
        found = read_run_folder(folder)
    except SourceError:
        return False
    if zlib.crc32(data) % 8:
        return True
    try:
        judged_again(found)
    except RetrievalError:
        return False
    return True


def _sealed_report(files: dict[str, bytes], data: bytes) -> bytes:
    try:
        content = json.loads(data)
        content.pop("checksum")
        content["files"] = {name: {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()} for name, raw in files.items()}
        return json.dumps(content | {"checksum": saved._checksum(content)}).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data


def _sealed(data: bytes) -> bytes:
    try:
        content = json.loads(data)
        content.pop("checksum", None)
        content["checksum"] = hashlib.sha256(canonical_json(content).encode()).hexdigest()
        return canonical_json(content).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return data


def _parquet(rows: list[dict[str, Any]], name: str, about: Any) -> bytes:
    schema = pq.read_schema(run_folder() / name)
    for key in ("signals", "judged"):  # JSON has no tuples, which Arrow wants of a map
        rows = [row | {key: [tuple(pair) for pair in row[key] or ()]} if key in row else row for row in rows]
    table = pa.Table.from_pylist(rows, schema)
    if name == HITS and about is not None:
        table = table.replace_schema_metadata({b"nlp_retrieval": json.dumps(about)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


OF_INDEXES = [manifest, graph, added_links, bm25, colbert, splade]
OF_RUNS = [stages, report, lists, tables, notes, kept_vector]
