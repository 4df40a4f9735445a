"""Reading and writing runs as TREC files, and writing judgements, to compare figures with other tools.

**Order.** trec_eval keeps scores as 32-bit floats and breaks ties by item id, descending; it ignores the rank column.
So each written score is below the one before it as a 32-bit float too: a score that would tie is written as
the next smaller 32-bit float, every other score in full. trec_eval and all other tools that sort by score then use our order.

On reading, ties are broken by the ids in the file, byte by byte, as in trec_eval.

**Ids** are columns in the form of :mod:`~nlp_retrieval.core.files.records`.

**Files.** UTF-8; gzip if the name ends in ``.gz``, and on reading whenever the content is gzip; ``~`` is the home folder.
A file is written under a temporary name, synced and renamed: readers see the old file or the new one, never a part. TREC has no
line for a query without hits: such a query is missing from the file, and scores 0 in tools that use the qrels.
"""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.opening import READ_ERRORS, expanded, open_bytes, read_error
from nlp_retrieval.core.files.records import ENCODED, decode_id, encode_id
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import EngineError, GoldError, QueryError, SourceError

NO_DOCUMENT = "no-document"
"""Stands in the judgements that a benchmark writes for a query without any."""

Run = dict[str, list[tuple[str, float]]]
"""By query id, ``(item id, score)``, best first."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_LONGEST_LINE = 2**20


def write_run(
    path: str | Path, query_ids: Sequence[str], lists: Sequence[Sequence[tuple[str, float]]], tag: str = "nlp_retrieval"
) -> None:
    """Write rankings as a TREC run: ``query Q0 item rank score tag``, ranks from 1."""
    if len(query_ids) != len(lists):
        raise QueryError(f"{len(query_ids)} query ids for {len(lists)} lists; give an empty list where nothing was found")
    if repeated := first_repeated(query_ids):
        raise QueryError(f"query id {repeated!r} is given twice; a run holds one list per query")
    label = _encode("_".join(tag.split()) or "run")
    _write(path, (_run_lines(query_id, hits, label) for query_id, hits in zip(query_ids, lists, strict=True)))


def read_run(path: str | Path) -> Run:
    """Read a TREC run, ours or another tool's."""
    scores_of: dict[str, dict[str, float]] = {}
    written: dict[str, list[bytes]] = {}
    for number, columns, raw in _read(path):
        query_id, _, item_id, _, text, _ = columns
        score = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(score):
            raise SourceError(f"{path}, line {number}: the score is {text[:40]!r}; it must be a finite number")
        scores = scores_of.setdefault(query_id, {})
        if item_id in scores:
            raise SourceError(
                f"{path}, line {number}: item {item_id!r} of query {query_id!r} is already on an earlier line; keep one of them"
            )
        scores[item_id] = score
        written.setdefault(query_id, []).append(raw[2])
    return {query_id: _as_trec_eval(hits, written[query_id]) for query_id, hits in scores_of.items()}


