"""Judgements: which items are relevant to which queries, from TREC qrels, CSV, TSV or JSON lines.

All readers of judgements use this module: loaders of queries, and the comparison of runs. The suffix of the file determines its
form; a file with any other suffix is TREC qrels. The first line distinguishes TREC's four columns, three columns without names,
and columns with names, whatever separates them.

Judgements by subtopic (the diversity tasks) judge an item for each subtopic of a query: its grade is the highest of these.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from nlp_retrieval.core.files.records import as_id, decode_id, likely, plain_name, quoted
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders.files import read_json_file_of_records, read_lines
from nlp_retrieval.loaders.tables import read_cells

T = TypeVar("T")

Judgements = dict[str, dict[str, int]]
"""By query id, the grade by item id."""

FileFormat = Literal["trec", "csv", "tsv", "json"]

Judgement = tuple[str, str, str, object, str]
"""Location, ids of query and item, the grade as written, and the subtopic; empty if there is none."""

_SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json", ".json": "json",
}  # fmt: skip
_GRADE = re.compile(r"[+-]?[0-9]{1,9}(?:\.0{0,9})?")
NAMES = {
    "query": ("query_id", "qid", "query", "topic", "topic_id", "q_id"),
    "item": ("item_id", "corpus_id", "doc_id", "docid", "docno", "pid", "passage_id", "document_id"),
    "grade": ("relevance", "score", "rel", "grade", "label", "judgement", "judgment"),
}
_SUBTOPICS = ("subtopic", "subtopic_id", "intent", "iteration", "iter")
_NO_SUBTOPIC = ("0", "Q0")


def format_of(path: str | Path) -> FileFormat:
    """Return the form of a file of queries or gold by its suffix, TREC's by default; a list and lines are both JSON."""
    return _SUFFIXES.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix, "trec")


def read_judgements(path: str | Path) -> Judgements:
    """Return the grade by item id and query id, in the order of the file; grades of 0 and below are kept."""
    form = format_of(path)
    return collect_judgements(_json_rows(path) if form == "json" else _cells(path, form), path)


def collect_judgements(entries: Iterable[Judgement], source: str | Path) -> Judgements:
    """Return judgements by query and item; of several by subtopic, the highest grade, with a warning that counts them."""
    judgements: Judgements = {}
    seen: dict[tuple[str, str, str], int] = {}
    several: dict[tuple[str, str], None] = {}
    for location, query_id, item_id, written, subtopic in entries:
        grade = _grade(location, written)
        if not query_id or not item_id:
            raise SourceError(f"{location}: an id is empty; a judgement names a query and an item")
        if (above := seen.setdefault((query_id, item_id, subtopic), grade)) != grade:
            raise SourceError(
                f'{location}: item "{item_id}" has grade {grade} here and {above} above for query "{query_id}"; keep one'
            )
        grades = judgements.setdefault(query_id, {})
        if grades.setdefault(item_id, grade) != grade:
            several[query_id, item_id] = None
            grades[item_id] = max(grades[item_id], grade)
    if not judgements:
        raise SourceError(f"{source}: it holds no judgements")
    if several:
        query_id, item_id = next(iter(several))
        _warn(
            f"{source}: {len(several):,} pairs of query and item have several grades, as judgements by subtopic have "
            f'(first: query "{query_id}", item "{item_id}"); the highest grade of each counts'
        )
    return judgements


def _grade(location: str, written: object) -> int:
    text = written if isinstance(written, str) else repr(written)
    if isinstance(written, bool) or not _GRADE.fullmatch(text):
        raise SourceError(
            f"{location}: the grade is {text[:40]!r}; it must be an integer of at most 9 digits; "
            "round or scale the grades of the file, and leave out rows without one"
        )
    return int(text.partition(".")[0])


def _json_rows(path: str | Path) -> Iterator[Judgement]:
    for location, row in read_json_file_of_records(path):
        query, item, grade = (row[name] for name in columns_named(location, list(row)))
        subtopic = next((row[name] for name in row if plain_name(name) in _SUBTOPICS), None)
        ids = as_id(location, "query_id", query), as_id(location, "item_id", item)
        yield location, *ids, grade, "" if subtopic is None else str(subtopic)


