"""The file of a judging project: its settings and tables, and how the pool of pairs is made, written and read."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.database_file import DatabaseFile
from nlp_retrieval.core.models import Query, SearchableItem, join_title
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import DESIGNS, Design, JudgingPool
from nlp_retrieval.text.titles import normalize_title

PROJECT_FILE = "judgements.sqlite3"
Unit = Literal["item", "title"]

SCALES: Mapping[str, tuple[str, ...]] = {
    "binary": ("not relevant", "relevant"),
    "graded": ("not relevant", "on the topic", "answers in part", "answers fully"),
}
"""Names of the grades of the built-in scales, from 0."""

_MOST_GRADES, _MOST_TEXT = 10, 2_000


class JudgingDatabase(DatabaseFile):
    """The tables of a project; triggers keep every judgement."""

    tables: ClassVar[Mapping[str, str]] = {
        "about": "CREATE TABLE about (settings TEXT NOT NULL)",
        "queries": "CREATE TABLE queries (number INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, "
        "family TEXT, synthetic INTEGER NOT NULL, drawn INTEGER NOT NULL)",
        "texts": "CREATE TABLE texts (sha256 TEXT PRIMARY KEY, title TEXT NOT NULL, content TEXT NOT NULL) WITHOUT ROWID",
        "pairs": "CREATE TABLE pairs (number INTEGER PRIMARY KEY, query INTEGER NOT NULL, item_id TEXT NOT NULL, "
        "sha256 TEXT NOT NULL, chosen INTEGER NOT NULL, position INTEGER NOT NULL, UNIQUE (query, item_id))",
        "pairs_by_position": "CREATE INDEX pairs_by_position ON pairs (chosen, position)",
        "rankings": "CREATE TABLE rankings (system TEXT NOT NULL, query INTEGER NOT NULL, rank INTEGER NOT NULL, "
        "pair INTEGER NOT NULL, PRIMARY KEY (system, query, rank)) WITHOUT ROWID",
        "judgements": "CREATE TABLE judgements (id INTEGER PRIMARY KEY, pair INTEGER NOT NULL, sha256 TEXT NOT NULL, "
        "decision TEXT NOT NULL, grade INTEGER, judge TEXT NOT NULL, is_model INTEGER NOT NULL, note TEXT NOT NULL, "
        "quote TEXT NOT NULL, seconds REAL, moment TEXT NOT NULL)",
        "judgements_by_pair": "CREATE INDEX judgements_by_pair ON judgements (pair, judge, id)",
        "no_change": "CREATE TRIGGER no_change BEFORE UPDATE ON judgements BEGIN SELECT RAISE(ABORT, 'kept as it is'); END",
        "no_loss": "CREATE TRIGGER no_loss BEFORE DELETE ON judgements BEGIN SELECT RAISE(ABORT, 'never deleted'); END",
        "standing": "CREATE TABLE standing (pair INTEGER NOT NULL, judge TEXT NOT NULL, judgement INTEGER NOT NULL, "
        "decision TEXT NOT NULL, grade INTEGER, is_model INTEGER NOT NULL, PRIMARY KEY (pair, judge)) WITHOUT ROWID",
        "handed": "CREATE TABLE handed (pair INTEGER NOT NULL, judge TEXT NOT NULL, until TEXT NOT NULL, "
        "PRIMARY KEY (pair, judge)) WITHOUT ROWID",
    }
    application: ClassVar[int] = 0x6E6C726A
    version: ClassVar[int] = 4
    remedy: ClassVar[str] = "make the project again and import the judgements that were exported"


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project; ``scale`` names the grades from 0, ``comparisons`` is None for every two systems."""

    design: Design
    depth: int
    scale: tuple[str, ...]
    relevant_from: int
    instructions: str
    unit: Unit
    measure: str
    comparisons: tuple[tuple[str, str], ...] | None

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise ConfigurationError(f"design={self.design!r}; take {' or '.join(DESIGNS)}")
        if not 2 <= len(set(self.scale)) == len(self.scale) <= _MOST_GRADES or not all(name.strip() for name in self.scale):
            raise ConfigurationError(
                f"scale={list(self.scale)}; take {' or '.join(SCALES)}, or give the names of 2 to {_MOST_GRADES} different "
                "grades, from 0"
            )
        if not 1 <= self.relevant_from < len(self.scale):
            raise ConfigurationError(f"relevant_from={self.relevant_from}; the grades above 0 end at {len(self.scale) - 1}")
        if not 1 <= self.depth <= 1000:
            raise ConfigurationError(f"depth={self.depth}; take 1 to 1,000 passages of each list")
        if self.unit not in ("item", "title"):
            raise ConfigurationError(f"unit={self.unit!r}; take item or title")
        if not self.instructions.strip() or len(self.instructions) > _MOST_TEXT:
            raise ConfigurationError(f"the instructions have {len(self.instructions):,} characters; write 1 to {_MOST_TEXT:,}")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the settings that a file holds."""
        values = json.loads(text)
        compared = values["comparisons"]
        comparisons = None if compared is None else tuple((one, other) for one, other in compared)
        return cls(**values | {"scale": tuple(values["scale"]), "comparisons": comparisons})

    def as_json(self) -> str:
        """Return the settings as text."""
        return canonical_json(asdict(self))


def sha256_of_text(item: SearchableItem) -> str:
    """Return the digest of the text that is judged."""
    return hashlib.sha256(join_title(item.title, item.content).encode("utf-8", "surrogatepass")).hexdigest()


def pooled(
    queries: Sequence[Query],
    runs: Mapping[str, Mapping[str, Ranking]],
    items: Iterable[SearchableItem],
    settings: ProjectSettings,
) -> tuple[JudgingPool, list[Query], list[SearchableItem]]:
    """Return the pool with every pair chosen, its queries, and the passage of each pair."""
    if not runs:
        raise ConfigurationError("there are no runs; give the rankings of at least one system")
    answered = {query_id for run in runs.values() for query_id, ranking in run.items() if ranking}
    order = [query for query in queries if query.query_id in answered]
    if not order:
        example = f" (which have {min(answered)!r}, for instance)" if answered else ""
        raise ConfigurationError(
            f"no question of the {len(queries):,} given is in the runs{example}; are both of the same collection?"
        )
    wanted = {item_id for run in runs.values() for ranking in run.values() for item_id, _ in ranking[: 10 * settings.depth]}
    passages: dict[str, SearchableItem] = {}
    key_of: dict[str, str] = {}
    for key, item in with_keys(items, settings.unit):
        if item.item_id in wanted:
            key_of[item.item_id] = key
            passages.setdefault(key, item)
    if missing := sorted(wanted - key_of.keys()):
        raise SourceError(
            f"the corpus lacks {len(missing):,} of the {len(wanted):,} passages that the runs found (first: {missing[0]!r}); "
            "give the corpus that they were made with"
        )
    numbers: dict[tuple[int, str], int] = {}
    systems: dict[str, list[NDArray[np.int64]]] = {}
    for system, run in runs.items():
        systems[system] = []
        for number, query in enumerate(order):
            pooled_keys = dict.fromkeys(key_of[item_id] for item_id, _ in run.get(query.query_id, []) if item_id in key_of)
            keys = list(pooled_keys)[: settings.depth]
            systems[system].append(np.array([numbers.setdefault((number, key), len(numbers)) for key in keys], np.int64))
        if not any(map(len, systems[system])):
            raise ConfigurationError(f"the run {system!r} has nothing for any of these questions; does it have other ids?")
    pool = JudgingPool(
        query_ids=[query.query_id for query in order],
        families=[query.family for query in order],
        systems=systems,
        pair_query=np.array([query for query, _ in numbers], np.int64),
        item_ids=[key for _, key in numbers],
        chosen=np.ones(len(numbers), bool),
        drawn=np.ones(len(order), bool),
        grades=np.full(len(numbers), np.nan),
        model=np.full(len(numbers), np.nan),
        relevant_from=settings.relevant_from,
    )
    return pool, order, [passages[key] for _, key in numbers]


def with_keys(items: Iterable[SearchableItem], unit: Unit) -> Iterator[tuple[str, SearchableItem]]:
    """Yield each item with the key under which it is judged: its id, or its title."""
    for item in items:
        yield item.item_id if unit == "item" else normalize_title(item.title) or item.item_id, item


def judging_order(pool: JudgingPool, seed: int) -> list[int]:
    """Return the order of judging: families and the pairs of a query at random, so that those done are a random sample."""
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
    connection: sqlite3.Connection, pool: JudgingPool, queries: Sequence[Query], passages: Sequence[SearchableItem], seed: int
) -> None:
    """Write the pairs, their queries, texts and order, and the rankings."""
    drawn = enumerate(zip(queries, pool.drawn.tolist(), strict=True))
    asked = [(number, each.query_id, each.text, each.family, each.is_synthetic, is_drawn) for number, (each, is_drawn) in drawn]
    connection.executemany("INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?)", asked)
    digests = [sha256_of_text(item) for item in passages]
    texts = [(sha256, item.title, item.content) for sha256, item in zip(digests, passages, strict=True)]
    connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", texts)
    columns = (pool.pair_query.tolist(), pool.item_ids, digests, pool.chosen.tolist(), judging_order(pool, seed))
    pairs = zip(range(len(digests)), *columns, strict=True)
    connection.executemany("INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?)", pairs)
    for system, lists in pool.systems.items():
        for query, numbers in enumerate(lists):
            ranked = [(system, query, rank, pair) for rank, pair in enumerate(numbers.tolist(), start=1)]
            connection.executemany("INSERT INTO rankings VALUES (?, ?, ?, ?)", ranked)


def read_pool(database: DatabaseFile, relevant_from: int) -> JudgingPool:
    """Return the pairs and their design, without any grade."""
    queries = database.rows("SELECT query_id, family, synthetic, drawn FROM queries ORDER BY number")
    pairs = database.rows("SELECT query, item_id, chosen FROM pairs ORDER BY number")
    lists: dict[str, list[list[int]]] = {}
    for system, query, pair in database.rows("SELECT system, query, pair FROM rankings ORDER BY system, query, rank"):
        lists.setdefault(system, [[] for _ in queries])[query].append(pair)
    unknown = np.full(len(pairs), np.nan)
    return JudgingPool(
        query_ids=[query_id for query_id, *_ in queries],
        families=[family for _, family, *_ in queries],
        systems={name: [np.array(each, np.int64) for each in of_system] for name, of_system in lists.items()},
        pair_query=np.array([query for query, *_ in pairs], np.int64),
        item_ids=[item_id for _, item_id, _ in pairs],
        chosen=np.array([bool(chosen) for *_, chosen in pairs], bool),
        drawn=np.array([bool(drawn) for *_, drawn in queries], bool),
        grades=unknown,
        model=unknown,
        relevant_from=relevant_from,
        synthetic=sum(synthetic for _, _, synthetic, _ in queries),
    )
