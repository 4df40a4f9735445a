"""The lists of a run as Parquet files: a row per hit in ``hits.parquet``, per query in ``queries.parquet``.

``passages.parquet`` has the texts of gold and of the first hits, each once.

Reading restores exactly what was written, so a run can be compared and explained again without repeating it.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.core.files.frames import read_parquet
from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.rankings import Listing, RunLists

FORMAT = 2

HITS = "hits.parquet"
QUERIES = "queries.parquet"
PASSAGES = "passages.parquet"

_GOLD_OF_QUERY = pa.list_(pa.struct({"item_id": pa.string(), "title": pa.string(), "grade": pa.int64()}))
_QUERIES_SCHEMA = pa.schema(
    {
        "query_id": pa.string(),
        "text": pa.string(),
        "family": pa.string(),
        "group": pa.string(),
        "gold": _GOLD_OF_QUERY,
        "judged_by": pa.string(),
        "judged": pa.map_(pa.string(), pa.int64()),
    }
)
_HITS_SCHEMA = pa.schema(
    {
        "configuration": pa.string(),
        "query_id": pa.string(),
        "rank": pa.int64(),
        "item_id": pa.string(),
        "title": pa.string(),
        "score": pa.float64(),
        "grade": pa.int64(),
        "signals": pa.map_(pa.string(), pa.float64()),
    }
)
_PASSAGES_SCHEMA = pa.schema({"item_id": pa.string(), "text": pa.string()})
_OPTIONAL = ("family", "group", "title")
_ABOUT = b"nlp_retrieval"
"""Metadata key of the file's own description: its format, and the configurations, including those without hits."""


def queries_table(lists: RunLists) -> pa.Table:
    """Return one row for each query: id, text, family, group, judged items, and the grades as they were given."""
    documents = [
        {"item_id": lists.item_ids[item], "title": lists.titles[item], "grade": grade}
        for item, grade in zip(lists.gold_items.tolist(), lists.gold_grades.tolist(), strict=True)
    ]
    gold = [documents[begin:end] for begin, end in pairwise(lists.gold_offsets.tolist())]
    judged = [list(wanted.relevance.items()) for wanted in lists.gold]
    by = [wanted.by for wanted in lists.gold]
    columns = [lists.query_ids, lists.texts, lists.families, lists.groups, gold, by, judged]
    arrays = [pa.array(values, kind.type) for values, kind in zip(columns, _QUERIES_SCHEMA, strict=True)]
    return pa.table(arrays, _QUERIES_SCHEMA)


def hits_table(lists: RunLists) -> pa.Table:
    """Return one row for each hit of each configuration, best first; the grade is 0 if it is not relevant to its query."""
    ids, titles = pa.array(lists.item_ids, pa.string()), pa.array(lists.titles, pa.string())
    queries = pa.array(lists.query_ids, pa.string())
    tables = [_HITS_SCHEMA.empty_table()]
    for name, listing in lists.listings.items():
        lengths = np.diff(listing.offsets)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        columns = [
            pa.array([name] * len(owner), pa.string()),
            queries.take(pa.array(owner)),
            pa.array(np.arange(len(owner)) - listing.offsets[owner] + 1),
            ids.take(pa.array(listing.items)),
            titles.take(pa.array(listing.items)),
            pa.array(listing.scores),
            pa.array(lists.grades(name)),
            _packed(listing.signals, len(owner)),
        ]
        tables.append(pa.table(columns, _HITS_SCHEMA))
    about = json.dumps({"format": FORMAT, "configurations": [*lists.listings]})
    return pa.concat_tables(tables).combine_chunks().replace_schema_metadata({_ABOUT: about})


def passages_table(lists: RunLists) -> pa.Table:
    """Return one row for each item with a known text."""
    return pa.table([list(lists.passages), list(lists.passages.values())], _PASSAGES_SCHEMA)


