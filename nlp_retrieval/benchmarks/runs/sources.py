"""Runs as named by users: the output folder of a benchmark, one configuration of it, or a TREC run file of any tool.

All compared runs must answer the same queries over the same corpus: a text, gold or corpus that differs between sources is
an error and is not averaged; see :mod:`nlp_retrieval.benchmarks.runs.comparable`.
"""

from __future__ import annotations

import os.path
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path

import numpy as np

from nlp_retrieval.benchmarks.judging import Entrant
from nlp_retrieval.benchmarks.results import ConfigurationResult, Measures
from nlp_retrieval.benchmarks.runs.comparable import (
    RunCorpus,
    cautions_of,
    corpora_note,
    corpora_of,
    refuse_other_corpora,
    refuse_other_gold,
    refuse_other_texts,
)
from nlp_retrieval.benchmarks.runs.folder import SavedRun, is_run_folder, read_run_folder
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import file_names
from nlp_retrieval.errors import ConfigurationError, GoldError, RetrievalWarning, SourceError, nearest
from nlp_retrieval.evaluation.own_ids import OwnIds, own_ids_of_lists, without_own
from nlp_retrieval.evaluation.rankings import Listing, ListsBuilder, Ranking, RunLists
from nlp_retrieval.evaluation.trec import Run, read_run
from nlp_retrieval.loaders.judgements import read_judgements, with_matched_numbers

QRELS = "qrels.txt"


@dataclass(frozen=True)
class Sources:
    """Runs that answer the same queries.

    Args:
        lists: lists of all runs, in the given order.
        entrants: other facts about each.
        saved: the folders that runs came from, the first one first.
        measured: for runs from a folder, the means in their own report.
        corpora: the corpus of each run; None if unknown.
        cautions: other warnings about comparing the figures, in sentences.
        unjudged: ids of queries in run files without judgements; their lists are the last of ``lists``.
        own: the hits that do not count, because they are the query itself; they are not in ``lists``.
    """

    lists: RunLists
    entrants: dict[str, Entrant]
    saved: list[SavedRun]
    measured: dict[str, Measures]
    corpora: dict[str, RunCorpus | None] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    own: OwnIds = field(default_factory=lambda: OwnIds([]))

    @property
    def judged(self) -> RunLists:
        """The lists of the judged queries."""
        return self.lists.first(len(self.lists.query_ids) - len(self.unjudged))

    @property
    def notes(self) -> list[str]:
        """All warnings about comparing the figures, in sentences."""
        return [note for note in (corpora_note(self.corpora), *self.cautions) if note]


@dataclass(frozen=True)
class _Named:
    """One run: a configuration of a folder, or a file."""

    name: str
    where: str
    saved: SavedRun | None
    rankings: Run


def read_sources(
    runs: Sequence[str],
    qrels: str | Path | None = None,
    *,
    across_corpora: bool = False,
    ignore_identical_ids: bool | None = None,
) -> Sources:
    """Read runs.

    Args:
        runs: each ``FOLDER`` (all configurations of a benchmark's output folder), ``FOLDER:CONFIGURATION``, or a TREC run file.
            A file that a benchmark wrote into ``<folder>/trec`` counts as that configuration, with its signals.
        qrels: the gold of TREC files not written by a benchmark; by default ``qrels.txt`` next to the first of them.
        across_corpora: the comparison is between corpora, so they may differ.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count; None: true if
            texts are equal or, without texts, if most queries that find such a hit find it first.

    Raises:
        SourceError: a file or folder is missing or malformed, or two runs are known to be of different corpora.
        ConfigurationError: a folder does not have the configuration.
        GoldError: there is no gold, or two runs do not have the same queries and gold.
        QueryError: queries with one id have different texts in two folders.
    """
    opened: dict[str, SavedRun] = {}
    named = [one for run in runs for one in _named(run, opened)]
    saved = list(opened.values())
    gold = _gold(named, saved, qrels)
    refuse_other_texts(saved)
    named = [replace(one, rankings=with_matched_numbers(one.rankings, gold, one.where)) for one in named]
    unjudged = list(dict.fromkeys(query_id for one in named for query_id in one.rankings if query_id not in gold))
    query_ids = [*gold, *unjudged]
    first = saved[0].lists if saved else None
    unknown: list[str | None] = [None] * len(query_ids)
    titles = _titles(saved)
    if first is not None:
        none = unknown[: len(unjudged)]
        about = [*first.texts, *[""] * len(unjudged)], [*first.families, *none], [*first.groups, *none]
        builder = ListsBuilder(query_ids, *about, gold, titles)
    else:
        builder = ListsBuilder(query_ids, [""] * len(query_ids), unknown, unknown, gold, titles)
    entrants: dict[str, Entrant] = {}
    measured: dict[str, Measures] = {}
    corpora: dict[str, RunCorpus | None] = {}
    repeated = {one.name for place, one in enumerate(named) if one.name in {other.name for other in named[:place]}}
    for one in named:
        name = f"{one.where}: {one.name}" if one.name in repeated else one.name
        if name in entrants:
            raise ConfigurationError(f"{name} is named twice; name each run once")
        entrants[name] = _added(builder, name, one, list(gold), unjudged, titles)
        corpora[name] = None
        if one.saved is not None:
            measured[name] = _result(one.saved, one.name).measures
            corpora[name] = corpora_of(one.saved.report)[one.name]
    if not across_corpora:
        refuse_other_corpora(corpora)
    for folder in saved:
        builder.add_passages(folder.lists.passages)
    lists = builder.built()
    own = own_ids_of_lists(lists, ignore_identical_ids)
    if own.ignored:
        lists = replace(lists, listings=without_own(lists, own))
    return Sources(lists, entrants, saved, measured, corpora, cautions_of(saved), unjudged, own)


