"""A judging project: pairs of question and passage in one SQLite file, how they were chosen, and every judgement.

Judgements are only ever added: one that is changed or taken back stays in the history. Each belongs to the text that was
judged (its SHA-256); if the corpus changes, those on another text do not count.
"""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.core.files.database_file import DatabaseRow
from nlp_retrieval.core.files.opening import expanded
from nlp_retrieval.core.files.records import as_id, encode_id
from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import ConfigurationError, IndexMissingError, InputError, SourceError
from nlp_retrieval.evaluation.rankings import Ranking
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import Design, JudgingPool, choose
from nlp_retrieval.judging.project_file import (
    PROJECT_FILE,
    SCALES,
    JudgingDatabase,
    ProjectSettings,
    Unit,
    pooled,
    read_pool,
    write_pool,
)
from nlp_retrieval.judging.records import (
    Decision,
    ModelGrade,
    PairToJudge,
    Progress,
    RelevanceJudgement,
)
from nlp_retrieval.loaders.files import read_json_file_of_records
from nlp_retrieval.loaders.judgements import Judgement, Judgements, collect_judgements, format_of, read_judgements
from nlp_retrieval.text.printing import visible

INSTRUCTIONS = "Judge whether the passage helps to answer the question. Judge by the passage alone, not by what else you know."

_MOST_NOTE, _MOST_NAME = 10_000, 100
_LEASE = timedelta(minutes=30)
_SETTLED = "\n"  # behind the name under which a judgement stands that settled a disagreement

_JUDGEMENT = (
    "SELECT q.query_id, p.item_id, j.sha256, j.decision, j.grade, j.judge, j.is_model, j.note, j.quote, j.seconds, "
    "j.moment FROM judgements j JOIN pairs p ON p.number = j.pair JOIN queries q ON q.number = p.query"
)
_DISPUTED = (
    "SELECT pair FROM standing WHERE is_model = 0 AND decision IN ('graded', 'settled') GROUP BY pair "
    "HAVING count(DISTINCT grade) > 1 AND sum(decision = 'settled') = 0 ORDER BY pair"
)
_OPEN = """
SELECT p.number FROM pairs p LEFT JOIN standing own ON own.pair = p.number AND own.judge = :judge
WHERE p.chosen = 1 AND coalesce(own.decision, 'skipped') = 'skipped'
AND (SELECT count(*) FROM standing s WHERE s.pair = p.number AND s.is_model = 0 AND s.decision <> 'skipped')
  + (SELECT count(*) FROM handed h WHERE h.pair = p.number AND h.judge <> :judge AND h.until > :now AND NOT EXISTS
      (SELECT 1 FROM standing s WHERE s.pair = h.pair AND s.judge = h.judge))
  < 1 + ((p.number * 7919 + 4229) % 10007 < :overlap * 10007)
ORDER BY own.judgement IS NOT NULL, own.judgement, p.position LIMIT :count
"""


