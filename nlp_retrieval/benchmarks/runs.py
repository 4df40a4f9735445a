"""Finished benchmarks on disk: reading one restores exactly what was written.

``report.json`` holds the whole report, and the Parquet files next to it the lists and every query's measures, so a page can
be rewritten, and runs compared, without searching. It is written last, with the checksums of those files and its own: a
run that was changed or truncated since is an error that names the file.
"""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from nlp_retrieval.benchmarks.entrants import lists_of
from nlp_retrieval.benchmarks.results import BenchmarkReport, Entrant
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import file_names
from nlp_retrieval.core.files.frames import read_parquet
from nlp_retrieval.core.files.opening import read_json_file, sha256_of
from nlp_retrieval.core.index.generation import FileRecord
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import ConfigurationError, GoldError, QueryError, SourceError, nearest
from nlp_retrieval.evaluation.evaluator import Evaluation
from nlp_retrieval.evaluation.ranking_files import HITS, PASSAGES, QUERIES, read_lists
from nlp_retrieval.evaluation.rankings import ListsBuilder, RunLists, own_ids, without_own
from nlp_retrieval.evaluation.trec import NO_DOCUMENT, Run, read_run
from nlp_retrieval.loaders.judgements import read_judgements, with_matched_numbers

REPORT = "report.json"
PER_QUERY = "per_query.parquet"

FORMAT = 6

_ADAPTER = TypeAdapter(BenchmarkReport)
_READ_BACK = (PER_QUERY, HITS, QUERIES, PASSAGES)
_ABOUT = ("configuration", "query_id", "family", "group")


@dataclass(frozen=True)
class SavedRun:
    """A finished run, read from its folder; ``evaluations`` has every measure of every query, by configuration."""

    folder: Path
    report: BenchmarkReport
    lists: RunLists
    evaluations: dict[str, Evaluation]


def report_bytes(report: BenchmarkReport, folder: Path) -> bytes:
    """Return a report as the content of ``report.json``."""
    files = {name: FileRecord(bytes=(folder / name).stat().st_size, sha256=sha256_of(folder / name)) for name in _READ_BACK}
    records = {name: record.model_dump() for name, record in files.items()}
    content = {"format": FORMAT, "files": records, "report": _ADAPTER.dump_python(report, mode="json")}
    return (json.dumps(content | {"checksum": _checksum(content)}, ensure_ascii=False) + "\n").encode()


def read_run_folder(folder: str | Path) -> SavedRun:
    """Read a finished run.

    Args:
        folder: the output folder of a benchmark.

    Raises:
        SourceError: it is not such a folder, or its files are damaged or of another version.

    Examples:
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> run = Benchmarker({"bm25": Searcher(["bm25"])}, corpus, queries, gold, index_path="index").run()
        >>> report = write_run_files(run, "runs/first")
        >>> read_run_folder("runs/first").report.configurations[0].name
        'bm25'
    """
    folder = Path(folder)
    report = _in_its_folder(_read_report(folder), folder)
    lists = read_lists(folder)
    if absent := {result.name for result in report.configurations} - lists.listings.keys():
        raise SourceError(f"{folder / REPORT} has {min(absent)!r}, and {HITS} does not name it; run the benchmark again")
    return SavedRun(folder, report, lists, _evaluations(folder / PER_QUERY, report, lists.query_ids))


def _read_report(folder: Path) -> BenchmarkReport:
    """The report, after the files read with it have been compared with their checksums."""
    path, damaged, report = folder / REPORT, list[Path](), None
    try:
        content = read_json_file(path)
        number = content["format"] if isinstance(content, dict) else None
        if number == FORMAT:
            damaged += [path] if content.pop("checksum") != _checksum(content) else []
            for name in _READ_BACK:
                record, file = FileRecord.model_validate(content["files"][name]), folder / name
                damaged += [file] if (file.stat().st_size, sha256_of(file)) != (record.bytes, record.sha256) else []
            report = None if damaged else _ADAPTER.validate_python(content["report"])
    except OSError as error:
        missing, reason = error.filename or path, error.strerror or error
        raise SourceError(f"{missing} cannot be read ({reason}); give the output folder of a finished benchmark") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is not what a benchmark writes ({error}); run the benchmark again") from error
    if damaged:
        raise SourceError(f"{damaged[0]} is damaged: it is not what the benchmark wrote; run the benchmark again")
    if report is None:
        raise SourceError(f"{path} was made by another version (format {number!r}); run the benchmark again")
    return report


