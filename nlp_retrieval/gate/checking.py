"""Checking a searcher by a gate: search, measure, compare with the baseline, and find out why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.benchmarker import group_labels, group_order
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.manifest import run_identity
from nlp_retrieval.benchmarks.results import masks_of
from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.core.components.component import to_plain
from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import synthetic_note
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, GoldError, IndexMissingError, QueryError
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator, evaluate_rankings
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import OwnIds, are_passages, own_ids
from nlp_retrieval.gate.baseline import (
    RENEW,
    Baseline,
    BaselineItem,
    BaselineQuery,
    digest,
    read_baseline,
    write_baseline,
)
from nlp_retrieval.gate.judged import (
    ChangedPassage,
    ChangeToJudge,
    JudgedTexts,
    Side,
    changed_passages,
    gold_of_change,
    make_project,
    precision_of_change,
    split_waiting,
    with_judged,
)
from nlp_retrieval.gate.reasons import GateChange, LostQuery, changes_of, is_relevant, lost_queries
from nlp_retrieval.gate.settings import GateSettings
from nlp_retrieval.gate.verdict import MeasureVerdict, Verdict, in_every_case, judge, overall, queries_needed
from nlp_retrieval.lm.counting import record_calls
from nlp_retrieval.reports import counted

_PERSISTENCE = 0.9
_SHOWN = 5
_UNKNOWN: tuple[Side | None, ...] = ("baseline", "now", None)


@dataclass(frozen=True)
class LimitVerdict:
    """A cost beside its limit.

    Args:
        name: "index_bytes" or "tokens".
        before: of the baseline.
        now: the same of the searcher.
        limit: the largest ratio of both.
    """

    name: str
    before: float
    now: float
    limit: float

    @property
    def ratio(self) -> float:
        """Return the cost as a multiple of that of the baseline."""
        return self.now / self.before if self.before else (1.0 if not self.now else math.inf)

    @property
    def passes(self) -> bool:
        """Return whether it is within the limit."""
        return self.ratio <= self.limit


@dataclass(frozen=True)
class GateReport:
    """Result of a gate.

    Args:
        verdict: on all measures together; None without gold or judgements of what changed.
        passes: whether the gate passes.
        measures: the verdict on each measure in each group.
        limits: costs beside their limits.
        agreement: mean rank-biased overlap with the rankings of the baseline.
        same: number of queries whose first k items are the same, in the same order.
        queries: number of them.
        changes: what is not as it was for the baseline, in the order in which to look.
        lost: the queries that lost most, first those that lost more.
        notes: what was noticed besides.
        level: chance of a false alarm over ``looks`` changes of the results.
        looks: number of changes that the baseline judges.
        change: how far people judged what changed; None if they are not asked.
        failing: the verdicts with which the gate fails.

    Examples:
        >>> report = GateReport(None, False, [], [], agreement=0.41, same=0, queries=2, changes=[], lost=[])
        >>> bool(report), report.agreement
        (False, 0.41)
    """

    verdict: Verdict | None
    passes: bool
    measures: list[MeasureVerdict]
    limits: list[LimitVerdict]
    agreement: float
    same: int
    queries: int
    changes: list[GateChange]
    lost: list[LostQuery]
    notes: list[str] = field(default_factory=list)
    level: float = 0.05
    looks: int = 100
    change: ChangeToJudge | None = None
    failing: tuple[Verdict, ...] = ("worse", "fell")

    def __bool__(self) -> bool:
        """Return whether the gate passes."""
        return self.passes


class Gate:
    """Compares what a searcher finds with what it found when it was last accepted.

    Args:
        settings: of the gate.
        searcher: that is checked, with its index opened; by default that of the settings, indexed as needed.

    Raises:
        ConfigurationError: there is no searcher.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> settings = GateSettings("baseline.jsonl", TopicsLoader("queries.tsv", "qrels.txt"), {"ndcg@10": 0.3})
        >>> notes = Gate(settings, searcher).update("the first one")
        >>> report = Gate(settings, Searcher(["bm25"]).open("index")).check()
        >>> report.verdict, report.passes, report.same
        ('no worse', True, 2)
    """

    def __init__(self, settings: GateSettings, searcher: Any = None) -> None:
        self.settings = settings
        self.searcher = settings.searcher if searcher is None else searcher
        if self.searcher is None:
            raise ConfigurationError("the gate has no searcher; pass one, or write 'searcher' in its file")
        self._opened = searcher is not None
        self._items: dict[str, SearchableItem] = {}
        self.queries = settings.query_loader.queries()
        if not self.queries:
            raise QueryError("the gate has no queries; check the path and the filters of their loader")
        gold = {each.query_id: each for each in settings.query_loader.gold()}
        self.gold: list[Gold] = [gold[query.query_id] for query in self.queries if query.query_id in gold]
        others = [name for name in settings.margins if Measure.parse(name).family != "precision"]
        if settings.judging is not None and not self.gold and others:
            raise ConfigurationError(
                f"margins: {others[0]} needs all relevant passages, and the queries have no gold. Of what changed alone people "
                "can judge precision: write {precision@10: 0.02}"
            )

    def check(self, *, judge_change: bool = False) -> GateReport:
        """Return the report on the searcher.

        Args:
            judge_change: whether to make a judging project of the passages that differ and are not judged.

        Raises:
            SourceError: the baseline is missing, damaged or edited.
            ConfigurationError: the baseline is of other queries, of another corpus, or keeps fewer hits; or there is no folder
                for a judging project.
            QueryError: the searcher finds nothing for any query.
            GoldError: the index holds no relevant document.
        """
        settings, whole = self.settings, read_baseline(self.settings.baseline)
        kept = {each: replace(query, hits=query.hits[: settings.k]) for each, query in whole.queries.items()}
        before = replace(whole, queries=kept, k=min(whole.k, settings.k))
        if judge_change and settings.judging is None:
            raise ConfigurationError("there is no folder for judging projects; write 'judging: FOLDER' in the gate's file")
        results, tokens = self._searched()
        current = self._found("", results, tokens)
        texts = self._texts_of(list(before.items))
        self._check_comparable(before, current, texts)
        self._check_gold(results)
        compared = [query for query in self.queries if query.query_id in before.queries]
        judged = {each.query_id: each for each in self.gold}
        change: ChangeToJudge | None = None
        passages: list[ChangedPassage] = []
        if settings.judging is not None:
            asked = [query for query in compared if query.query_id in judged] or compared
            change, passages = self._change(settings.judging, asked, before, current, texts, judge_change)
            judged = with_judged(judged, passages, before, current, settings.relevant_from)
        measured = [query for query in compared if query.query_id in judged]
        verdicts: list[MeasureVerdict] = []
        values: dict[str, tuple[Scores, Scores]] = {}
        if measured:
            gold = [judged[query.query_id] for query in measured]
            old, new = (_measured(baseline, gold, settings) for baseline in (before, current))
            verdicts = self._judged(measured, old, new)
            values = {name: (old[name], new[name]) for name in old}
        elif change is not None:
            measured = compared
            worst, best, known = (
                precision_of_change(compared, before, current, settings.margins, passages, unknown) for unknown in _UNKNOWN
            )
            verdicts = self._judged(compared, *known)
            if change.unjudged:
                verdicts = in_every_case(verdicts, self._judged(compared, *worst), self._judged(compared, *best))
            values = {name: (known[0][name], known[1][name]) for name in settings.margins}
            judged = gold_of_change(compared, passages)
        verdict = overall(verdicts) if verdicts else None
        overlaps = [_overlap(before.queries[query.query_id].hits, current.queries[query.query_id].hits) for query in compared]
        agreement = math.fsum(overlaps) / len(overlaps)
        limits = [
            LimitVerdict(name, before.costs[name], current.costs[name], ratio)
            for name, ratio in settings.limits.items()
            if name in before.costs and name in current.costs
        ]
        notes = self._notes(compared, limits)
        by_query = dict(zip([query.query_id for query in self.queries], results, strict=True))
        passes = all(limit.passes for limit in limits) and (
            agreement >= settings.least_agreement
            if verdict is None or (verdict == "cannot tell" and not self.gold and change is not None and change.unjudged)
            else verdict not in settings.failing
        )
        lost = lost_queries(measured, values, before, by_query, judged, self._deeper, texts.__contains__, _SHOWN)
        same = sum(before.queries[query.query_id].hits == current.queries[query.query_id].hits for query in compared)
        changes = changes_of(before, current, texts)
        return GateReport(
            verdict, passes, verdicts, limits, agreement, same, len(compared), changes, lost, notes, settings.level,
            settings.looks, change, settings.failing,
        )  # fmt: skip

    def update(self, reason: str) -> list[str]:
        """Accept what the searcher finds now as the baseline, and return notes on what this baseline cannot see.

        Args:
            reason: why it is accepted, for the file.

        Raises:
            ConfigurationError: there is no reason.
            QueryError: the searcher finds nothing for any query.
            GoldError: the index holds no relevant document.
            OutputError: the file cannot be written.
        """
        if not reason.strip():
            raise ConfigurationError("the reason is empty; say why these results are accepted")
        results, tokens = self._searched()
        self._check_gold(results)
        baseline = self._found(reason.strip(), results, tokens)
        measured = _measured(baseline, self.gold, self.settings) if self.gold else {}
        queries = dict(baseline.queries)
        for number, each in enumerate(self.gold):
            own = {name: float(values[number]) for name, values in measured.items()}
            queries[each.query_id] = replace(queries[each.query_id], measures=own)
        write_baseline(self.settings.baseline, replace(baseline, queries=queries))
        if not self.gold:
            until = "" if self.settings.judging is None else " until people have judged what changed (gate --judge)"
            return [f"the queries have no gold: the gate compares rankings, and cannot tell better from worse{until}"]
        notes = []
        for name, values in measured.items():
            needed, margin = queries_needed(values, self.settings.margins[name]), self.settings.margins[name]
            if needed > len(values):
                notes.append(
                    f"{name}: about {needed:,} queries can show that no more than {margin:g} was lost, and there are "
                    f"{len(values):,}; the gate will often not be able to tell"
                )
        return notes

    def _searched(self) -> tuple[list[list[RetrievalResult]], float]:
        """Return the first k results of each query, and the tokens of language models a query."""
        searcher, settings = self.searcher, self.settings
        if not self._opened:
            if settings.index_path is None:
                raise ConfigurationError("the gate has no index; write 'index', and 'corpus' if it is to be created")
            if settings.loader is not None:
                searcher.index(settings.loader, settings.index_path)
            else:
                try:
                    searcher.open(settings.index_path)
                except IndexMissingError as error:
                    raise IndexMissingError(f"{error}; or write 'corpus' in the gate's file, so that it is created") from None
            self._opened = True
        own = self._own_ids().ids
        with record_calls() as calls:
            found = searcher.search([query.text for query in self.queries], settings.k + any(own))
        if not any(found):
            raise QueryError(
                f"the searcher found nothing for any of {len(self.queries):,} queries; is its index the right one?"
            )
        results = [
            [hit for hit in hits if hit.item.item_id != own_id][: settings.k] for hits, own_id in zip(found, own, strict=True)
        ]
        self._items = {hit.item.item_id: hit.item for hits in results for hit in hits}
        counts = calls.counts
        tokens = counts.tokens_in + counts.tokens_out + counts.kept_tokens_in + counts.kept_tokens_out
        return results, tokens / len(self.queries)

    def _check_gold(self, results: Sequence[Sequence[RetrievalResult]]) -> None:
        """Raise an error if nothing found is relevant, because the index holds no relevant document."""
        gold = {each.query_id: each for each in self.gold if max(each.relevance.values(), default=0) > 0}
        found = zip((gold.get(query.query_id) for query in self.queries), results, strict=True)
        if not gold or not isinstance(self.searcher, BaseSearcher):
            return
        if any(each and is_relevant(hit.item.item_id, hit.item.title, each) for each, hits in found for hit in hits):
            return
        table = self.searcher.opened.items
        missing = RetrievalEvaluator(list(gold.values()), table.ids(), table.titles(), [1], "count").missing
        if missing is not None and missing.all:
            raise GoldError(f"{missing.said}: no figure could be above 0; {missing.cure}")

    def _own_ids(self) -> OwnIds:
        """Return the hits that are the queries themselves, decided as in a benchmark of this index."""
        ids = [query.query_id for query in self.queries]
        texts: dict[str, tuple[str, str]] = {}
        if isinstance(self.searcher, BaseSearcher):
            table = self.searcher.opened.items
            rows = table.find(ids)
            texts = {item.item_id: (item.content, item.text) for item in table.items(rows[rows >= 0])}
        ignore = are_passages(self.queries, texts, self.settings.ignore_identical_ids)
        return own_ids(ids, texts, {each.query_id: each.relevance for each in self.gold}, ignore=ignore)

    def _found(self, reason: str, results: Sequence[Sequence[RetrievalResult]], tokens: float) -> Baseline:
        """Return what was found as a baseline, without measures."""
        gold = {each.query_id: each for each in self.gold}
        queries = {
            query.query_id: BaselineQuery(
                query.query_id,
                digest(query.text),
                digest(repr(sorted(gold[query.query_id].relevance.items()))) if query.query_id in gold else "",
                tuple(hit.item.item_id for hit in hits),
            )
            for query, hits in zip(self.queries, results, strict=True)
        }
        titled = any(each.by == "title" for each in self.gold)
        items = {
            hit.item.item_id: BaselineItem(digest(hit.item.text), hit.item.title if titled else "")
            for hits in results
            for hit in hits
        }
        costs = {"tokens": tokens}
        if isinstance(self.searcher, BaseSearcher):
            records = self.searcher.index_records()
            costs["index_bytes"] = float(sum(segment.bytes for record in records for segment in record.segments))
        return Baseline(reason, self.settings.k, queries, items, self._identity(), costs)

    def _identity(self) -> dict[str, Any]:
        """Return what the results depend on, as plain values."""
        searcher = self.searcher
        identity: dict[str, Any] = {"versions": describe_environment()["versions"]}
        if isinstance(searcher, BaseSearcher):
            corpus = searcher.opened.manifest.corpus
            run = run_identity(searcher, searcher.fingerprint)
            identity |= {
                "corpus": {"fingerprint": corpus.fingerprint, "items": corpus.n_items},
                "searcher": without_secrets(searcher.config),
                "models": run["models"],
                "retrievers": run["retrievers"],
            }
        return to_plain(identity)  # type: ignore[no-any-return]

    def _check_comparable(self, before: Baseline, current: Baseline, texts: Mapping[str, str]) -> None:
        path, settings = self.settings.baseline, self.settings
        if before.k < settings.k:
            raise ConfigurationError(f"{path} keeps {before.k} hits a query, and the gate's k is {settings.k}; {RENEW}")
        gone = [query_id for query_id in before.queries if query_id not in current.queries]
        other = [
            each
            for each in before.queries
            if each in current.queries and before.queries[each].text != current.queries[each].text
        ]
        for what, ids in (("are gone", gone), ("have another text", other)):
            if ids:
                raise ConfigurationError(
                    f"{len(ids):,} of {len(before.queries):,} queries of {path} {what} (the first: {ids[0]!r}), so the same "
                    f"questions cannot be compared; restore them, or {RENEW}"
                )
        graded = sum(query.gold != "" for query in before.queries.values())
        if graded and not self.gold:
            raise ConfigurationError(
                f"{graded:,} queries of {path} had gold, and now none has: rankings alone cannot show a loss; restore the gold "
                f"(qrels), or {RENEW}"
            )
        if any(each.by == "title" for each in self.gold) and not any(item.title for item in before.items.values()):
            raise ConfigurationError(f"the gold names titles, and {path} keeps none of its items; {RENEW}")
        if isinstance(self.searcher, BaseSearcher) and not texts:
            raise ConfigurationError(
                f"none of the {len(before.items):,} items of {path} is in the index: it is of another corpus, or all ids are "
                f"new; {RENEW}"
            )

    def _texts_of(self, item_ids: list[str]) -> dict[str, str]:
        """Return the digests of the texts of items that the index holds."""
        if not isinstance(self.searcher, BaseSearcher):
            return {}
        table = self.searcher.opened.items
        rows = table.find(item_ids)
        items: list[SearchableItem] = table.items(rows[rows >= 0])
        return {item.item_id: digest(item.text) for item in items}

    def _judged(self, queries: Sequence[Query], old: Mapping[str, Scores], new: Mapping[str, Scores]) -> list[MeasureVerdict]:
        settings, families = self.settings, [query.family for query in queries]
        groups = _groups(queries, settings.group_by)
        return judge(
            old, new, settings.margins, families, groups, level=settings.level, looks=settings.looks, seed=settings.seed
        )

    def _change(
        self, folder: Path, queries: Sequence[Query], before: Baseline, now: Baseline, texts: Mapping[str, str], make: bool
    ) -> tuple[ChangeToJudge, list[ChangedPassage]]:
        """Return the passages that differ with people's judgements, and how far they are judged."""
        here = {**texts, **{item_id: item.digest for item_id, item in now.items.items()}}
        cutoffs = [Measure.parse(name).cutoff or self.settings.k for name in self.settings.margins]
        gold = {each.query_id: each for each in self.gold}
        people = JudgedTexts(folder)
        passages = changed_passages(queries, before, now, cutoffs, people, here, gold)
        open_ = [each for each in passages if each.relevant is None]
        unasked, waiting = split_waiting(people, queries, passages, here)
        made = None
        if make and unasked:
            made = make_project(folder, queries, unasked, self._items_of([each.item_id for each in unasked]), here)
        gone = sum(not each.has_text for each in open_)
        judged = len(passages) - len(open_)
        left = 0 if made else len(unasked)
        change = ChangeToJudge(len(passages), judged, gone, not self.gold, made, waiting, left)
        return change, passages

    def _items_of(self, item_ids: Sequence[str]) -> list[SearchableItem]:
        """Return items with those beside them in the corpus; of a searcher of another kind, those that it found."""
        if not isinstance(self.searcher, BaseSearcher):
            return [self._items[item_id] for item_id in item_ids]
        table = self.searcher.opened.items
        rows = np.unique(table.find(list(item_ids))[:, None] + np.array([-1, 0, 1]))
        rows = rows[(rows >= 0) & (rows < len(table))]
        return table.items(rows if table.live is None else rows[table.live[rows]])

    def _deeper(self, query: str, k: int) -> list[RetrievalResult]:
        return list(self.searcher.search([query], k)[0])

    def _notes(self, compared: Sequence[Query], limits: Sequence[LimitVerdict]) -> list[str]:
        notes = [note] if (note := synthetic_note(sum(query.is_synthetic for query in compared), len(compared))) else []
        if new := len(self.queries) - len(compared):
            notes.append(f"{counted(new, 'query is', 'queries are')} not in the baseline, and not compared")
        for name in self.settings.limits:
            if not any(limit.name == name for limit in limits):
                notes.append(f"the baseline has no {name}, so its limit was not checked; {RENEW}")
        if self.gold and len(self.gold) < len(self.queries):
            ungraded = counted(len(self.queries) - len(self.gold), "query has", "queries have")
            notes.append(f"{ungraded} no gold; only the agreement counts there")
        return notes