def _added(
    builder: ListsBuilder, name: str, one: _Named, query_ids: list[str], unjudged: list[str], titles: dict[str, str]
) -> Entrant:
    if one.saved is None:
        rankings = one.rankings
        lists: list[Ranking] = [rankings.get(query_id, []) for query_id in (*query_ids, *unjudged)]
        if not any(lists[: len(query_ids)]):
            raise SourceError(f"{one.where}: none of the {len(query_ids):,} queries is in it; was it made for other queries?")
        missing = [query_id for query_id in query_ids if query_id not in rankings]
        if missing:
            warnings.warn(
                f"{one.where}: {len(missing):,} of {len(query_ids):,} queries are not in it (the first: {missing[0]!r}); "
                "they score 0 and count",
                RetrievalWarning,
                stacklevel=2,
            )
        builder.add_rankings(name, lists, titles)
        config: Config = {"name": "trec_run", "path": one.where}
        return Entrant(config, "", None)
    found, own = one.saved.lists.rankings(one.name), one.saved.lists.listing(one.name)
    place = {query_id: number for number, query_id in enumerate(one.saved.lists.query_ids)}
    order = [place[query_id] for query_id in query_ids]
    nothing: list[Ranking] = [[] for _ in unjudged]
    listing: Listing = builder.add_rankings(name, [*(found[number] for number in order), *nothing], titles)
    hits = np.concatenate([np.arange(own.of(number).start, own.of(number).stop) for number in order])
    listing.signals.update({signal: values[hits] for signal, values in own.signals.items()})
    result = _result(one.saved, one.name)
    return Entrant(result.config, result.fingerprint, result.cost)


def _result(saved: SavedRun, name: str) -> ConfigurationResult:
    return next(result for result in saved.report.configurations if result.name == name)


def _named(run: str, opened: dict[str, SavedRun]) -> list[_Named]:
    run = os.path.expanduser(run)  # noqa: PTH111 -- as below
    path = Path(run)
    if os.path.isdir(run):  # noqa: PTH112 -- unlike Path.is_dir it does not raise where a name is too long
        saved = _opened(path, opened)
        return [_Named(name, run, saved, {}) for name in saved.lists.listings]
    if not os.path.exists(run) and ":" in run:  # noqa: PTH110 -- as above
        splits = [(run[:place], run[place + 1 :]) for place, character in enumerate(run) if character == ":"]
        folders = [(folder, name) for folder, name in splits if is_run_folder(Path(folder))] or [
            (folder, name)
            for folder, name in splits
            if os.path.isdir(folder)  # noqa: PTH112 -- as above
        ]
        known: list[str] | None = None
        for folder, name in reversed(folders):
            saved = opened.get(realpath(folder)) or read_run_folder(folder)
            if name in saved.lists.listings:
                return [_Named(name, folder, opened.setdefault(realpath(folder), saved), {})]
            known = known or list(saved.lists.listings)
        if folders:
            folder, name = folders[-1]
            raise ConfigurationError(f"{folder} has no configuration {name!r}; {nearest(name, known or [])}")
    if path.parent.name == "trec" and is_run_folder(path.parent.parent):
        saved = _opened(path.parent.parent, opened)
        names = list(saved.lists.listings)
        for name, stem in zip(names, file_names(names), strict=True):
            if path.name == f"{stem}.trec":
                return [_Named(name, str(path.parent.parent), saved, {})]
    if not os.path.exists(run):  # noqa: PTH110 -- as above
        raise SourceError(
            f"{run}: there is no such run; name a TREC run file, the output folder of a benchmark, or FOLDER:CONFIGURATION"
        )
    return [_Named(path.name.removesuffix(".gz").removesuffix(".trec"), run, None, read_run(path))]


def _opened(folder: Path, opened: dict[str, SavedRun]) -> SavedRun:
    key = realpath(folder)
    if key not in opened:
        opened[key] = read_run_folder(folder)
    return opened[key]


def _gold(named: list[_Named], saved: list[SavedRun], qrels: str | Path | None) -> dict[str, dict[str, int]]:
    """The gold that all runs are judged by."""
    golds = [(str(one.folder), one.lists.qrels()) for one in saved]
    if qrels is not None:
        golds.append((str(qrels), _relevant(Path(qrels))))
    files = [one for one in named if one.saved is None]
    if files and not golds:
        beside = Path(files[0].where).parent / QRELS
        if not beside.exists():
            raise GoldError(f"{files[0].where}: there is no gold to judge it by; name a file of judgements with --qrels")
        golds.append((str(beside), _relevant(beside)))
    if not golds:
        raise SourceError("there is nothing to read; name at least one run")
    refuse_other_gold(golds)
    return golds[0][1]


def _relevant(path: Path) -> dict[str, dict[str, int]]:
    judged = read_judgements(path)
    gold = {query_id: {item: grade for item, grade in grades.items() if grade > 0} for query_id, grades in judged.items()}
    if not any(gold.values()):
        raise GoldError(f"{path}: no query has gold with a grade above 0; nothing can be judged by it")
    return gold


def _titles(saved: list[SavedRun]) -> dict[str, str]:
    titles: dict[str, str] = {}
    for one in saved:
        titles |= dict(zip(one.lists.item_ids, one.lists.titles, strict=True))
    return titles
