"""Judgements: which items are relevant to which queries, from TREC qrels, CSV, TSV or JSON lines.

Whatever reads judgements reads them here: loaders of queries, and the comparison of runs. The form is known by the suffix of
the file; a file with any other suffix is TREC qrels. In TSV and CSV, TREC's four columns, three columns without names, and
columns with names are told apart by the first line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from nlp_retrieval.core.files.trec_ids import decode_id
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders.fields import missing_field
from nlp_retrieval.loaders.files import read_json_lines, read_lines
from nlp_retrieval.loaders.records import as_id, likely, quoted
from nlp_retrieval.loaders.tables.delimited import read_cells

__all__ = ["FileFormat", "Judgements", "format_of", "judged_queries", "read_judgements"]

Judgements = dict[str, dict[str, int]]
"""By query id, the grade by item id."""

FileFormat = Literal["trec", "csv", "tsv", "jsonl"]

_SUFFIXES: dict[str, FileFormat] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_OTHERS = {
    ".json": "write one object a line and call it .jsonl, or use the loader of its data set (hover, hotpotqa)",
    ".parquet": "write it as .jsonl or .csv",
    ".xlsx": "save it as .csv",
    ".db": "write the table as .csv",
}
_GRADE = re.compile(r"[+-]?[0-9]{1,9}")
_NAMES = {
    "query": ("query_id", "query-id", "qid", "query", "topic", "topic_id", "q_id"),
    "item": ("item_id", "corpus-id", "corpus_id", "doc_id", "docid", "docno", "doc-id", "pid", "passage_id", "document_id"),
    "grade": ("relevance", "score", "rel", "grade", "label", "judgement", "judgment"),
}


def format_of(path: str | Path, given: FileFormat | None) -> FileFormat:
    """Return the form of a file of queries or gold: the given one, or what its suffix says, TREC's by default.

    Raises:
        SourceError: its suffix is that of a form that is not read here.
    """
    suffix = Path(str(path).removesuffix(".gz")).suffix.lower()
    if given is None and suffix in _OTHERS:
        raise SourceError(
            f"{path}: queries and gold are read from TREC files, .csv, .tsv and .jsonl, and not from {suffix}; "
            f"{_OTHERS[suffix]}"
        )
    return given or _SUFFIXES.get(suffix, "trec")


def read_judgements(path: str | Path, given: FileFormat | None = None) -> Judgements:
    """Read judgements.

    Args:
        path: the file, plain or gzip.
        given: its form. None: what the suffix says.

    Returns:
        By query id the grade by item id, in the order of the file; grades of 0 and below are kept.

    Raises:
        SourceError: no such file, a line that is not a judgement, or two different ones of one item for one query.
    """
    judgements: Judgements = {}
    form = format_of(path, given)
    for place, query_id, item_id, grade in _json_lines(path) if form == "jsonl" else _cells(path, form):
        if not _GRADE.fullmatch(grade):
            raise SourceError(f"{place}: the grade is {grade[:40]!r}; it must be an integer of at most 9 digits")
        if not query_id or not item_id:
            raise SourceError(f"{place}: an id is empty; a judgement names a query and an item")
        grades = judgements.setdefault(query_id, {})
        if grades.setdefault(item_id, int(grade)) != int(grade):
            raise SourceError(
                f'{place}: item "{item_id}" has grade {grade} here and {grades[item_id]} above for query "{query_id}"; keep one'
            )
    if not judgements:
        raise SourceError(f"{path}: it holds no judgements")
    return judgements


def _json_lines(path: str | Path) -> Iterator[tuple[str, str, str, str]]:
    for place, row in read_json_lines(path):
        query, item, grade = (row[name] for name in _named(place, list(row)))
        plain = str(grade) if isinstance(grade, int) and not isinstance(grade, bool) else repr(grade)
        yield place, as_id(place, "query_id", query), as_id(place, "item_id", item), plain


def _cells(path: str | Path, form: FileFormat) -> Iterator[tuple[str, str, str, str]]:
    places: Sequence[int] | None = None
    width = 0
    lines: Iterator[tuple[int, list[str]]]
    if form == "trec":
        # only ASCII white space parts columns, as in C; an id may hold a no-break space
        lines = ((number, [cell for cell in re.split(r"[ \t\r\f\v]+", line) if cell]) for number, line in read_lines(path))
    else:
        lines = read_cells(path, "\t" if form == "tsv" else None, '"', "utf-8")
    for number, line in lines:
        place, cells = f"{path}, line {number}", [cell.strip() for cell in line]
        if not cells:
            continue
        if places is None:
            width = len(cells)
            places = (0, width - 2, width - 1)
            if form == "trec" and width != 4:
                raise SourceError(f"{place}: {width} columns, where a line is 'query 0 item grade' (4 columns)")
            if form != "trec" and not _GRADE.fullmatch(cells[-1]):
                places = [cells.index(name) for name in _named(place, cells)]
                continue
            if width not in (3, 4):
                raise SourceError(
                    f"{place}: {width} columns, where a judgement is query, item and grade, or query, 0, item and grade; "
                    "check what separates them, or name them (query_id, item_id, relevance) where there are more"
                )
        if len(cells) != width:
            raise SourceError(f"{place}: {len(cells)} columns in {' '.join(cells)[:60]!r}, where the lines before have {width}")
        query_id, item_id, grade = (cells[at] for at in places)
        yield place, *((decode_id(query_id), decode_id(item_id)) if form == "trec" else (query_id, item_id)), grade


def _named(place: str, found: list[str]) -> list[str]:
    names = []
    for what, aliases in _NAMES.items():
        known = {name.strip().lower() for name in found}
        if not known & set(aliases):
            near = likely(aliases[0], found, aliases)
            raise missing_field(place, f"the {what}'s column", aliases[0], found, [near] if near else [])
        names.append(next(name for alias in aliases for name in found if name.strip().lower() == alias))
    return names


def judged_queries(
    source: str | Path, queries: Iterable[tuple[str, Query]], judgements: Judgements, judged_in: str | Path
) -> tuple[list[Query], list[Gold]]:
    """Return the queries that are judged, in their order, and the gold of each.

    A judged query without a relevant item counts, as in trec_eval, and scores 0. What is judged and not asked, or has no
    relevant item, is counted in a warning.

    Args:
        source: where the queries are from.
        queries: each with its place; held in memory only where they are judged.
        judgements: their grades.
        judged_in: where the judgements are from.

    Raises:
        SourceError: no query has a relevant item, or two have one id.
    """
    places: dict[str, str] = {}
    judged: list[Query] = []
    for place, query in queries:
        if query.query_id in places:
            raise SourceError(f'{place}: the id "{query.query_id}" is taken by {places[query.query_id]}; ids must be unique')
        places[query.query_id] = place
        if query.query_id in judgements:
            judged.append(query)
    hopeless = sum(not any(grade > 0 for grade in judgements[query.query_id].values()) for query in judged)
    unknown = [query_id for query_id in judgements if query_id not in places]
    if not judged:
        raise SourceError(
            f"{judged_in}: none of its {len(judgements):,} judged queries ({quoted(unknown[:3])}) is among the {len(places):,} "
            f"of {source} ({quoted(list(places)[:3])}); are both of the same collection?"
        )
    if hopeless == len(judged):
        raise SourceError(
            f"{judged_in}: none of its {len(judgements):,} judged queries has an item with a grade above 0; "
            "no ranking can find anything for them"
        )
    if unknown:
        _warn(
            f"{judged_in}: {len(unknown):,} of its {len(judgements):,} judged queries are not in {source} "
            f"(first {quoted(unknown[:3])}); they are left out: check that both are of the same collection"
        )
    if hopeless:
        _warn(
            f"{judged_in}: {hopeless:,} of {len(judged):,} judged queries have no item with a grade above 0; they count and "
            "score 0, as in trec_eval"
        )
    return judged, [Gold(query_id=query.query_id, relevance=judgements[query.query_id]) for query in judged]


def _warn(message: str) -> None:
    # one place for queries and for gold, so that Python says it once
    warnings.warn(message, RetrievalWarning, stacklevel=3)