class JudgingProject:
    """A folder with pairs to judge, and their judgements. Several people and processes may judge at once.

    Args:
        path: the folder, made by :meth:`create`.

    Raises:
        IndexMissingError: there is no project.
        IndexDamagedError: the file is damaged.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 2.0), ("krill", 1.0)]}, "b": {"q1": [("krill", 2.0), ("fox", 1.0)]}}
        >>> project = JudgingProject.create("judging", queries[:1], runs, items, design="depth-k")
        >>> (pair,) = project.next_pairs("Ann")
        >>> project.judge(pair.number, 1, by="Ann", seconds=4.0).judge
        'Ann'
        >>> project.progress("Ann").judged, project.progress("Ann").chosen
        (1, 3)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = expanded(path)
        self._database = JudgingDatabase(self.path / PROJECT_FILE)
        about = self._database.rows("SELECT settings FROM about")
        if not about:
            raise IndexMissingError(f"{self.path} is no judging project; make one with nlp-retrieval judge new")
        self.settings = ProjectSettings.from_json(about[0][0])

    @classmethod
    def create(
        cls,
        path: str | Path,
        queries: Iterable[Query],
        runs: Mapping[str, Mapping[str, Ranking]],
        items: Iterable[SearchableItem],
        *,
        design: Design = "depth-k",
        depth: int = 10,
        budget: int | None = None,
        seed: int = 0,
        scale: str | Sequence[str] = "binary",
        relevant_from: int = 1,
        instructions: str = INSTRUCTIONS,
        unit: Unit = "item",
        measure: str | None = None,
        comparisons: Sequence[tuple[str, str]] | None = None,
    ) -> JudgingProject:
        """Make a project of the first passages of several systems.

        Args:
            path: a folder that does not exist yet, or is no project.
            queries: questions; those that no system answered are left out.
            runs: by system and query id, ``(item id, score)``, best first.
            items: the corpus; only texts of what was found are kept.
            design: "depth-k" has every pair judged; "decisive" those that move the differences asked about.
            depth: number of passages of each list.
            budget: number of pairs to judge: so many families of questions are drawn; None for all.
            seed: of all random choices.
            scale: "binary", "graded" (0 to 3), or the names of 2 to 10 grades, from 0.
            relevant_from: the least grade that counts as relevant.
            instructions: for judges, shown on the page and to models.
            unit: "item", or "title" where any passage of a title counts for the title.
            measure: that of the comparison; by default precision at the depth. "decisive" takes precision@k.
            comparisons: the pairs of systems that are to be decided; None for every two.

        Raises:
            ConfigurationError: a setting cannot be used, there are no rankings, or there is a project already.
            SourceError: passages of the runs are not in the corpus.
        """
        target = expanded(path)
        refusal = ConfigurationError(f"{target} is a judging project already; choose another folder, or judge in it")
        if (target / PROJECT_FILE).exists():
            raise refusal
        if budget is not None and budget < 1:
            raise ConfigurationError(f"budget={budget}; take at least 1 pair")
        grades = SCALES.get(scale, (scale,)) if isinstance(scale, str) else tuple(scale)
        asked, measure = None if comparisons is None else tuple(comparisons), measure or f"precision@{depth}"
        settings = ProjectSettings(design, depth, grades, relevant_from, instructions, unit, measure, asked)
        pool, order, texts = pooled(list(queries), runs, items, settings)
        pool = choose(pool, design, budget, seed, settings.measure, settings.comparisons)
        database = JudgingDatabase(target / PROJECT_FILE)
        with database.changing() as connection:
            if connection.execute("SELECT count(*) FROM about").fetchone()[0]:
                raise refusal
            write_pool(connection, pool, order, texts, seed)
            connection.execute("INSERT INTO about VALUES (?)", (settings.as_json(),))
        database.close()
        return cls(target)

    @cached_property
    def _design(self) -> JudgingPool:
        return read_pool(self._database, self.settings.relevant_from)

    # Judging

    def next_pairs(self, judge: str, count: int = 1, overlap: float = 0.0) -> list[PairToJudge]:
        """Hand out the next pairs to a judge; nobody else gets them for half an hour, unless two are to judge them.

        Args:
            judge: name.
            count: number of pairs.
            overlap: share of the pairs that two people are to judge, 0 to 1.
        """
        name, now = checked_name(judge), datetime.now(UTC)
        values = {"judge": name, "now": _moment(now), "overlap": overlap, "count": count}
        with self._database.changing(durable=False) as connection:
            numbers = [number for (number,) in connection.execute(_OPEN, values)]
            until = _moment(now + _LEASE)
            connection.executemany("INSERT OR REPLACE INTO handed VALUES (?, ?, ?)", [(n, name, until) for n in numbers])
        return [self.pair(number) for number in numbers]

    def disputed(self) -> list[PairToJudge]:
        """Return the pairs to which people gave different grades and that nobody settled, with their grades."""
        select = "SELECT judge, grade FROM standing WHERE pair = ? AND is_model = 0 AND grade IS NOT NULL ORDER BY judge"
        return [
            replace(self.pair(number), grades=dict(self._database.rows(select, (number,))))
            for (number,) in self._database.rows(_DISPUTED)
        ]

    def pair(self, number: int) -> PairToJudge:
        """Return a pair; an InputError says that there is none with this number."""
        self._check_number(number)
        (row,) = self._database.rows(
            "SELECT p.number, q.query_id, q.text, t.title, t.content, p.sha256 FROM pairs p "
            "JOIN queries q ON q.number = p.query JOIN texts t ON t.sha256 = p.sha256 WHERE p.number = ?",
            (number,),
        )
        return PairToJudge(*row)

    def _check_number(self, pair: int) -> None:
        if pair not in range(len(self._design.item_ids)):
            raise InputError(f"there is no pair {pair}; the project has {len(self._design.item_ids):,}, from 0")

    def judge(
        self,
        number: int,
        grade: int | None,
        by: str,
        *,
        decision: Decision = "graded",
        note: str = "",
        seconds: float | None = None,
        sha256: str = "",
    ) -> RelevanceJudgement:
        """Add a person's judgement; it is on the disk when this returns. Judging a pair again replaces one's earlier grade.

        Args:
            number: of the pair.
            grade: on the project's scale; None if it is skipped.
            by: name of the judge.
            decision: "graded", "skipped", or "settled" (a disagreement of others).
            note: in the judge's words.
            seconds: that it took.
            sha256: of the text that was shown; by default that of the project.

        Raises:
            InputError: the grade is not on the scale, a value cannot be used, the pair does not exist, or its text was changed
                since it was shown.
        """
        pair, name, scale = self.pair(number), checked_name(by), self.settings.scale
        if decision not in ("graded", "skipped", "settled"):
            raise InputError(f"{decision!r} is no decision; take graded, skipped or settled")
        if (decision == "skipped") != (grade is None) or (grade is not None and grade not in range(len(scale))):
            raise InputError(f"the grade is {grade}; grades here are 0 ({scale[0]}) to {len(scale) - 1} ({scale[-1]})")
        if len(note) > _MOST_NOTE:
            raise InputError(f"the note has {len(note):,} characters; write at most {_MOST_NOTE:,}")
        if sha256 and sha256 != pair.sha256:
            raise InputError("the text of this passage was changed since it was shown; read it again, and then judge it")
        with self._database.changing() as connection:
            _refuse_taken(connection, name, is_model=False)
            identifier = _insert(connection, number, decision, grade, name, note=note, seconds=seconds)
            return _as_judgement(connection.execute(f"{_JUDGEMENT} WHERE j.id = ?", (identifier,)).fetchone())

    def judge_by_model(self, name: str, grades: Iterable[ModelGrade]) -> None:
        """Add a model's judgements, all in one step; a grade off the scale, or a person's name, is an InputError."""
        judge, best = checked_name(name), len(self.settings.scale) - 1
        with self._database.changing() as connection:
            _refuse_taken(connection, judge, is_model=True)
            for each in grades:
                self._check_number(each.pair)
                if each.grade is not None and not 0 <= each.grade <= best:
                    raise InputError(f"{name} gave grade {each.grade:g}, and the grades of this project end at {best}")
                decision: Decision = "not judged" if each.grade is None else "graded"
                _insert(connection, each.pair, decision, each.grade, judge, True, note=each.note[:_MOST_NOTE], quote=each.quote)

    def undo(self, by: str) -> PairToJudge | None:
        """Take back a judge's last decision, which stays in the history, and hand out its pair again; None if there is none."""
        name = checked_name(by)
        with self._database.changing() as connection:
            select = "SELECT pair, is_model FROM standing WHERE judge IN (?, ?) ORDER BY judgement DESC LIMIT 1"
            last = connection.execute(select, (name, name + _SETTLED)).fetchone()
            if last is None:
                return None
            _insert(connection, last[0], "withdrawn", None, name, bool(last[1]))
            until = _moment(datetime.now(UTC) + _LEASE)
            connection.execute("INSERT OR REPLACE INTO handed VALUES (?, ?, ?)", (last[0], name, until))
        return self.pair(last[0])

    def progress(self, judge: str) -> Progress:
        """Return how far judging has come, for one judge."""
        ((chosen, judged, mine, skipped),) = self._database.rows(
            "SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM standing s WHERE s.pair = p.number AND s.is_model = 0 AND "
            "s.grade IS NOT NULL)), 0), count(own.grade), coalesce(sum(own.decision = 'skipped'), 0) "
            "FROM pairs p LEFT JOIN standing own ON own.pair = p.number AND own.judge = ? WHERE p.chosen = 1",
            (judge,),
        )
        return Progress(chosen, judged, mine, skipped, len(self._database.rows(_DISPUTED)))

    # Reading

    def history(self) -> list[RelevanceJudgement]:
        """Return every decision, oldest first, also those that were changed or taken back."""
        return [_as_judgement(row) for row in self._database.rows(f"{_JUDGEMENT} ORDER BY j.id")]

    def judgements(self) -> list[RelevanceJudgement]:
        """Return the decisions that stand, at most one by judge and pair, on the texts that the project has now."""
        select = f"{_JUDGEMENT} JOIN standing s ON s.judgement = j.id ORDER BY p.position, p.number, j.id"
        return [_as_judgement(row) for row in self._database.rows(select)]

    def models(self) -> list[str]:
        """Return the names of the judges that are no people, the one with the most grades first."""
        select = "SELECT judge FROM standing WHERE is_model = 1 GROUP BY judge ORDER BY count(grade) DESC, judge"
        return [name for (name,) in self._database.rows(select)]

    def grades(self) -> dict[str, dict[tuple[str, str], int]]:
        """Return people's grades that stand, by judge, by ids of query and item; those of settling are left out."""
        grades: dict[str, dict[tuple[str, str], int]] = {}
        for each in self.judgements():
            if each.decision == "graded" and not each.is_model and each.grade is not None:
                grades.setdefault(each.judge, {})[each.query_id, each.item_id] = int(each.grade)
        return grades

    def pool(self, model: str | None = None) -> JudgingPool:
        """Return the pairs with their design, people's grades, and the grades of a model.

        Where people differ, the settled grade counts, and otherwise the lower median of theirs.

        Args:
            model: name of a judge that is no person; by default the one with the most grades.

        Raises:
            InputError: there is no such judge.
        """
        models = self.models()
        if model is not None and model not in models:
            raise InputError(f"no model {visible(model)!r} has judged here (models that have: {', '.join(models) or 'none'})")
        chosen_model = model or next(iter(models), "")
        grades, by_model = np.full((2, len(self._design.item_ids)), np.nan)
        given: dict[int, list[int]] = {}
        settled: dict[int, int] = {}
        for pair, judge, decision, grade, is_model in self._database.rows(
            "SELECT pair, judge, decision, grade, is_model FROM standing WHERE grade IS NOT NULL ORDER BY judgement"
        ):
            if is_model:
                if judge == chosen_model:
                    by_model[pair] = grade
            elif decision == "settled":
                settled[pair] = grade
            else:
                given.setdefault(pair, []).append(grade)
        for pair, own in given.items():
            grades[pair] = settled.get(pair, statistics.median_low(own))
        return replace(self._design, grades=grades, model=by_model, reached=self._reached(grades))

    def _reached(self, grades: Scores) -> Mask:
        """``[queries]``: those before the first family that comes after all judged ones and still has chosen pairs."""
        pool = self._design
        families = family_numbers(pool.families)
        in_order = {family: number for number, family in enumerate(dict.fromkeys(families[self.query_order].tolist()))}
        place = np.array([in_order[family] for family in families.tolist()])
        of_pair = place[pool.pair_query]
        last = of_pair[pool.chosen & ~np.isnan(grades)].max(initial=-1)
        waiting = of_pair[pool.chosen & np.isnan(grades) & (of_pair > last)]
        reached: Mask = place < waiting.min(initial=len(place))
        return reached

    @cached_property
    def query_order(self) -> list[int]:
        """The numbers of all queries in the order in which they are judged: by families in random order."""
        rows = self._database.rows(
            "SELECT q.number FROM queries q LEFT JOIN pairs p ON p.query = q.number GROUP BY q.number "
            "ORDER BY min(p.position) IS NULL, min(p.position)"
        )
        return [number for (number,) in rows]

    def texts(self) -> list[tuple[int, str, SearchableItem]]:
        """Return the number, the question and the passage of every pair."""
        rows = self._database.rows(
            "SELECT p.number, q.text, p.item_id, t.title, t.content FROM pairs p JOIN queries q ON q.number = p.query "
            "JOIN texts t ON t.sha256 = p.sha256 ORDER BY p.number"
        )
        return [
            (number, question, SearchableItem.trusted(item_id, content, {"title": title} if title else {}))
            for number, question, item_id, title, content in rows
        ]

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return people's grades by item id (or title), by query id; of pairs that are judged, also those with grade 0."""
        pool = self.pool()
        qrels: dict[str, dict[str, int]] = {}
        for pair in np.flatnonzero(pool.judged).tolist():
            query_id = pool.query_ids[pool.pair_query[pair]]
            qrels.setdefault(query_id, {})[pool.item_ids[pair]] = int(pool.grades[pair])
        return qrels

    # Files

    def export(self, path: str | Path) -> int:
        """Write the judgements that stand: TREC qrels, or with who, when, note and seconds as ``.jsonl`` or ``.ndjson``.

        Args:
            path: a file; its suffix decides the form. Qrels hold people's grades alone, one for each pair.

        Returns:
            The number of judgements written.

        Raises:
            ConfigurationError: the file is called ``.csv``, ``.tsv`` or ``.json``, which have another form.
            OutputError: the file cannot be written.
        """
        target, judgements = expanded(path), self.judgements()
        as_lines, form = target.suffix.lower() in (".jsonl", ".ndjson"), format_of(target)
        if form != "trec" and not as_lines:
            raise ConfigurationError(f"{target}: judgements are written as JSON lines (.jsonl) or TREC qrels (.qrels)")
        if as_lines:
            content, count = "".join(f"{canonical_json(asdict(each))}\n" for each in judgements), len(judgements)
        else:
            qrels = [(query, item, grade) for query, grades in self.qrels().items() for item, grade in grades.items()]
            content = "".join(f"{encode_id(query)} 0 {encode_id(item)} {grade}\n" for query, item, grade in qrels)
            count = len(qrels)
        write_output(target, content.encode("utf-8", "replace"))
        return count

    def import_qrels(self, path: str | Path, judge: str) -> tuple[int, int]:
        """Add judgements from a file: TREC qrels, CSV, TSV or JSON lines. All are added, or none.

        Args:
            path: the file; of an export in JSON lines, people's grades are added, each under the name of its judge.
            judge: under whose name those of other files are added; a grade that contradicts one of theirs is an error.

        Returns:
            How many were added, and how many are of pairs that the project does not have.

        Raises:
            SourceError: the file cannot be read, contradicts itself or what a judge said, or has a grade that is not on the
                scale.
            InputError: a judge has the name of a model here.
        """
        pool, best, contradict = self._design, len(self.settings.scale) - 1, list[str]()
        pairs = {(pool.query_ids[pool.pair_query[pair]], item): pair for pair, item in enumerate(pool.item_ids)}
        given = [
            (query, item, by, max(grade, 0))
            for by, qrels in _by_judge(path, checked_name(judge)).items()
            for query, own in qrels.items()
            for item, grade in own.items()
        ]
        known = [(pairs[query, item], by, grade) for query, item, by, grade in given if (query, item) in pairs]
        with self._database.changing() as connection:
            select = "SELECT pair, judge, grade FROM standing WHERE grade IS NOT NULL"
            before = {(pair, by): grade for pair, by, grade in connection.execute(select)}
            for pair, by, grade in known:
                said = f"query {pool.query_ids[pool.pair_query[pair]]!r}, item {pool.item_ids[pair]!r}"
                if grade > best:
                    raise SourceError(
                        f"{path}: {said} has grade {grade}, and this project's grades end at {best}; scale the grades of the "
                        "file, or make a project with the scale of the file"
                    )
                if (there := before.get((pair, by), grade)) != grade:
                    contradict.append(f"{said}: {grade} there, {there} by {visible(by.removesuffix(_SETTLED))} here")
            if contradict:
                raise SourceError(
                    f"{path}: {len(contradict)} of its judgements contradict what was said ({'; '.join(contradict[:5])}); "
                    "nothing was imported. Correct the file, or import it under another name as a second opinion (--judge NAME)"
                )
            new = [each for each in known if each[:2] not in before]
            for name in {by.removesuffix(_SETTLED) for _, by, _ in new}:
                _refuse_taken(connection, name, is_model=False)
            for pair, by, grade in new:
                decision: Decision = "settled" if by.endswith(_SETTLED) else "graded"
                _insert(connection, pair, decision, grade, by.removesuffix(_SETTLED), note=f"from {Path(path).name}")
        return len(new), len(given) - len(known)

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        self._database.close()