def write_qrels(path: str | Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgements as TREC qrels: ``query 0 item grade``."""
    _write(path, (_qrels_lines(query_id, grades) for query_id, grades in qrels.items()))


def _run_lines(query_id: str, hits: Sequence[tuple[str, float]], label: str) -> str:
    if repeated := first_repeated(item_id for item_id, _ in hits):
        raise EngineError(f"the list of query {query_id!r} holds item {repeated!r} twice; a ranking holds an item once")
    query = _encode(query_id)
    scores = written_scores(query_id, [float(score) for _, score in hits])
    ranked = enumerate(zip(hits, scores, strict=True), start=1)
    return "".join(f"{query} Q0 {_encode(item_id)} {rank} {score} {label}\n" for rank, ((item_id, _), score) in ranked)


def _qrels_lines(query_id: str, grades: Mapping[str, int]) -> str:
    query = _encode(query_id)
    for item_id, grade in grades.items():
        if not isinstance(grade, Integral):
            raise GoldError(f"query {query_id!r} gives item {item_id!r} the grade {grade!r}; qrels hold integers")
    return "".join(f"{query} 0 {_encode(item_id)} {int(grade)}\n" for item_id, grade in grades.items())


def checked_scores(query_id: str, scores: list[float]) -> NDArray[np.float32]:
    """The scores as 32-bit floats, each below the one before it: one that ties becomes the next smaller float."""
    single = _as_single(scores)
    if not np.isfinite(single).all():
        rank = int(np.flatnonzero(~np.isfinite(single))[0]) + 1
        raise EngineError(
            f"the list of query {query_id!r} has the score {scores[rank - 1]} at rank {rank}; trec_eval keeps scores "
            "as 32-bit floats, so a run holds finite scores between -3.4e38 and 3.4e38"
        )
    worse = np.flatnonzero(single[1:] > single[:-1])
    if len(worse):
        rank = int(worse[0]) + 1
        raise EngineError(
            f"the list of query {query_id!r} is not best first: rank {rank} has score {scores[rank - 1]}, "
            f"rank {rank + 1} has {scores[rank]}; sort results by their scores"
        )
    if not (single[1:] < single[:-1]).all():
        for position in range(1, len(single)):
            if single[position] >= single[position - 1]:
                with np.errstate(all="ignore"):
                    single[position] = np.nextafter(single[position - 1], np.float32(-np.inf))
        if not np.isfinite(single[-1]):
            raise EngineError(f"the list of query {query_id!r} ties at {scores[-1]}, below which 32-bit floats have no score")
    return single


def written_scores(query_id: str, scores: list[float]) -> list[str]:
    """The scores as text, each below the one before it as a 32-bit float, and therefore as a 64-bit float too."""
    written = checked_scores(query_id, scores)
    columns = zip(scores, written, (written == _as_single(scores)).tolist(), strict=True)
    return [repr(score) if is_kept else str(single) for score, single, is_kept in columns]


def _as_single(scores: Iterable[float]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.array(list(scores), np.float64).astype(np.float32)


def _as_trec_eval(hits: dict[str, float], written: list[bytes]) -> list[tuple[str, float]]:
    """The hits by score and then by id; ``written`` holds their ids as in the file, which C compares as bytes."""
    single, pairs = _as_single(hits.values()), list(hits.items())
    if (single[1:] < single[:-1]).all():
        return pairs
    keys = list(zip(single.tolist(), written, strict=True))
    return [pairs[position] for position in sorted(range(len(pairs)), key=keys.__getitem__, reverse=True)]


def ranked(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return scores by item id as a ranking in trec_eval's order: by score as a 32-bit float, then by item id, descending."""
    return _as_trec_eval(dict(scores), [item_id.encode("utf-8", "surrogatepass") for item_id in scores])


def _encode(name: str) -> str:
    """An id as one column."""
    if not name:
        raise QueryError("an id is empty; a TREC file cannot hold it")
    return encode_id(name)


def _write(path: str | Path, parts: Iterable[str]) -> None:
    """Write a file completely or not at all."""
    target, content = expanded(path), "".join(parts).encode()
    # no time and no name in the header, so that the same run gives the same file
    write_output(target, gzip.compress(content, 6, mtime=0) if target.suffix == ".gz" else content)


def _read(path: str | Path) -> Iterator[tuple[int, list[str], list[bytes]]]:
    """The lines that are not blank, numbered from 1, as decoded columns and in raw form."""
    number = 0
    with open_bytes(path) as stream:
        while True:
            try:
                line = stream.readline(_LONGEST_LINE + 1)
            except READ_ERRORS as error:
                raise read_error(f"{path}, after line {number}", error) from error
            if not line:
                return
            number += 1
            if len(line) > _LONGEST_LINE:
                raise SourceError(f"{path}, line {number}: longer than {_LONGEST_LINE >> 20} MiB; is this a TREC file?")
            # Bytes split at ASCII white space alone, as in C; str would split at a no-break space too.
            columns = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).split()
            if not columns:
                continue
            if len(columns) != 6:
                ranks = '; of query, item and rank write: awk \'{print $1, "Q0", $2, $3, 1/$3, "run"}\' OLD > NEW'
                raise SourceError(
                    f"{path}, line {number}: {len(columns)} columns, where a line is 'query Q0 item rank score tag' "
                    f"(6 columns){ranks if len(columns) == 3 else ''}"
                )
            try:
                text = b" ".join(columns).decode()
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"{path}, line {number}: not UTF-8 ({error}); save the file as UTF-8, for example with "
                    "iconv -f ISO-8859-1 -t UTF-8"
                ) from None
            names = text.split(" ")
            if ENCODED in text:
                names = [decode_id(name) for name in names]
                if not all(names):
                    raise SourceError(f"{path}, line {number}: {ENCODED!r} with nothing after it is an empty id")
            yield number, names, columns