def _passages(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    table = _read(path, _PASSAGES_SCHEMA)
    return dict(zip(*(table.column(name).to_pylist() for name in ("item_id", "text")), strict=True))


def read_lists(folder: str | Path) -> RunLists:
    """Read the lists of a run."""
    queries, hits = _read(Path(folder) / QUERIES, _QUERIES_SCHEMA), _read(Path(folder) / HITS, _HITS_SCHEMA)
    names = _configurations(hits, Path(folder) / HITS)
    try:
        return _lists(queries, hits, names, _passages(Path(folder) / PASSAGES))
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{folder}: {QUERIES} and {HITS} are not of one run, or damaged ({error}); run it again") from error


def _lists(queries: pa.Table, hits: pa.Table, names: list[str], passages: dict[str, str]) -> RunLists:
    query_ids, gold = queries.column("query_id").to_pylist(), queries.column("gold").to_pylist()
    judged = [document for golds in gold for document in golds]
    gold_ids, hit_ids = [document["item_id"] for document in judged], hits.column("item_id").to_pylist()
    places: dict[str, int] = {}
    for item_id in [*gold_ids, *hit_ids]:
        places.setdefault(item_id, len(places))
    named = dict(zip(hit_ids, hits.column("title").to_pylist(), strict=True))
    named |= {document["item_id"]: document["title"] for document in judged}
    number_of = {query_id: number for number, query_id in enumerate(query_ids)}
    owners = np.array([number_of[query_id] for query_id in hits.column("query_id").to_pylist()], np.int64)
    configurations = np.array(hits.column("configuration").to_pylist(), object)
    items = np.array([places[item_id] for item_id in hit_ids], np.int64)
    scores, signals = hits.column("score").to_numpy(), hits.column("signals").combine_chunks()
    listings = {}
    for name in names:
        own = np.flatnonzero(configurations == name)
        if (np.diff(owners[own]) < 0).any():
            raise ValueError(f"hits of {name!r} out of order")
        offsets = offsets_of(np.bincount(owners[own], minlength=len(query_ids)))
        listings[name] = Listing(offsets, items[own], scores[own], _unpacked(signals.take(pa.array(own))))
    columns = (queries.column(name).to_pylist() for name in ("query_id", "judged_by", "judged"))
    return RunLists(
        query_ids=query_ids,
        texts=queries.column("text").to_pylist(),
        families=queries.column("family").to_pylist(),
        groups=queries.column("group").to_pylist(),
        item_ids=list(places),
        titles=[named[item_id] or "" for item_id in places],
        gold=[Gold(query_id=query_id, relevance=dict(grades), by=by) for query_id, by, grades in zip(*columns, strict=True)],
        gold_offsets=offsets_of([len(golds) for golds in gold]),
        gold_items=np.array([places[item_id] for item_id in gold_ids], np.int64),
        gold_grades=np.array([document["grade"] for document in judged], np.int64),
        listings=listings,
        passages=passages,
    )


def _configurations(hits: pa.Table, path: Path) -> list[str]:
    try:
        about = parse_json((hits.schema.metadata or {})[_ABOUT])
        names, number = [str(name) for name in about["configurations"]], about["format"]
    except (KeyError, ValueError, TypeError):
        names, number = [], None
    if number != FORMAT:
        raise SourceError(f"{path} is of format {number}, and this version reads {FORMAT}; run the benchmark again")
    if not set(pc.unique(hits.column("configuration")).to_pylist()) <= set(names):
        raise SourceError(f"{path} has hits of configurations that it does not name; run the benchmark again")
    return names


def _packed(signals: dict[str, Scores], n_hits: int) -> pa.MapArray:
    """Signals as one map per hit, without missing ones."""
    values = np.array([*signals.values()], np.float64).reshape(len(signals), n_hits).T
    is_present = ~np.isnan(values)
    offsets = offsets_of(is_present.sum(axis=1)).astype(np.int32)
    names = pa.array([*signals], pa.string()).take(pa.array(np.nonzero(is_present)[1]))
    return pa.MapArray.from_arrays(pa.array(offsets), names, pa.array(values[is_present]))


def _unpacked(signals: pa.MapArray) -> dict[str, Scores]:
    offsets = signals.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    names = signals.keys.slice(first, last - first).to_pylist()
    values = signals.items.slice(first, last - first).to_numpy()
    owner = np.repeat(np.arange(len(signals)), np.diff(offsets))
    known = {name: column for column, name in enumerate(dict.fromkeys(names))}
    unpacked = np.full((len(known), len(signals)), np.nan)
    which: Rows = np.array([known[name] for name in names], np.int64)
    unpacked[which, owner] = values
    return dict(zip(known, unpacked, strict=True))


def _read(path: Path, schema: pa.Schema) -> Any:
    if not path.exists():
        raise SourceError(f"{path} does not exist; give the output folder of a benchmark (run it again if it is an older one)")
    try:
        table = read_parquet(path)
        table.validate(full=True)  # a damaged file may still be Parquet: invalid UTF-8, offsets out of range
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); run the benchmark again") from error
    if not table.schema.equals(schema):
        raise SourceError(f"{path} does not have the columns that a benchmark writes; run the benchmark again")
    if lacking := [name for name in schema.names if name not in _OPTIONAL and table.column(name).null_count]:
        raise SourceError(f"{path} has no value in its column {lacking[0]!r}; run the benchmark again")
    return table
