"""Targets that read what the project wrote itself: manifests, runs, results of stages, and small files of notes.

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
from benchmarks.small_benchmark import GOLD as GOLD_OF_QUERIES
from benchmarks.small_benchmark import QUERIES as ALL_QUERIES
from benchmarks.small_benchmark import benchmarker
from core.engines import TermCount, TermShare

from nlp_retrieval import Searcher, write_run_files
from nlp_retrieval.benchmarks import runs as saved
from nlp_retrieval.benchmarks.comparing import judged_again
from nlp_retrieval.benchmarks.runs import PER_QUERY, REPORT, read_run_folder
from nlp_retrieval.benchmarks.stage_store import StageStore
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.index.generation import MANIFEST_FILE
from nlp_retrieval.core.index.generation import read_manifest as read_index_manifest
from nlp_retrieval.encoders.endpoint import KeptVectors
from nlp_retrieval.errors import IndexDamagedError, RetrievalError
from nlp_retrieval.evaluation.ranking_files import HITS, PASSAGES, QUERIES
from nlp_retrieval.lm.engine import AnswerStore

from .inputs import a_folder, scratch

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
    files = {name: (run_folder() / name).read_bytes() for name in TABLES}
    try:
        found = read_run_folder(a_folder("run", files | {REPORT: _sealed_report(files, data)}))
        if zlib.crc32(data) % 8 == 0:  # one of eight, because it takes longer
            judged_again(found)
    except RetrievalError:
        return False
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


OF_RUNS = [manifest, stages, report, notes, kept_vector]