def _measured(baseline: Baseline, gold: Sequence[Gold], settings: GateSettings) -> dict[str, Scores]:
    """Return ``[queries]`` by measure, of the hits that a baseline keeps."""
    titles = {item_id: item.title for item_id, item in baseline.items.items()}
    hits = [baseline.queries[each.query_id].hits for each in gold]
    return dict(evaluate_rankings(gold, hits, titles, list(settings.margins), settings.relevant_from).per_query)


def _groups(queries: Sequence[Query], key: str | None) -> dict[str, Mask]:
    groups = {} if key is None else masks_of(group_labels(queries, key), group_order(queries, key))
    return {"": np.ones(len(queries), bool)} | groups


def _overlap(before: Sequence[str], now: Sequence[str]) -> float:
    """Return the rank-biased overlap of two rankings, 1 if both are equal (Webber, Moffat and Zobel, 2010)."""
    depth = max(len(before), len(now))
    if depth == 0:
        return 1.0
    seen_before: set[str] = set()
    seen_now: set[str] = set()
    total = weights = 0.0
    for rank in range(depth):
        seen_before.update(before[rank : rank + 1])
        seen_now.update(now[rank : rank + 1])
        weight = _PERSISTENCE**rank
        total += weight * len(seen_before & seen_now) / (rank + 1)
        weights += weight
    return total / weights