def _in_its_folder(report: BenchmarkReport, folder: Path) -> BenchmarkReport:
    """Look for the files of a report next to it, ignoring recorded paths: it may have been moved, or come from someone else."""
    names = {kind: Path(recorded).name for kind, recorded in report.files.items()}
    return replace(report, files={kind: str(folder / name) for kind, name in names.items() if name not in ("", "..")})


def _checksum(content: dict[str, Any]) -> str:
    plain = json.loads(json.dumps(content))  # as read from a file: tuples become lists, and keys text
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _evaluations(path: Path, report: BenchmarkReport, query_ids: list[str]) -> dict[str, Evaluation]:
    evaluations, whole = {}, True
    try:
        table = read_parquet(path)
        table.validate(full=True)
        measured = table.drop_columns(list(_ABOUT)).schema
        if not all(map(pa.types.is_floating, measured.types)):
            raise ValueError("a measure is no column of floats")  # noqa: TRY301
        for result in report.configurations:
            rows = table.filter(pc.equal(table.column("configuration"), result.name))
            measures = {name: np.asarray(rows.column(name)) for name in measured.names}
            whole &= rows.column("query_id").to_pylist() == query_ids and bool(np.isfinite([*measures.values()]).all())
            about = {"empty_queries": result.empty_queries, "relevant_from": report.relevant_from}
            evaluations[result.name] = Evaluation(list(query_ids), measures, **about)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise SourceError(f"{path} cannot be read ({error}); run the benchmark again") from error
    if not whole:
        raise SourceError(f"{path} does not hold numbers for all queries and configurations; run the benchmark again")
    return evaluations


def depth_of(report: BenchmarkReport) -> int:
    """Return how far the lists of a finished run reach."""
    return int(report.manifest["depth"])


# Checks that separate runs can be compared: other texts or gold under equal ids are an error, and so is another corpus, unless
# corpora are being compared. What affects no figure, or is not known, is said in a sentence.

Judgements = Mapping[str, Mapping[str, int]]
"""Grades by item id, by query id."""


@dataclass(frozen=True)
class RunCorpus:
    """The corpus that a configuration was run on: the fingerprint of its items in order, and their number."""

    fingerprint: str
    items: int

    def __str__(self) -> str:
        return f"{self.items:,} items (fingerprint {self.fingerprint[:12]})"


def corpora_of(report: BenchmarkReport) -> dict[str, RunCorpus | None]:
    """Return the corpus that each configuration was run on; None if the manifest does not record it."""
    manifest, names = report.manifest, [result.name for result in report.configurations]
    recorded = manifest.get("corpora")
    if isinstance(recorded, Mapping):
        return {name: _corpus(recorded.get(name)) for name in names}
    return dict.fromkeys(names, _corpus(manifest.get("corpus")))


def corpora_record(corpora: Mapping[str, RunCorpus | None]) -> Config:
    """Return the corpora of compared runs for their manifest; a common one also as ``corpus``."""
    each = {name: None if corpus is None else asdict(corpus) for name, corpus in corpora.items()}
    common = len(set(corpora.values())) == 1 and None not in corpora.values()
    return {"corpora": each} | ({"corpus": next(iter(each.values()))} if common else {})


def corpora_note(corpora: Mapping[str, RunCorpus | None]) -> str:
    """Return a warning about figures measured on different or unknown corpora; ``""`` if none is needed."""
    known: dict[RunCorpus, list[str]] = {}
    unknown = [name for name, corpus in corpora.items() if corpus is None]
    for name, corpus in corpora.items():
        if corpus is not None:
            known.setdefault(corpus, []).append(name)
    notes = []
    if len(known) > 1:
        runs = "; ".join(f"{', '.join(names)}: {corpus}" for corpus, names in known.items())
        notes.append(f"These configurations were run on different corpora, and a difference may be one of corpora. {runs}.")
    if unknown and len(corpora) > 1:
        notes.append(f"The corpus of {', '.join(unknown)} is not known, so a difference may be one of corpora.")
    return " ".join(notes)


