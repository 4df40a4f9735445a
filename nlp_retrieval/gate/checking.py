"""Checking a searcher by a gate: search, measure, compare with the baseline, and find out why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.benchmarker import group_order, run_identity
from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.results import masks_of
from nlp_retrieval.benchmarks.settings import check_group_by, group_labels
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.components.component import to_plain
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.core.queries import synthetic_note
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, GoldError, IndexMissingError, QueryError, RetrievalError
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator, evaluate_rankings
from nlp_retrieval.evaluation.gold import MissingGold
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import are_passages, own_ids
from nlp_retrieval.gate.baseline import RENEW, Baseline, BaselineItem, BaselineQuery, digest, read_baseline, write_baseline
from nlp_retrieval.gate.reasons import GateChange, LostQuery, changes_of, is_relevant, lost_most
from nlp_retrieval.gate.settings import GateSettings
from nlp_retrieval.gate.verdict import MeasureVerdict, Verdict, judge, looks_of, overall, queries_needed
from nlp_retrieval.text.printing import counted

_PERSISTENCE = 0.9
_SHOWN, _DEEPER = 5, 10


@dataclass(frozen=True)
class GateReport:
    """Result of a gate.

    Args:
        verdict: on all measures together; None without gold.
        passes: whether the gate passes.
        measures: the verdict on each measure in each group.
        agreement: mean rank-biased overlap with the rankings of the baseline.
        same: number of queries whose first k items are the same, in the same order.
        queries: number of them.
        changes: what is not as it was for the baseline, in the order in which to look.
        lost: the queries that lost most, first those that lost more; without a verdict, those whose results changed most.
        notes: what was noticed besides.
        level: chance of a false alarm over ``looks`` changes of the results.
        looks: number of changes that the baseline judges.
        failing: the verdicts with which the gate fails.

    Examples:
        >>> report = GateReport(None, False, [], agreement=0.41, same=0, queries=2, changes=[], lost=[])
        >>> bool(report), report.agreement
        (False, 0.41)
    """

    verdict: Verdict | None
    passes: bool
    measures: list[MeasureVerdict]
    agreement: float
    same: int
    queries: int
    changes: list[GateChange]
    lost: list[LostQuery]
    notes: list[str] = field(default_factory=list)
    level: float = 0.05
    looks: int = 1
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
        ConfigurationError: there is no searcher, no margin although the queries have gold, or no query with a group.
        QueryError: there are no queries.

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
        self.gold = {query.query_id: gold[query.query_id] for query in self.queries if query.query_id in gold}
        if not settings.margins and self.gold:
            raise ConfigurationError(
                "the gate has no margins, the largest losses that are acceptable; write 'margins: {ndcg@10: 0.02}'"
            )
        if settings.group_by is not None:
            check_group_by(self.queries, settings.group_by)

    def check(self) -> GateReport:
        """Return the report on the searcher.

        Raises:
            SourceError: the baseline is missing, damaged or edited.
            ConfigurationError: the baseline is of other queries, of another corpus, or keeps fewer hits.
            QueryError: the searcher finds nothing for any query.
            GoldError: the index holds no relevant document.
        """
        settings = self.settings
        before = read_baseline(settings.baseline)
        kept = {each: replace(query, hits=query.hits[: settings.k]) for each, query in before.queries.items()}
        before = replace(before, queries=kept, k=min(before.k, settings.k))
        now = self._searched("")
        texts = self._texts_now(before)
        self._check_comparable(before, now, texts)
        hits = ((hit, gold) for each, gold in self.gold.items() for hit in now.queries[each].hits)
        found = any(is_relevant(hit, now.items[hit].title, gold) for hit, gold in hits)
        if not found and (missing := self._missing_gold()) is not None and missing.all:
            raise GoldError(f"{missing.said}: no figure could be above 0; {missing.cure}")
        compared = [query for query in self.queries if query.query_id in before.queries]
        measured = [query for query in compared if query.query_id in self.gold]
        looks = looks_of(len(measured or compared)) if settings.looks is None else settings.looks
        overlaps = np.array(
            [_overlap(before.queries[each.query_id].hits, now.queries[each.query_id].hits) for each in compared]
        )
        agreement = math.fsum(overlaps) / len(overlaps)
        verdict: Verdict | None = None
        verdicts: list[MeasureVerdict] = []
        old, new = {"": np.ones(len(compared))}, {"": overlaps}
        if measured:
            old, new = (self._values(side, measured) for side in (before, now))
            verdicts = self._judged(measured, old, new, looks)
            verdict = overall(verdicts)
        gold = self.gold if measured else None
        lost = lost_most(measured or compared, old, new, before, now, gold, self._deeper, self._text_of, _SHOWN)
        return GateReport(
            verdict=verdict,
            passes=agreement >= settings.least_agreement if verdict is None else verdict not in settings.failing,
            measures=verdicts,
            agreement=agreement,
            same=sum(before.queries[each.query_id].hits == now.queries[each.query_id].hits for each in compared),
            queries=len(compared),
            changes=changes_of(before, now, texts),
            lost=lost,
            notes=self._notes(compared),
            level=settings.level,
            looks=looks,
            failing=settings.failing,
        )

    def update(self, reason: str, *, accept_losses: bool = False) -> list[str]:
        """Accept what the searcher finds now as the baseline.

        Args:
            reason: why it is accepted, for the file.
            accept_losses: whether to accept it even if gold is missing from the corpus or gone from the queries, or a measure
                is 0 or falls by more than its margin.

        Returns:
            Each measure before and after, and notes on what this baseline cannot see.

        Raises:
            ConfigurationError: there is no reason, gold is gone, or a measure falls by more than its margin.
            QueryError: the searcher finds nothing for any query.
            GoldError: gold is missing from the corpus, or a measure is 0 for every query.
            OutputError: the file cannot be written.
        """
        if not reason.strip():
            raise ConfigurationError("the reason is empty; say why these results are accepted")
        current = self._searched(reason.strip())
        missing = self._missing_gold()
        if missing is not None and not accept_losses:
            raise GoldError(f"{missing.said}, so the baseline stays as it is; {missing.cure}, or pass accept_losses=True")
        measured = [query for query in self.queries if query.query_id in self.gold]
        lines = [] if not self.settings.baseline.exists() else self._before_and_after(current, measured, accept_losses)
        values = self._values(current, measured) if measured else {}
        if (zero := [name for name, column in values.items() if not column.any()]) and not accept_losses:
            raise GoldError(
                f"{zero[0]} is 0 for every query and could never fall, so the baseline is not written; check that gold and "
                "results have the same ids, or pass accept_losses=True"
            )
        write_baseline(self.settings.baseline, current)
        if not measured:
            return [*lines, "the queries have no gold: the gate compares rankings, and cannot tell better from worse"]
        for name, column in values.items():
            margin = self.settings.margins[name]
            if (needed := queries_needed(column, margin)) > len(column):
                lines.append(
                    f"{Measure.parse(name).label}: it takes about {needed:,} queries to show that no more than {margin:g} was "
                    f"lost, and the gate has {len(column):,}: it will often not be able to tell"
                )
        return lines

    def _before_and_after(self, current: Baseline, measured: Sequence[Query], accept_losses: bool) -> list[str]:
        """Return each measure and group of the earlier baseline beside now; a fall that is not accepted is an error."""
        try:
            before = read_baseline(self.settings.baseline)
        except RetrievalError as error:
            return [f"the earlier baseline cannot be compared: {error}"]
        if not accept_losses:
            self._check_gold(before)
        texts = self._texts_now(before)
        lines = [f"{change.kind}: {change.detail}" for change in changes_of(before, current, texts)]
        old = before.queries
        common = [each for each in measured if each.query_id in old and old[each.query_id].text == digest(each.text)]
        highest = [max(self.gold[each.query_id].relevance.values(), default=0) for each in common]
        if max(highest, default=0) < self.settings.relevant_from:
            return [*lines, "the earlier baseline has none of these queries with relevant gold, so nothing can be compared"]
        earlier, now = (self._values(side, common) for side in (before, current))
        judged = self._judged(common, earlier, now, looks=1)
        verdicts = [each for each in judged if (Measure.parse(each.measure).cutoff or 0) <= before.k]
        if len(verdicts) < len(judged):
            lines.append(f"the earlier baseline keeps {before.k} hits a query, so what needs more cannot be compared")
        fallen = [
            f"{each.label} falls from {each.before:.3f} to {each.now:.3f}, by more than its margin of {each.margin:g}"
            for each in verdicts
            if each.difference < -each.margin
        ]
        if fallen and not accept_losses:
            raise ConfigurationError(
                f"{'; '.join(fallen)}: the baseline stays as it is. Run the gate without --update to see why, or pass "
                "accept_losses=True"
            )
        return [*lines, *(f"{each.label}: {each.before:.3f} -> {each.now:.3f} ({each.difference:+z.3f})" for each in verdicts)]

    @property
    def _is_ours(self) -> bool:
        """Whether the searcher has an index of this package, and is none of another kind."""
        return isinstance(self.searcher, BaseSearcher)

    def _open(self) -> None:
        searcher, settings = self.searcher, self.settings
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

    def _searched(self, reason: str) -> Baseline:
        """Search, and return the first k results of each query as a baseline."""
        if not self._opened:
            self._open()
        own, k = self._own_ids(), self.settings.k
        lists = self.searcher.search([query.text for query in self.queries], k + any(own))
        if not any(lists):
            raise QueryError("the searcher found nothing for any query; is its index the right one?")
        queries = {}
        self._items = {}
        for query, hits, own_id in zip(self.queries, lists, own, strict=True):
            gold = self.gold.get(query.query_id)
            of_gold = digest(repr(sorted(gold.relevance.items()))) if gold is not None else ""
            kept = {hit.item.item_id: hit.item for hit in [hit for hit in hits if hit.item.item_id != own_id][:k]}
            queries[query.query_id] = BaselineQuery(query.query_id, digest(query.text), of_gold, tuple(kept))
            self._items |= kept
        titled = any(each.by == "title" for each in self.gold.values())
        items = {
            item_id: BaselineItem(digest(item.text), item.title if titled else "") for item_id, item in self._items.items()
        }
        return Baseline(reason, k, queries, items, self._identity())

    def _missing_gold(self) -> MissingGold | None:
        """Return the relevant documents that the index lacks; None if it holds all, or is of a searcher of another kind."""
        gold = [each for each in self.gold.values() if max(each.relevance.values(), default=0) > 0]
        if not gold or not self._is_ours:
            return None
        table = self.searcher.opened.items
        return RetrievalEvaluator(gold, table.ids(), table.titles(), [1], "count").missing

    def _own_ids(self) -> list[str | None]:
        """Return the hits that are the queries themselves, decided as in a benchmark of this index."""
        ids = [query.query_id for query in self.queries]
        texts = {item.item_id: (item.content, item.text) for item in self._items_at(ids)} if self._is_ours else {}
        ignore = are_passages(self.queries, texts, self.settings.ignore_identical_ids)
        return own_ids(ids, texts, {each: gold.relevance for each, gold in self.gold.items()}, ignore=ignore)

    def _identity(self) -> dict[str, Any]:
        """Return what the results depend on, as plain values."""
        searcher = self.searcher
        identity: dict[str, Any] = {"versions": describe_environment()["versions"]}
        if isinstance(searcher, BaseSearcher):
            corpus = searcher.opened.manifest.corpus
            run = run_identity(searcher, searcher.fingerprint)
            identity["corpus"] = {"fingerprint": corpus.fingerprint, "items": corpus.n_items}
            identity |= {"searcher": without_secrets(searcher.config), "models": run["models"], "retrievers": run["retrievers"]}
        return to_plain(identity)  # type: ignore[no-any-return]

    def _check_comparable(self, before: Baseline, current: Baseline, texts: Mapping[str, str]) -> None:
        path, settings = self.settings.baseline, self.settings
        if before.k < settings.k:
            raise ConfigurationError(f"{path} keeps {before.k} hits a query, and the gate's k is {settings.k}; {RENEW}")
        old, new = before.queries, current.queries
        gone = [each for each in old if each not in new]
        other = [each for each in old if each in new and old[each].text != new[each].text]
        for what, ids in (("are gone", gone), ("have another text", other)):
            if ids:
                raise ConfigurationError(
                    f"{len(ids):,} of {len(old):,} queries of {path} {what} (the first: {ids[0]!r}), so the same questions "
                    f"cannot be compared; restore them, or {RENEW}"
                )
        self._check_gold(before)
        if any(each.by == "title" for each in self.gold.values()) and not any(item.title for item in before.items.values()):
            raise ConfigurationError(f"the gold names titles, and {path} keeps none of its items; {RENEW}")
        if self._is_ours and not texts:
            raise ConfigurationError(
                f"none of the {len(before.items):,} items of {path} is in the index: it is of another corpus, or all ids are "
                "new. Check the corpus and how it is cut; if they are meant to be so, bring the gold in line with the new ids, "
                f"and {RENEW}"
            )

    def _check_gold(self, before: Baseline) -> None:
        if not self.gold and (graded := sum(query.gold != "" for query in before.queries.values())):
            raise ConfigurationError(
                f"{graded:,} queries of {self.settings.baseline} had gold, and now none has: rankings alone cannot show a "
                f"loss; restore the gold (qrels), or {RENEW} and --accept-losses"
            )

    def _texts_now(self, before: Baseline) -> dict[str, str]:
        return {item.item_id: digest(item.text) for item in self._items_at(list(before.items))}

    def _items_at(self, item_ids: Sequence[str]) -> list[SearchableItem]:
        """Return items by their ids; of a searcher of another kind, those that it found."""
        if not self._is_ours:
            return [self._items[item_id] for item_id in item_ids if item_id in self._items]
        table: ItemTable = self.searcher.opened.items
        rows = table.find(list(item_ids))
        return table.items(rows[rows >= 0])

    def _text_of(self, item_id: str) -> str | None:
        """Return the text of an item; None if the corpus does not hold it, ``""`` if that is not known."""
        return next((item.text for item in self._items_at([item_id])), None if self._is_ours else "")

    def _values(self, side: Baseline, queries: Sequence[Query]) -> dict[str, Scores]:
        """Return ``[queries]`` by measure, of the hits that a baseline keeps."""
        hits = [side.queries[query.query_id].hits for query in queries]
        gold = [self.gold[query.query_id] for query in queries]
        titles = {item_id: item.title for item_id, item in side.items.items()}
        return dict(evaluate_rankings(gold, hits, titles, list(self.settings.margins), self.settings.relevant_from).per_query)

    def _judged(
        self, queries: Sequence[Query], old: Mapping[str, Scores], new: Mapping[str, Scores], looks: int
    ) -> list[MeasureVerdict]:
        settings, families = self.settings, [query.family for query in queries]
        key = settings.group_by
        groups = {} if key is None else masks_of(group_labels(queries, key), group_order(queries, key))
        groups = {"": np.ones(len(queries), bool)} | groups
        return judge(old, new, settings.margins, families, groups, level=settings.level, looks=looks)

    def _deeper(self, query: str) -> list[str]:
        (hits,) = self.searcher.search([query], _DEEPER * self.settings.k)
        return [hit.item.item_id for hit in hits]

    def _notes(self, compared: Sequence[Query]) -> list[str]:
        notes = [note] if (note := synthetic_note(sum(query.is_synthetic for query in compared), len(compared))) else []
        if new := len(self.queries) - len(compared):
            notes.append(f"{counted(new, 'query is', 'queries are')} not in the baseline, and not compared")
        if self.gold and (ungraded := len(self.queries) - len(self.gold)):
            notes.append(f"{counted(ungraded, 'query has', 'queries have')} no gold; only the agreement counts there")
        return notes


def _overlap(before: Sequence[str], now: Sequence[str]) -> float:
    """Return the rank-biased overlap of two rankings, 1 if both are equal (Webber, Moffat and Zobel, 2010)."""
    depth = max(len(before), len(now))
    weights = _PERSISTENCE ** np.arange(depth)
    shared = [len({*before[:rank]} & {*now[:rank]}) / rank for rank in range(1, depth + 1)]
    return float(weights @ shared / weights.sum()) if depth else 1.0