def _cells(path: str | Path, form: FileFormat) -> Iterator[Judgement]:
    lines: Iterator[tuple[int, list[str]]]
    if form == "trec":
        # only ASCII white space parts columns, as in C; an id may hold a no-break space
        lines = ((number, [cell for cell in re.split(r"[ \t\r\f\v]+", line) if cell]) for number, line in read_lines(path))
    else:
        lines = read_cells(path)
    columns: Sequence[int] = ()
    width = 0
    for number, line in lines:
        location, cells = f"{path}, line {number}", [cell.strip() for cell in line]
        while cells and not cells[-1] and len(cells) > (width or 3):
            cells.pop()
        if not any(cells) or (form == "trec" and not width and cells[0] == "#"):  # blank, or a comment above the rows
            continue
        if not width:
            width = len(cells)
            known = {alias for aliases in NAMES.values() for alias in aliases}
            # names of columns: one of them is known, or none can be a grade
            has_names = any(plain_name(cell) in known for cell in cells) or not any(map(_GRADE.fullmatch, cells))
            if width > 2 and not _GRADE.fullmatch(cells[-1]) and has_names:
                named = [cells.index(name) for name in columns_named(location, cells)]
                columns = [*named, *[cells.index(name) for name in cells if plain_name(name) in _SUBTOPICS][:1]]
                continue
            columns = {3: (0, 1, 2), 4: (0, 2, 3, 1)}.get(width, ())
        if len(cells) != width or not columns:
            raise SourceError(
                f"{location}: {len(cells)} columns in {' '.join(cells)[:60]!r}, where {width if columns else '3 or 4'} are "
                "expected: query, item and grade, or query, 0, item and grade (6 are a run); check what separates them, or "
                "name them in a first line (query_id, item_id, relevance) where there are more"
            )
        query_id, item_id, grade, *subtopics = (cells[at] for at in columns)
        if form == "trec":
            query_id, item_id = decode_id(query_id), decode_id(item_id)
        yield location, query_id, item_id, grade, subtopics[0] if subtopics and subtopics[0] not in _NO_SUBTOPIC else ""


def columns_named(location: str, names: Sequence[str], wanted: Mapping[str, Sequence[str]] = NAMES) -> list[str]:
    """Return the columns of a table by what they hold, where ``wanted`` has the names of each in order of preference."""
    chosen, plain = [], {plain_name(name): name for name in reversed(names)}
    for what, aliases in wanted.items():
        if plain.keys().isdisjoint(aliases):
            near = likely(aliases[0], names, aliases)
            meant = f'rename "{near}" to "{aliases[0]}"' if near else f'name the column of the {what} "{aliases[0]}"'
            raise SourceError(f'{location}: no column of the {what}, such as "{aliases[0]}" (found: {quoted(names)}); {meant}')
        chosen.append(next(plain[alias] for alias in aliases if alias in plain))
    return chosen


def match_numbers(wanted: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the known id for each wanted number that differs only in leading zeros ("51" for "051") and is there once."""
    here, there = _by_number(wanted), _by_number(known)
    pairs = ((names[0], there[number][0]) for number, names in here.items() if len(names) == len(there.get(number, ())) == 1)
    return {name: other for name, other in pairs if name != other}


def with_matched_numbers(rankings: dict[str, T], query_ids: Iterable[str], source: str | Path) -> dict[str, T]:
    """Return a run's rankings under the query ids in use here, where a number differs only in leading zeros."""
    matched = match_numbers(rankings, query_ids)
    if not matched:
        return rankings
    name, other = next(iter(matched.items()))
    _warn(
        f"{source}: {len(matched):,} of its queries have other zeros in front than here (first: {name!r}, here {other!r}); "
        "they are matched as numbers"
    )
    return {matched.get(query_id, query_id): ranking for query_id, ranking in rankings.items()}


def _by_number(names: Iterable[str]) -> dict[str, list[str]]:
    numbers: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if name.isascii() and name.isdigit():
            numbers.setdefault(name.lstrip("0"), []).append(name)
    return numbers


def judged_queries(
    source: str | Path, queries: Iterable[tuple[str, Query]], judgements: Judgements, judged_in: str | Path
) -> tuple[list[Query], list[Gold]]:
    """Return the queries that are judged, in their order, and the gold of each; warnings count what is missing."""
    locations: dict[str, str] = {}
    likely_judged: list[Query] = []
    numbers = _by_number(judgements)
    for location, query in queries:
        name = query.query_id
        if locations.setdefault(name, location) is not location:
            raise SourceError(f'{location}: the id "{name}" is taken by {locations[name]}; ids must be unique')
        if name in judgements or name.lstrip("0") in numbers:  # few of many, such as those of MS MARCO
            likely_judged.append(query)
    ids = match_numbers(locations, judgements)
    judged = [
        query.model_copy(update={"query_id": ids.get(name, name)})
        for query in likely_judged
        if (name := query.query_id) in judgements or name in ids
    ]
    known = {query.query_id for query in judged}
    unknown = [query_id for query_id in judgements if query_id not in known]
    hopeless = sum(not any(grade > 0 for grade in judgements[query.query_id].values()) for query in judged)
    if not judged:
        raise SourceError(
            f"{judged_in}: no judged query ({quoted(unknown[:3])}) is among the "
            f"{len(locations):,} of {source} ({quoted(list(locations)[:3])}); are both of the same collection?"
        )
    if hopeless == len(judged):
        raise SourceError(
            f"{judged_in}: no judged query has an item with a grade above 0; no ranking can find anything for them"
        )
    if ids:
        name, other = next(iter(ids.items()))
        _warn(
            f'{source}: {len(ids):,} numbers have other zeros in front than in {judged_in} (first: "{name}", there "{other}"); '
            "they are matched as numbers, and the queries have the ids of the judgements"
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
    # a single line for queries and for gold, so that Python warns only once
    warnings.warn(message, RetrievalWarning, stacklevel=3)