def refuse_other_corpora(corpora: Mapping[str, RunCorpus | None]) -> None:
    """Raise an error if configurations were run on different corpora."""
    known = {name: corpus for name, corpus in corpora.items() if corpus is not None}
    if len(set(known.values())) > 1:
        (name, corpus), *others = known.items()
        other_name, other = next((other_name, other) for other_name, other in others if other != corpus)
        raise SourceError(
            f"{name!r} was run on a corpus of {corpus}, and {other_name!r} on one of {other}; compare runs over the same "
            "corpus or, to compare corpora, pass --across-corpora (in Python across_corpora=True)"
        )


def refuse_other_gold(golds: Sequence[tuple[str, Judgements]]) -> None:
    """Raise an error if the gold differs from that of the first source."""
    where, gold = golds[0]
    for other_where, other in golds[1:]:
        if differ := [query_id for query_id in {**gold, **other} if gold.get(query_id) != other.get(query_id)]:
            raise GoldError(
                f"{where} and {other_where} do not have the same queries and gold: {len(differ):,} queries of {len(gold):,} "
                f"and {len(other):,} differ (the first: {differ[0]!r}); compare runs over the same queries"
            )


def refuse_other_texts(saved: Sequence[SavedRun]) -> None:
    """Raise an error if query texts with equal ids differ from those of the first folder that has texts."""
    holding = [run for run in saved if any(run.lists.texts)]  # a comparison of run files alone has none
    for other in holding[1:]:
        ours, theirs = (dict(zip(run.lists.query_ids, run.lists.texts, strict=True)) for run in (holding[0], other))
        if changed := [query_id for query_id, text in ours.items() if theirs[query_id] != text]:
            raise QueryError(
                f"{len(changed):,} of {len(ours):,} queries have other texts in {holding[0].folder} than in {other.folder} "
                f"(the first: {changed[0]!r}); compare runs over the same queries"
            )


def cautions_of(saved: Sequence[SavedRun]) -> list[str]:
    """Return, in sentences, what of folders may make their figures differ, and the folders' own cautions."""
    cautions = [f"{run.folder}: {caution}" for run in saved for caution in cautions_in(run.report)]
    for first, other in ((saved[0], other) for other in saved[1:]):
        both, one, two = f"{first.folder} and {other.folder}", first.report, other.report
        ours, theirs = _partition(first), _partition(other)
        if changed := [query_id for query_id, family in ours.items() if theirs[query_id] != family]:
            cautions.append(
                f"Families, by which differences are tested, are other ones in {other.folder} than in {first.folder} for "
                f"{len(changed):,} of {len(ours):,} queries (the first: {changed[0]!r}); those of {first.folder} are taken."
            )
        said = {
            "filters": f"{both} were searched with different filters, and a difference may be one of these.",
            "ignore_identical_ids": f"Only one of {both} leaves out hits with the id of their query.",
            "depth": f"{both} were searched to depths of {depth_of(one)} and {depth_of(two)}.",
            "relevant_from": f"{both} took grades from {one.relevant_from} and {two.relevant_from} on as relevant.",
        }
        cautions += [text for setting, text in said.items() if one.manifest.get(setting) != two.manifest.get(setting)]
    return list(dict.fromkeys(cautions))


def _partition(saved: SavedRun) -> dict[str, str]:
    """Each query with the first of its family, independent of the family's name."""
    firsts: dict[str, str] = {}
    pairs = sorted(zip(saved.lists.query_ids, saved.lists.families, strict=True), key=lambda pair: pair[0])
    return {query_id: query_id if family is None else firsts.setdefault(family, query_id) for query_id, family in pairs}


def cautions_in(report: BenchmarkReport) -> list[str]:
    """Return the cautions of compared runs, except about corpora; empty for a benchmark."""
    recorded = report.manifest.get("cautions")
    return [str(caution) for caution in recorded] if isinstance(recorded, list) else []


