"""Results and judgements as people hold them, and their evaluation in one line.

Rankings and grades are read from our own results, files, tables, dicts, tuples, and objects of ranx. Scores are ordered as by
trec_eval, except that equal scores keep the ranks that a table has. A query that was asked and found nothing scores 0 and
counts; one that was not asked, or is not judged, does not count. Results of a search name the queries that were asked; in all
other forms a query without results may be missing, so that all judged queries count as asked, as for ir-measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.files.frames import ArrowStream, is_table, rows_of
from nlp_retrieval.core.files.records import as_id, kind, plain_name, quoted, typed
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.tables import RankedList, RankedLists
from nlp_retrieval.errors import GoldError, QueryError, SourceError
from nlp_retrieval.evaluation.evaluator import Evaluation, evaluate_rankings
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import Ranking, own_ids
from nlp_retrieval.evaluation.trec import ranked, read_run
from nlp_retrieval.loaders.judgements import (
    NAMES,
    Judgement,
    collect_judgements,
    columns_named,
    read_judgements,
    with_matched_numbers,
)


class AsDict(Protocol):
    """A run or judgements of another library, such as ranx."""

    def to_dict(self) -> Mapping[str, Mapping[str, float]]:
        """Return scores, or grades, by item id, by query id."""


Rows: TypeAlias = ArrowStream | Iterable[Mapping[str, Any] | tuple[Any, ...]]
"""A table with a row per query and item, or dicts, named tuples or tuples."""

Results: TypeAlias = RankedList | RankedLists | str | Path | Mapping[str, Mapping[str, float]] | AsDict | Rows
"""What :func:`evaluate` takes as results."""

Judged: TypeAlias = (
    Sequence[Gold] | BaseQueryLoader | str | Path | Mapping[str, Mapping[str, int] | Iterable[str]] | AsDict | Rows
)
"""What :func:`evaluate` and a benchmark take as judgements."""

_ITEM_NAMES = ("docno", *(name for name in NAMES["item"] if name != "docno"))  # docid is a number within PyTerrier's index
_SCORE_NAMES = ("score", "sim", "similarity")
_GRADES = {"query": NAMES["query"], "item": _ITEM_NAMES, "grade": NAMES["grade"]}
_NO_SUBTOPIC = ("", "0", "Q0", "None")


def evaluate(
    results: Results,
    qrels: Judged,
    measures: str | Sequence[str | Measure] = ("ndcg@10", "recall@100"),
    *,
    relevant_from: int = 1,
    asked: Iterable[str] | None = None,
    ignore_identical_ids: bool = False,
) -> Evaluation:
    """Evaluate results against judgements.

    Args:
        results: results of a search, the path of a TREC run, scores by item id by query id, a DataFrame with the columns
            ``qid``, ``docno`` and ``score`` (or ``rank``), tuples of these, or a run of ranx.
        qrels: gold, a loader of queries, the path of judgements, grades by item id by query id, a DataFrame with the columns
            ``qid``, ``docno`` and ``relevance``, tuples of these (also those of ir_datasets), or judgements of ranx.
        measures: names of measures, as in ir-measures: ``["nDCG@10", "recall@100", "RBP(p=0.8)@10"]``.
        relevant_from: the lowest grade of a relevant document.
        asked: ids of the queries that were asked; by default those of the results of a search, and all judged queries for other
            forms, in which a query without results may be missing.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count, as in BEIR and MTEB
            (ArguAna, Quora), unless it is relevant to it.

    Returns:
        Means and values per query, with ``to_pandas()``. A query that was asked and found nothing scores 0 and counts; one
        without judgements, or that was not asked, does not count.

    Raises:
        ConfigurationError: a measure does not exist.
        QueryError: the results are in no such form, or none of their queries is judged.
        GoldError: the judgements are in no such form, or none is relevant.
        SourceError: a file cannot be read.

    Examples:
        >>> run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 0.5}}
        >>> qrels = {"q1": {"d2": 1}, "q2": {"d3": 1}, "q3": {"d4": 1}}
        >>> evaluate(run, qrels, ["RR@10", "recall@100"])
        <mrr@10 0.5000, recall@100 0.6667: 3 queries, 1 of them without results, which score 0>
        >>> evaluate(run, qrels, ["RR@10", "recall@100"], asked=["q1", "q2"])
        <mrr@10 0.7500, recall@100 1.0000: 2 queries; 1 more judged and not asked, which do not count>
    """
    gold = read_gold(qrels)
    judged = [wanted.query_id for wanted in gold]
    rankings, titles, of_search = _read_rankings(results)
    rankings = with_matched_numbers(rankings, judged, "the results")
    unjudged = rankings.keys() - set(judged)
    if rankings and len(unjudged) == len(rankings):
        raise QueryError(
            f"no query of the results ({quoted(list(rankings)[:3])}) is judged "
            f"({quoted(judged[:3])}); are both of the same collection?"
        )
    named = [asked] if isinstance(asked, str) else asked
    counted = set(rankings if of_search else judged) if named is None else set(map(str, named))
    kept = [wanted for wanted in gold if wanted.query_id in counted]
    if not kept:
        raise QueryError("no judged query was asked, so nothing can be measured; check the ids of the queries")
    own = own_ids(list(rankings), rankings, {wanted.query_id: wanted.relevance for wanted in kept}, ignore=ignore_identical_ids)
    not_counting = dict(zip(rankings, own, strict=True))
    lists = [
        [item_id for item_id, _ in rankings.get(query_id, []) if item_id != not_counting.get(query_id)]
        for query_id in (wanted.query_id for wanted in kept)
    ]
    names = [measures] if isinstance(measures, str) else measures
    evaluation = evaluate_rankings(kept, lists, titles, names, relevant_from)
    return replace(evaluation, unjudged=len(unjudged), unasked=len(gold) - len(kept))


def read_gold(source: Judged) -> list[Gold]:
    """Return judgements in any form as gold, one per query."""
    if isinstance(source, BaseQueryLoader):
        return source.gold()
    if isinstance(source, str | Path):
        judgements = read_judgements(source)
    else:
        entries = list(source) if isinstance(source, Sequence) and not isinstance(source, str) else source
        if isinstance(entries, list) and entries and all(isinstance(entry, Gold) for entry in entries):
            return entries
        try:
            judgements = collect_judgements(_judgements(entries), "the judgements")
        except SourceError as error:
            raise GoldError(str(error)) from None
    return [Gold(query_id=query_id, relevance=grades) for query_id, grades in judgements.items()]


def _judgements(source: Any) -> Iterator[Judgement]:
    by_query = _by_query(source)
    if by_query is None:
        for location, row in rows_of(source, "judgement", GoldError, ("query_id", "item_id", "relevance")):
            query, item, grade = (row[name] for name in columns_named(location, list(row), _GRADES))
            subtopic = str(row.get("subtopic", row.get("iteration", "")))
            yield (
                location,
                as_id(location, "query_id", query),
                as_id(location, "item_id", item),
                int(grade) if isinstance(grade, float) and grade.is_integer() else grade,
                "" if subtopic in _NO_SUBTOPIC else subtopic,
            )
        return
    for query_id, given in by_query.items():
        location = f"query {query_id!r}"
        listed = isinstance(given, Sequence | Set) and not isinstance(given, str | bytes)
        grades = dict.fromkeys(given, 1) if listed else given
        if not isinstance(grades, Mapping):
            raise GoldError(f"{location}: its judgements are {typed(grades)}; write {{item id: grade}}, or [item id, ...]")
        for item_id, grade in grades.items():
            plain = grade.item() if hasattr(grade, "item") else grade
            yield location, as_id(location, "query_id", query_id), as_id(location, "item_id", item_id), plain, ""


def _read_rankings(results: Any) -> tuple[dict[str, Ranking], dict[str, str], bool]:
    """Return rankings by query id, the titles of items where they are known, and whether they are of a search."""
    if isinstance(results, RankedList):
        results = [results]
    if isinstance(results, RankedLists) or (isinstance(results, list) and results and isinstance(results[0], RankedList)):
        if (repeated := first_repeated(hits.query_id for hits in results)) is not None:
            raise QueryError(
                f"two lists of the results are of query {repeated!r}; pass the results of one search, or give each query an "
                "id of its own: search({'q1': 'text', ...})"
            )
        titles = {hit.item.item_id: hit.item.title for hits in results for hit in hits}
        return {hits.query_id: [(hit.item.item_id, hit.score) for hit in hits] for hits in results}, titles, True
    if isinstance(results, str | Path):
        return read_run(results), {}, False
    try:
        by_query = _by_query(results)
        if by_query is None:
            return _rankings_of_rows(results), {}, False
        lists = _by_id("the results", "query_id", by_query)
        return {query_id: ranked(_scores(f"query {query_id!r}", scores)) for query_id, scores in lists.items()}, {}, False
    except SourceError as error:
        raise QueryError(str(error)) from None


def _rankings_of_rows(rows: Any) -> dict[str, Ranking]:
    scores: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, float]] = {}
    for location, row in rows_of(rows, "result", QueryError, ("qid", "docno", "score", "rank")):
        has_score = any(plain_name(name) in _SCORE_NAMES for name in row)
        last: dict[str, tuple[str, ...]] = {"score": _SCORE_NAMES} if has_score or "rank" not in row else {"rank": ("rank",)}
        columns = columns_named(location, list(row), {"query": NAMES["query"], "item": _ITEM_NAMES} | last)
        query_id, item_id = (as_id(location, name, row[name]) for name in columns[:2])
        of_query = scores.setdefault(query_id, {})
        if item_id in of_query:
            raise QueryError(f"{location}: item {item_id!r} of query {query_id!r} is there already; keep one of them")
        number = _number(location, columns[2], row[columns[2]])
        of_query[item_id] = number if has_score else -number
        if row.get("rank") is not None:
            ranks.setdefault(query_id, {})[item_id] = _number(location, "rank", row["rank"])
    rankings = {query_id: ranked(of_query) for query_id, of_query in scores.items()}
    for query_id, of_query in ranks.items():  # a table that has ranks has them for equal scores too
        rankings[query_id].sort(key=lambda pair: (-pair[1], of_query.get(pair[0], math.inf)))
    return rankings


def _by_query(source: Any) -> Mapping[Any, Any] | None:
    """Return what is given by query id; None if it is a table, or a list of rows."""
    if isinstance(source, Mapping):
        return source
    if not is_table(source) and callable(getattr(source, "to_dict", None)):
        as_dict: Mapping[Any, Any] = source.to_dict()
        return as_dict
    return None


def _scores(location: str, scores: object) -> dict[str, float]:
    if not isinstance(scores, Mapping):
        raise QueryError(f"{location}: its results are {typed(scores)}; write {{item id: score}}")
    return {item_id: _number(location, "score", score) for item_id, score in _by_id(location, "item id", scores).items()}


def _by_id(location: str, what: str, given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping with its ids as text; 1 and "1" are one id."""
    texts = [as_id(location, what, key) for key in given]
    if (repeated := first_repeated(texts)) is not None:
        raise QueryError(f"{location}: the {what} {repeated!r} is there as a number and as text; keep one of them")
    return dict(zip(texts, given.values(), strict=True))


def _number(location: str, column: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise QueryError(f"{location}: the {column} is {kind(value)}; it must be a finite number")
    return number