def checked_name(name: str) -> str:
    """Return a judge's name without spaces around it; an InputError says that it cannot be used."""
    stripped = " ".join(normalize("NFC", name).split())
    if not stripped or len(stripped) > _MOST_NAME or visible(stripped) != stripped:
        raise InputError(f"the judge's name is {visible(stripped[:40])!r}; write 1 to {_MOST_NAME} visible characters")
    return stripped


def _by_judge(path: str | Path, judge: str) -> dict[str, Judgements]:
    """Return the judgements of a file by the name under which they stand: in an export, people's under names of their own."""
    rows = list(read_json_file_of_records(path)) if format_of(path) == "json" else []
    if not any("is_model" in row for _, row in rows):
        return {judge: read_judgements(path)}
    given: dict[str, list[Judgement]] = {}
    for location, row in rows:
        if row.get("grade") is not None and not row.get("is_model"):
            by = checked_name(str(row.get("judge"))) + _SETTLED * (row.get("decision") == "settled")
            query, item = (as_id(location, name, row.get(name)) for name in ("query_id", "item_id"))
            given.setdefault(by, []).append((location, query, item, row["grade"], ""))
    return {by: collect_judgements(own, path) for by, own in given.items()}


def _refuse_taken(connection: sqlite3.Connection, name: str, *, is_model: bool) -> None:
    select = "SELECT 1 FROM judgements WHERE judge = ? AND is_model <> ? LIMIT 1"
    if connection.execute(select, (name, is_model)).fetchone() is not None:
        raise InputError(f"{name} is the name of a {'person' if is_model else 'model'} here; choose another one")