def _corpus(recorded: object) -> RunCorpus | None:
    if not isinstance(recorded, Mapping):
        return None
    fingerprint, items = recorded.get("fingerprint"), recorded.get("items")
    return RunCorpus(fingerprint, items) if isinstance(fingerprint, str) and isinstance(items, int) else None


# Runs as named by users: the output folder of a benchmark, one configuration of it, or a TREC run file of any tool.

QRELS = "qrels.txt"


@dataclass(frozen=True)
class Sources:
    """Runs that answer the same queries; ``unjudged`` are the ids of queries without judgements, ``own_ids`` are passages."""

    lists: RunLists
    entrants: dict[str, Entrant]
    saved: list[SavedRun]
    depths: dict[str, int]
    corpora: dict[str, RunCorpus | None] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    own_ids: int = 0

    @property
    def notes(self) -> list[str]:
        """All warnings about comparing the figures, in sentences."""
        return [note for note in (corpora_note(self.corpora), *self.cautions) if note]

    @property
    def relevant_from(self) -> int:
        """The lowest relevant grade of the first folder; 1 of files alone."""
        return self.saved[0].report.relevant_from if self.saved else 1


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
        across_corpora: whether corpora are compared, and so may differ.
        ignore_identical_ids: whether a hit with the id of its query is the query itself and does not count; None: as the
            benchmarks of the folders decided; false for files alone.

    Raises:
        SourceError: a file or folder is missing or malformed, or two runs are known to be of different corpora.
        ConfigurationError: a folder does not have the configuration.
        GoldError: there is no gold, or two runs do not have the same queries and gold.
        QueryError: queries with one id have different texts in two folders.

    Examples:
        >>> sources = read_sources(["bm25.trec"], "qrels.txt")
        >>> list(sources.entrants), sources.lists.query_ids
        (['bm25'], ['q1', 'q2'])
    """
    opened: dict[str, SavedRun] = {}
    named = [entry for run in runs for entry in _named(run, opened)]
    saved = list(opened.values())
    gold = _gold(named, saved, qrels)
    refuse_other_texts(saved)
    named = [replace(entry, rankings=with_matched_numbers(entry.rankings, gold, entry.where)) for entry in named]
    unjudged = list(dict.fromkeys(query_id for entry in named for query_id in entry.rankings if query_id not in gold))
    titles = {item_id: title for run in saved for item_id, title in zip(run.lists.item_ids, run.lists.titles, strict=True)}
    none: list[str | None] = [None] * len(gold)
    texts, families, groups = [""] * len(gold), none, none
    judged = [Gold(query_id=query_id, relevance=grades) for query_id, grades in gold.items()]
    if saved:
        first = saved[0].lists
        texts, families, groups, judged = first.texts, first.families, first.groups, first.gold
    builder = ListsBuilder(list(gold), texts, families, groups, judged, gold, titles)
    entrants: dict[str, Entrant] = {}
    depths: dict[str, int] = {}
    corpora: dict[str, RunCorpus | None] = {}
    names = [entry.name for entry in named]
    for entry in named:
        name = f"{entry.where}: {entry.name}" if names.count(entry.name) > 1 else entry.name
        if name in entrants:
            raise ConfigurationError(f"{name} is named twice; name each run once")
        entrants[name] = _added(builder, name, entry, list(gold), titles)
        corpora[name] = corpora_of(entry.saved.report)[entry.name] if entry.saved is not None else None
        longest = max(map(len, entry.rankings.values()), default=0)
        depths[name] = depth_of(entry.saved.report) if entry.saved is not None else longest
    if not across_corpora:
        refuse_other_corpora(corpora)
    for folder in saved:
        builder.add_passages(folder.lists.passages)
    lists = builder.built()
    if ignore_identical_ids is None:
        ignore_identical_ids = any(run.report.manifest.get("ignore_identical_ids") for run in saved)
    known = set(lists.query_ids).intersection(lists.item_ids)
    own = own_ids(lists.query_ids, known, lists.qrels(), ignore=ignore_identical_ids)
    if any(own):
        lists = replace(lists, listings=without_own(lists, own))
    return Sources(lists, entrants, saved, depths, corpora, cautions_of(saved), unjudged, sum(each is not None for each in own))


def _added(builder: ListsBuilder, name: str, entry: _Named, query_ids: list[str], titles: dict[str, str]) -> Entrant:
    if entry.saved is None:
        builder.add_rankings(name, lists_of(entry.rankings, query_ids, entry.where), titles)
        return Entrant({"name": "trec_run", "path": entry.where}, "", None)
    rankings, own = entry.saved.lists.rankings(entry.name), entry.saved.lists.listing(entry.name)
    number_of = {query_id: number for number, query_id in enumerate(entry.saved.lists.query_ids)}
    order = [number_of[query_id] for query_id in query_ids]
    listing = builder.add_rankings(name, [rankings[number] for number in order], titles)
    hits = np.concatenate([np.arange(own.of(number).start, own.of(number).stop) for number in order])
    listing.signals.update({signal: values[hits] for signal, values in own.signals.items()})
    result = next(result for result in entry.saved.report.configurations if result.name == entry.name)
    return Entrant(result.config, result.fingerprint, result.cost)


def _named(run: str, opened: dict[str, SavedRun]) -> list[_Named]:
    run = os.path.expanduser(run)  # noqa: PTH111 -- as below
    path = Path(run)
    if os.path.isdir(run):  # noqa: PTH112 -- unlike Path.is_dir it does not raise where a name is too long
        return [_Named(name, run, saved, {}) for saved in [_opened(path, opened)] for name in saved.lists.listings]
    if path.parent.name == "trec" and (path.parent.parent / REPORT).is_file():
        saved = _opened(path.parent.parent, opened)
        names = list(saved.lists.listings)
        if (stem := path.name.removesuffix(".trec")) in (stems := file_names(names)):
            return [_Named(names[stems.index(stem)], str(path.parent.parent), saved, {})]
    if os.path.exists(run):  # noqa: PTH110 -- as above
        return [_Named(path.name.removesuffix(".gz").removesuffix(".trec"), run, None, read_run(path))]
    for position in (position for position in range(len(run) - 1, 0, -1) if run[position] == ":"):
        folder, name = run[:position], run[position + 1 :]
        if (Path(folder) / REPORT).is_file():
            saved = _opened(Path(folder), opened)
            if name not in saved.lists.listings:
                raise ConfigurationError(f"{folder} has no configuration {name!r}; {nearest(name, list(saved.lists.listings))}")
            return [_Named(name, folder, saved, {})]
    raise SourceError(
        f"{run}: there is no such run; name a TREC run file, the output folder of a benchmark, or FOLDER:CONFIGURATION"
    )


def _opened(folder: Path, opened: dict[str, SavedRun]) -> SavedRun:
    key = realpath(folder)
    if key not in opened:
        opened[key] = read_run_folder(folder)
    return opened[key]


def _gold(named: list[_Named], saved: list[SavedRun], qrels: str | Path | None) -> dict[str, dict[str, int]]:
    """The gold that all runs are judged by."""
    golds = [(str(run.folder), run.lists.qrels()) for run in saved]
    if qrels is not None:
        golds.append((str(qrels), _judgements(Path(qrels))))
    if not golds and not named:
        raise SourceError("there is nothing to read; name at least one run")
    if not golds:
        qrels_path = Path(named[0].where).parent / QRELS
        if not qrels_path.exists():
            raise GoldError(f"{named[0].where}: there is no gold to judge it by; name a file of judgements with --qrels")
        golds.append((str(qrels_path), _judgements(qrels_path)))
    refuse_other_gold(golds)
    return golds[0][1]


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    rows = read_judgements(path).items()
    gold = {query_id: {item: grade for item, grade in grades.items() if item != NO_DOCUMENT} for query_id, grades in rows}
    if not any(grade > 0 for grades in gold.values() for grade in grades.values()):
        raise GoldError(f"{path}: no query has gold with a grade above 0; nothing can be judged by it")
    return gold
