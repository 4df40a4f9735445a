"""The file of a judging project: its tables, and how the pool of pairs is made, written, read and protected."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.database_file import DatabaseFile, DatabaseRow
from nlp_retrieval.core.models import Query, SearchableItem, join_title
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import SYNTHETIC_GROUP, JudgingPool
from nlp_retrieval.judging.sampling import DESIGNS, check_comparisons, choose
from nlp_retrieval.text.titles import normalize_title

PROJECT_FILE = "judgements.sqlite3"

SCALES: Mapping[str, tuple[str, ...]] = {
    "binary": ("not relevant", "relevant"),
    "graded": ("not relevant", "on the topic", "answers in part", "answers fully"),
}
"""Names of the grades of the built-in scales, from 0."""

_MOST_GRADES, _MOST_TEXT = 10, 2_000


class JudgingDatabase(DatabaseFile):
    """The tables of a project; triggers keep every judgement."""

    tables: ClassVar[Mapping[str, str]] = {
        "about": "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "queries": "CREATE TABLE queries (number INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, "
        "family TEXT, groups TEXT NOT NULL, inclusion REAL NOT NULL)",
        "texts": "CREATE TABLE texts (sha256 TEXT PRIMARY KEY, title TEXT NOT NULL, content TEXT NOT NULL) WITHOUT ROWID",
        "pairs": "CREATE TABLE pairs (number INTEGER PRIMARY KEY, query INTEGER NOT NULL, item_id TEXT NOT NULL, "
        "sha256 TEXT NOT NULL, inclusion REAL NOT NULL, chosen INTEGER NOT NULL, position INTEGER NOT NULL, "
        "before TEXT NOT NULL, after TEXT NOT NULL, UNIQUE (query, item_id))",
        "pairs_by_position": "CREATE INDEX pairs_by_position ON pairs (chosen, position)",
        "rankings": "CREATE TABLE rankings (system TEXT NOT NULL, query INTEGER NOT NULL, rank INTEGER NOT NULL, "
        "pair INTEGER NOT NULL, PRIMARY KEY (system, query, rank)) WITHOUT ROWID",
        "judgements": "CREATE TABLE judgements (id INTEGER PRIMARY KEY, pair INTEGER NOT NULL, sha256 TEXT NOT NULL, "
        "decision TEXT NOT NULL, grade INTEGER, judge TEXT NOT NULL, is_model INTEGER NOT NULL, note TEXT NOT NULL, "
        "quote TEXT NOT NULL, seconds REAL, begins INTEGER, ends INTEGER, moment TEXT NOT NULL)",
        "judgements_by_pair": "CREATE INDEX judgements_by_pair ON judgements (pair, judge, id)",
        "no_change": "CREATE TRIGGER no_change BEFORE UPDATE ON judgements BEGIN SELECT RAISE(ABORT, 'kept as it is'); END",
        "no_loss": "CREATE TRIGGER no_loss BEFORE DELETE ON judgements BEGIN SELECT RAISE(ABORT, 'never deleted'); END",
        "standing": "CREATE TABLE standing (pair INTEGER NOT NULL, judge TEXT NOT NULL, judgement INTEGER NOT NULL, "
        "decision TEXT NOT NULL, grade INTEGER, is_model INTEGER NOT NULL, PRIMARY KEY (pair, judge)) WITHOUT ROWID",
        "handed": "CREATE TABLE handed (pair INTEGER NOT NULL, judge TEXT NOT NULL, until TEXT NOT NULL, "
        "PRIMARY KEY (pair, judge)) WITHOUT ROWID",
    }
    application: ClassVar[int] = 0x6E6C726A
    version: ClassVar[int] = 1
    remedy: ClassVar[str] = "make the project again and import the judgements that were exported"


@dataclass(frozen=True)
class JudgedText:
    """The text of a passage, and of those beside it in its document."""

    title: str
    content: str
    before: str = ""
    after: str = ""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(join_title(self.title, self.content).encode("utf-8", "surrogatepass")).hexdigest()


def checked_settings(
    design: str,
    depth: int,
    budget: int | None,
    seed: int,
    scale: str | Sequence[str],
    relevant_from: int,
    instructions: str,
    unit: str,
    measure: str | None,
    comparisons: Sequence[tuple[str, str]] | None = None,
) -> dict[str, str]:
    """Return the settings of a new project as they are written.

    Raises:
        ConfigurationError: one of them cannot be used.
    """
    if design not in DESIGNS:
        raise ConfigurationError(f"design={design!r}; take {', '.join(DESIGNS)}")
    names = SCALES.get(scale, ()) if isinstance(scale, str) else tuple(scale)
    if not 2 <= len(names) <= _MOST_GRADES or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise ConfigurationError(
            f"scale={scale!r}; take {' or '.join(SCALES)}, or give the names of 2 to {_MOST_GRADES} different grades, from 0"
        )
    if not 1 <= relevant_from < len(names):
        raise ConfigurationError(f"relevant_from={relevant_from}; the grades above 0 end at {len(names) - 1}")
    if not 1 <= depth <= 1000:
        raise ConfigurationError(f"depth={depth}; take 1 to 1,000 passages of each list")
    if budget is not None and budget < 1:
        raise ConfigurationError(f"budget={budget}; take at least 1 pair")
    if unit not in ("item", "title"):
        raise ConfigurationError(f"unit={unit!r}; take item or title")
    if not instructions.strip() or len(instructions) > _MOST_TEXT:
        raise ConfigurationError(f"the instructions have {len(instructions):,} characters; write 1 to {_MOST_TEXT:,}")
    return {
        "design": design,
        "depth": str(depth),
        "budget": "" if budget is None else str(budget),
        "seed": str(seed),
        "scale": json.dumps(list(names), ensure_ascii=False),
        "relevant_from": str(relevant_from),
        "instructions": instructions,
        "unit": unit,
        "measure": measure or f"precision@{depth}",
        "comparisons": written_comparisons(comparisons),
    }


def written_comparisons(comparisons: Sequence[tuple[str, str]] | None) -> str:
    """Return pairs of systems as they are written; empty for every two."""
    return json.dumps([list(pair) for pair in comparisons], ensure_ascii=False) if comparisons else ""


def read_comparisons(about: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """Return the pairs of systems that are compared; None for every two, as in projects from before they could be named."""
    written = about.get("comparisons")
    return [(one, other) for one, other in json.loads(written)] if written else None


def pooled(
    queries: list[Query],
    runs: Mapping[str, Mapping[str, Ranking]],
    items: Iterable[SearchableItem],
    about: Mapping[str, str],
    groups: Mapping[str, Sequence[str]],
) -> tuple[JudgingPool, list[Query], list[JudgedText]]:
    """Return the pool with its design, its queries, and the text of each pair."""
    depth, unit = int(about["depth"]), about["unit"]
    if not runs:
        raise ConfigurationError("there are no runs; give the rankings of at least one system")
    answered = {query_id for run in runs.values() for query_id, ranking in run.items() if ranking}
    unknown = answered - {query.query_id for query in queries}
    order = [query for query in queries if query.query_id in answered]
    if not order:
        raise ConfigurationError(
            f"no query of the {len(queries):,} given is in the runs"
            + (f" (which have {sorted(unknown)[0]!r}, for instance)" if unknown else "")
            + "; are both of the same collection?"
        )
    wanted = {item_id for run in runs.values() for ranking in run.values() for item_id, _ in ranking[: 10 * depth]}
    title_of: dict[str, str] = {}
    texts = texts_of_corpus(items, wanted, unit, title_of)
    missing = sorted(wanted - (title_of.keys() if unit == "title" else texts.keys()))
    if missing:
        raise SourceError(
            f"the corpus lacks {len(missing):,} of the {len(wanted):,} passages that the runs found (first: {missing[0]!r}); "
            "give the corpus that they were made with"
        )
    numbers: dict[tuple[int, str], int] = {}
    systems: dict[str, list[NDArray[np.int64]]] = {}
    for system, run in runs.items():
        lists = []
        for number, query in enumerate(order):
            found = [item_id for item_id, _ in run.get(query.query_id, [])]
            if unit == "title":
                found = [title_of[item_id] for item_id in found if item_id in title_of]
            keys = list(dict.fromkeys(found))[:depth]
            lists.append(np.array([numbers.setdefault((number, key), len(numbers)) for key in keys], np.int64))
        systems[system] = lists
    written = [query.query_id for query in order if query.is_synthetic]
    all_groups = {**groups, **({SYNTHETIC_GROUP: [*written, *groups.get(SYNTHETIC_GROUP, [])]} if written else {})}
    pairs = list(numbers)
    ones = np.ones(len(pairs))
    pool = JudgingPool(
        query_ids=[query.query_id for query in order],
        families=[query.family for query in order],
        groups={name: np.array([query.query_id in set(ids) for query in order], bool) for name, ids in all_groups.items()},
        systems=systems,
        pair_query=np.array([query for query, _ in pairs], np.int64),
        item_ids=[key for _, key in pairs],
        inclusion=ones,
        query_inclusion=np.ones(len(order)),
        chosen=np.ones(len(pairs), bool),
        grades=np.full(len(pairs), np.nan),
        model=np.full(len(pairs), np.nan),
        relevant_from=float(about["relevant_from"]),
    )
    budget = int(about["budget"]) if about["budget"] else None
    asked = read_comparisons(about)
    check_comparisons(asked or [], list(systems))
    pool = choose(pool, about["design"], budget=budget, seed=int(about["seed"]), measure=about["measure"], comparisons=asked)
    return pool, order, [texts[key] for _, key in pairs]


def texts_of_corpus(
    items: Iterable[SearchableItem], wanted: Iterable[str], unit: str, title_of: dict[str, str] | None = None
) -> dict[str, JudgedText]:
    """Return the texts of wanted items, or by title those of the first item, with the passages beside them."""
    names = set(wanted)
    texts: dict[str, JudgedText] = {}
    previous: SearchableItem | None = None
    last = ""
    for item in items:
        together = previous is not None and document_of(previous) == document_of(item) != ""
        if together and last:
            texts[last] = replace(texts[last], after=item.content)
        last = ""
        title = normalize_title(item.title) or item.item_id
        key = title if unit == "title" else item.item_id
        if (item.item_id if title_of is not None or unit == "item" else key) in names:
            if title_of is not None:
                title_of[item.item_id] = key
            if key not in texts:
                before = previous.content if together and previous is not None else ""
                texts[key], last = JudgedText(item.title, item.content, before), key
        previous = item
    return texts


def document_of(item: SearchableItem) -> str:
    """Return what the passages of a document have in common: ``parent_id``, or the title; empty if there is neither."""
    parent = item.metadata.get("parent_id")
    return parent if isinstance(parent, str) else item.title


def judging_order(pool: JudgingPool, seed: int) -> list[int]:
    """Return the order of judging: families in random order, so that those done are a random sample; pairs of a query together.

    The order within a query is random too: it says nothing about ranks.
    """
    draw = random.Random(seed)  # noqa: S311 -- a reproducible order, no secret
    families = family_numbers(pool.families).tolist()
    order = list(range(max(families, default=-1) + 1))
    draw.shuffle(order)
    place = {family: number for number, family in enumerate(order)}
    keys = [(place[families[query]], query, draw.random()) for query in pool.pair_query.tolist()]
    positions = [0] * len(keys)
    for position, pair in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
        positions[pair] = position
    return positions


def write_pool(
    connection: sqlite3.Connection, pool: JudgingPool, queries: list[Query], texts: list[JudgedText], positions: list[int]
) -> None:
    """Write the pairs, their queries, texts and order, and the rankings."""
    connection.executemany(
        "INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                query.query_id,
                query.text,
                query.family,
                json.dumps([name for name, members in pool.groups.items() if members[number]], ensure_ascii=False),
                float(pool.query_inclusion[number]),
            )
            for number, query in enumerate(queries)
        ],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", [(text.sha256, text.title, text.content) for text in texts]
    )
    connection.executemany(
        "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, query, item_id, text.sha256, inclusion, chosen, position, text.before, text.after)
            for number, (query, item_id, text, inclusion, chosen, position) in enumerate(
                zip(
                    pool.pair_query.tolist(),
                    pool.item_ids,
                    texts,
                    pool.inclusion.tolist(),
                    pool.chosen.tolist(),
                    positions,
                    strict=True,
                )
            )
        ],
    )
    connection.executemany(
        "INSERT INTO rankings VALUES (?, ?, ?, ?)",
        [
            (system, query, rank, pair)
            for system, lists in pool.systems.items()
            for query, pairs in enumerate(lists)
            for rank, pair in enumerate(pairs.tolist(), start=1)
        ],
    )


def read_pool(database: DatabaseFile, relevant_from: float) -> JudgingPool:
    """Return the pairs and their design, without any grade."""
    queries = database.rows("SELECT query_id, family, groups, inclusion FROM queries ORDER BY number")
    pairs = database.rows("SELECT query, item_id, inclusion, chosen FROM pairs ORDER BY number")
    members = [json.loads(groups) for _, _, groups, _ in queries]
    names = list(dict.fromkeys(name for each in members for name in each))
    lists: dict[str, list[list[int]]] = {}
    for system, query, pair in database.rows("SELECT system, query, pair FROM rankings ORDER BY system, query, rank"):
        if system not in lists:
            lists[system] = [[] for _ in queries]
        lists[system][query].append(pair)
    unknown = np.full(len(pairs), np.nan)
    return JudgingPool(
        query_ids=[query_id for query_id, *_ in queries],
        families=[family for _, family, _, _ in queries],
        groups={name: np.array([name in each for each in members], bool) for name in names},
        systems={name: [np.array(each, np.int64) for each in of_system] for name, of_system in lists.items()},
        pair_query=np.array([query for query, *_ in pairs], np.int64),
        item_ids=[item_id for _, item_id, _, _ in pairs],
        inclusion=np.array([inclusion for _, _, inclusion, _ in pairs], np.float64),
        query_inclusion=np.array([inclusion for *_, inclusion in queries], np.float64),
        chosen=np.array([bool(chosen) for *_, chosen in pairs], bool),
        grades=unknown,
        model=unknown,
        relevant_from=relevant_from,
    )


def digest_of_design(select: Callable[[str], Iterable[DatabaseRow]], about: Mapping[str, str]) -> str:
    """Return a digest of all that the estimates rest on: settings, queries, pairs with their probabilities, rankings."""
    digest = hashlib.sha256(canonical_json({name: value for name, value in about.items() if name != "digest"}).encode())
    for statement in (
        "SELECT number, query_id, family, groups, inclusion FROM queries ORDER BY number",
        "SELECT number, query, item_id, inclusion, chosen, position FROM pairs ORDER BY number",
        "SELECT system, query, rank, pair FROM rankings ORDER BY system, query, rank",
    ):
        rows = map(repr, select(statement))  # of a number, all of its digits
        digest.update("\n".join([*rows, ""]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