def _insert(
    connection: sqlite3.Connection,
    pair: int,
    decision: Decision,
    grade: float | None,
    judge: str,
    is_model: bool = False,
    note: str = "",
    quote: str = "",
    seconds: float | None = None,
) -> int:
    cursor = connection.execute(
        "INSERT INTO judgements (pair, sha256, decision, grade, judge, is_model, note, quote, seconds, moment) "
        "SELECT number, sha256, ?, ?, ?, ?, ?, ?, ?, ? FROM pairs WHERE number = ?",
        (decision, grade, judge, is_model, note, quote, seconds, _moment(datetime.now(UTC)), pair),
    )
    connection.execute("DELETE FROM handed WHERE pair = ? AND judge = ?", (pair, judge))
    _settle_standing(connection, pair)
    return int(cursor.lastrowid or 0)


def _settle_standing(connection: sqlite3.Connection, pair: int) -> None:
    """Write which judgements of a pair stand, of those on its present text; one taken back gives way to the one before.

    A judge has at most two: an own grade, and the one by which a disagreement was settled, whose name ends in ``_SETTLED``.
    """
    stacks: dict[str, list[tuple[Any, ...]]] = {}
    for row in connection.execute(
        "SELECT j.judge, j.id, j.decision, j.grade, j.is_model FROM judgements j JOIN pairs p ON p.number = j.pair "
        "AND p.sha256 = j.sha256 WHERE j.pair = ? ORDER BY j.id",
        (pair,),
    ):
        stack = stacks.setdefault(row[0], [])
        if row[2] != "withdrawn":
            stack.append(row[1:])
        elif stack:
            stack.pop()
    standing = {
        judge + _SETTLED * (decision == "settled"): (identifier, decision, grade, is_model)
        for judge, stack in stacks.items()
        for identifier, decision, grade, is_model in stack
    }
    connection.execute("DELETE FROM standing WHERE pair = ?", (pair,))
    connection.executemany(
        "INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?)", [(pair, name, *values) for name, values in standing.items()]
    )


def _as_judgement(row: DatabaseRow) -> RelevanceJudgement:
    query_id, item_id, sha256, decision, grade, judge, is_model, *rest = row
    return RelevanceJudgement(query_id, item_id, sha256, decision, grade, judge, bool(is_model), *rest)


def _moment(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
