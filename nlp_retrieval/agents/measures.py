"""Measures of agents: what the union of their searches held after each step, and at what cost; over questions and families.

What is not known is NaN, and in no mean: a question that an agent was not asked, results without readable ids, the citations of
an answer that is not there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pyarrow as pa

from nlp_retrieval.agents.files import require_one_each
from nlp_retrieval.agents.trajectory import Trajectory
from nlp_retrieval.agents.transcripts import NO_IDS
from nlp_retrieval.benchmarks.evaluate import Judged, read_gold
from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.core.tables import AsTable
from nlp_retrieval.errors import ConfigurationError, GoldError, ItemError, QueryError, RetrievalWarning, nearest
from nlp_retrieval.evaluation.comparison import Comparison, compare
from nlp_retrieval.evaluation.gold import relevant_documents
from nlp_retrieval.evaluation.resampling import bootstrap_interval, holm
from nlp_retrieval.text.printing import counted
from nlp_retrieval.text.surfaces import words_of
from nlp_retrieval.text.titles import normalize_title

MEASURES = {
    "recall": "share of the gold that the union of its searches and reads holds",
    "perfect_recall": "1 if it holds all gold",
    "recall_by_search": "recall after each search up to the limit, averaged: the area under recall over searches",
    "redundancy": "share of its results that it had seen before for this question",
    "citation_precision": "share of its citations that are gold; 0 if it cites nothing",
    "citation_recall": "share of the gold that it cites",
    "cited_unseen": "share of its citations that neither came back nor were opened",
    "searched_on": "share of its searches after the last gold had come; 0 if gold was missing",
    "words_read": "share of the new words of its later queries that stand in what it had read by then; needs the texts",
}
"""Measures per question, each from 0 to 1; NaN where unknown."""

COUNTS = ("steps", "searches", "opened", "results", "last_gold_step", "tokens", "price", "seconds")
"""Counts per question; NaN where unknown. ``last_gold_step`` counts from 1 and is NaN if gold was missing at the end."""


def figure(value: float, form: str) -> str:
    """Return a figure as it is shown: ``"n/a"`` if it is unknown."""
    return "n/a" if np.isnan(value) else format(value, form)


_OF_CITATIONS = ("citation_precision", "citation_recall", "cited_unseen")
_Units = dict[tuple[str, str], int]
"""Numbers of the relevant documents of a question, by key."""


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryEvaluation(AsTable):
    """Measures of agents, question by question; as a table, a row for each agent and question.

    Args:
        query_ids: the questions with gold that an agent was asked.
        families: per question.
        per_query: ``[questions]`` by agent, and measure (:data:`MEASURES`) or count (:data:`COUNTS`); NaN where unknown.
        limit: how many searches ``recall_by_search`` runs over.

    Examples:
        >>> evaluation = evaluate_trajectories(trajectories, {"q1": ["whale", "krill"]})
        >>> evaluation
        <one: recall 1.000, perfect_recall 1.000, recall_by_search 1.000; 1 question>
        >>> evaluation.curve("one").tolist()
        [0.0, 1.0]
    """

    query_ids: list[str]
    families: list[str | None]
    per_query: dict[str, dict[str, Scores]]
    limit: int
    _after: dict[str, list[list[float]]] = field(repr=False)
    _units: dict[str, _Units] = field(repr=False)
    _titles: Mapping[str, str] | None = field(repr=False)

    @property
    def agents(self) -> list[str]:
        """The agents, in the order in which they were given."""
        return list(self.per_query)

    def means(self, agent: str) -> dict[str, float]:
        """Return the mean of every measure and count over the questions where it is known; NaN where it is for none.

        Args:
            agent: name of the agent.
        """
        self._require(agent)
        return {
            name: float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
            for name, values in self.per_query[agent].items()
        }

    @cached_property
    def intervals(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Intervals of the means at 95%, by agent and measure, over families."""
        return {
            agent: {name: self._interval(measured[name]) for name in MEASURES} for agent, measured in self.per_query.items()
        }

    def _interval(self, values: Scores) -> tuple[float, float]:
        known = np.isfinite(values)
        if not known.any():
            return np.nan, np.nan
        return bootstrap_interval(values[known], self._members(known), bounds=(0.0, 1.0))

    def compare(self, measure: str = "recall") -> list[Comparison]:
        """Compare every two agents in a measure, over the questions where it is known for both; without any, they are left out.

        Args:
            measure: one of :data:`MEASURES`.

        Raises:
            ConfigurationError: there is no such measure.
        """
        if measure not in MEASURES:
            raise ConfigurationError(f"there is no measure {measure!r} of agents; {nearest(measure, list(MEASURES))}")
        compared, pairs = list[Comparison](), list(combinations(self.agents, 2))
        for pair in pairs:
            values = {agent: self.per_query[agent][measure] for agent in pair}
            known = np.all([np.isfinite(own) for own in values.values()], axis=0)
            if known.any():
                shared = {agent: {measure: own[known]} for agent, own in values.items()}
                compared += compare(shared, families=self._members(known), drawn_for=len(pairs))
        corrected = zip(compared, holm([each.p for each in compared]), strict=True)
        return [replace(each, p_holm=p, comparisons=len(compared)) for each, p in corrected]

    def curve(self, agent: str) -> Scores:
        """Return the mean recall after 0, 1, 2, ... searches up to the limit, with what was read until the next one.

        An agent that has stopped keeps what it has.

        Args:
            agent: name of the agent.

        Raises:
            ConfigurationError: the agent does not exist, or nothing that it found is known.
        """
        self._require(agent)
        if not self._after[agent]:
            raise ConfigurationError(f"nothing that {agent!r} found is known, so there is no curve")
        mean: Scores = np.mean([_up_to(after, self.limit) for after in self._after[agent]], axis=0)
        return mean

    def is_gold(self, query_id: str, item_id: str) -> bool:
        """Return whether an item is relevant to a question.

        Args:
            query_id: a question with gold.
            item_id: an item that came back.
        """
        return _unit_of(item_id, self._units[query_id], self._titles) is not None

    def to_arrow(self) -> pa.Table:
        columns: dict[str, pa.Array] = {
            "agent": pa.array([agent for agent in self.agents for _ in self.query_ids], pa.string()),
            "qid": pa.array(self.query_ids * len(self.agents), pa.string()),
        }
        for name in (*MEASURES, *COUNTS):
            columns[name] = pa.array(np.concatenate([own[name] for own in self.per_query.values()]), from_pandas=True)
        return pa.table(columns)

    def __repr__(self) -> str:
        means = {agent: self.means(agent) for agent in self.agents}
        names = ("recall", "perfect_recall", "recall_by_search")
        shown = [", ".join(f"{name} {figure(own[name], '.3f')}" for name in names) for own in means.values()]
        return f"<{'; '.join(map('{}: {}'.format, means, shown))}; {counted(len(self.query_ids), 'question')}>"

    def _members(self, mask: Mask) -> list[str | None]:
        return [family for family, member in zip(self.families, mask.tolist(), strict=True) if member]

    def _require(self, agent: str) -> None:
        if agent not in self.per_query:
            raise ConfigurationError(f"there is no agent {agent!r}; {nearest(agent, self.agents)}")


def evaluate_trajectories(
    trajectories: Sequence[Trajectory],
    qrels: Judged,
    *,
    titles: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    families: Mapping[str, str | None] | None = None,
    relevant_from: int = 1,
    limit: int | None = None,
) -> TrajectoryEvaluation:
    """Measure agents by what their searches found, step by step.

    Questions that no agent was asked are not evaluated; a trajectory without steps says that an agent found nothing for one.

    Args:
        trajectories: of one or several agents, one for each agent and question.
        qrels: gold in any form that :func:`nlp_retrieval.evaluate` takes.
        titles: titles by id of all items of the corpus, empty where there is none. Needed for gold by title; with them, an id
            that the corpus lacks is an error.
        texts: by id of the items that came back, for ``words_read``: where queries take their words from.
        families: by question id; questions of a family are not independent.
        relevant_from: the lowest grade of a relevant document.
        limit: number of searches that ``recall_by_search`` runs over; None for the most of any trajectory.

    Raises:
        ConfigurationError: an agent has two trajectories for a question, or the limit is below 1.
        GoldError: the gold is in no such form, names titles that are not known, or is relevant for no question.
        QueryError: none of the questions has gold.
        ItemError: an item is not in the corpus.

    Examples:
        >>> evaluation = evaluate_trajectories(trajectories, {"q1": ["whale", "fox"]})
        >>> evaluation.means("one")["recall"], evaluation.means("one")["searches"]
        (0.5, 1.0)
    """
    require_one_each(trajectories, ConfigurationError, "the trajectories")
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit={limit}; recall is averaged over at least 1 search")
    judged = _units(read_gold(qrels), titles, relevant_from)
    by_agent: dict[str, dict[str, Trajectory]] = {}
    for trajectory in trajectories:
        if trajectory.question_id in judged:
            by_agent.setdefault(trajectory.agent, {})[trajectory.question_id] = trajectory
    if not by_agent:
        asked = trajectories[0].question_id if trajectories else None
        raise QueryError(
            f"none of the {len(trajectories):,} trajectories is of a question with gold (asked: {asked!r}; judged: "
            f"{next(iter(judged))!r}); are both of the same collection?"
        )
    if titles is not None:
        came = dict.fromkeys(item_id for trajectory in trajectories for item_id in trajectory.seen())
        if unknown := [item_id for item_id in came if item_id not in titles]:
            raise ItemError(
                f"{len(unknown):,} of {len(came):,} items that came back are not in the corpus (the first: {unknown[0]!r}); "
                "give the corpus that the agents searched"
            )
    units = {each: wanted for each, wanted in judged.items() if any(each in own for own in by_agent.values())}
    for note in _notes(by_agent, list(units), len(trajectories)):
        warnings.warn(note, RetrievalWarning, stacklevel=2)
    most = limit or max([1, *(len(trajectory.searches) for own in by_agent.values() for trajectory in own.values())])
    measured = {
        agent: [_measured(own.get(query_id), wanted, titles, texts, most) for query_id, wanted in units.items()]
        for agent, own in by_agent.items()
    }
    return TrajectoryEvaluation(
        query_ids=list(units),
        families=[(families or {}).get(query_id) for query_id in units],
        per_query={
            agent: {name: np.array([values[name] for values, _ in rows], np.float64) for name in (*MEASURES, *COUNTS)}
            for agent, rows in measured.items()
        },
        limit=most,
        _after={agent: [after for _, after in rows if after] for agent, rows in measured.items()},
        _units=units,
        _titles=titles,
    )


def _units(gold: Sequence[Gold], titles: Mapping[str, str] | None, relevant_from: int) -> dict[str, _Units]:
    """Return the relevant documents of the questions that have some."""
    if titles is None and any(judged.by == "title" for judged in gold):
        raise GoldError("the gold names titles; give titles, by the ids of the items that the agents found (--config)")
    units = {}
    for judged, documents in zip(gold, relevant_documents(gold, relevant_from), strict=True):
        if keys := [key for key, (grade, _) in documents.items() if grade >= relevant_from]:
            units[judged.query_id] = {key: number for number, key in enumerate(keys)}
    return units


def _measured(
    trajectory: Trajectory | None,
    wanted: _Units,
    titles: Mapping[str, str] | None,
    texts: Mapping[str, str] | None,
    limit: int,
) -> tuple[dict[str, float], list[float]]:
    """Measures and counts of a trajectory, and recall after each search; unknown where there is none, or it cannot be read."""
    unknown = dict.fromkeys((*MEASURES, *COUNTS), np.nan)
    if trajectory is None:
        return unknown, []
    if any(step.error == NO_IDS for step in trajectory.searches):
        return unknown | {"steps": len(trajectory.steps), "searches": len(trajectory.searches)}, []

    def gold_in(item_ids: Sequence[str]) -> set[int]:
        return {unit for item_id in item_ids if (unit := _unit_of(item_id, wanted, titles)) is not None}

    seen: set[str] = set()
    gold_seen: set[int] = set()
    again = results = last_gold = searches_at_last = 0
    after = [0.0]  # recall before the first search, and after each
    for number, step in enumerate(trajectory.steps, 1):
        fresh = gold_in(step.came) - gold_seen
        gold_seen |= fresh
        if step.kind == "search":
            results += len(step.results)
            again += sum(item_id in seen for item_id in step.results)
            after.append(0.0)
        after[-1] = len(gold_seen) / len(wanted)
        if fresh:
            last_gold, searches_at_last = number, len(after) - 1
        seen.update(step.came)
    complete, made = len(gold_seen) == len(wanted), len(after) - 1
    cited = trajectory.cited()
    values = {
        "recall": after[-1],
        "perfect_recall": float(complete),
        "recall_by_search": float(np.mean(_up_to(after, limit)[1:])),
        "redundancy": again / results if results else 0.0,
        "citation_precision": sum(bool(gold_in([item_id])) for item_id in cited) / len(cited) if cited else 0.0,
        "citation_recall": len(gold_in(cited)) / len(wanted),
        "cited_unseen": sum(item_id not in seen for item_id in cited) / len(cited) if cited else 0.0,
        "searched_on": (made - searches_at_last) / made if complete and made else 0.0,
        "words_read": np.nan if texts is None else _words_read(trajectory, texts),
        "steps": len(trajectory.steps),
        "searches": made,
        "opened": len(trajectory.opened()),
        "results": results,
        "last_gold_step": last_gold if complete else np.nan,
    }
    if not trajectory.answer and trajectory.citations is None:
        values |= dict.fromkeys(_OF_CITATIONS, np.nan)
    spent = {"tokens": trajectory.tokens, "price": trajectory.cost, "seconds": trajectory.seconds}
    return unknown | values | {name: amount for name, amount in spent.items() if amount is not None}, after


def _words_read(trajectory: Trajectory, texts: Mapping[str, str]) -> float:
    """Share of the words that neither the question nor an earlier query has, in queries asked after something was read.

    Read is what was opened; where an agent opens nothing, what came back.
    """
    opens = bool(trajectory.opened())
    known, read = {*words_of(trajectory.question)} | STOP_WORDS, set[str]()
    new = from_reading = 0
    for step in trajectory.steps:
        asked = set(words_of(step.query)) - known
        if read:
            new += len(asked)
            from_reading += len(asked & read)
        known |= asked
        for item_id in ([step.item_id] if step.kind == "open" and not step.error else []) if opens else step.results:
            read |= set(words_of(texts.get(item_id, "")))
    return from_reading / new if new else np.nan


def _unit_of(item_id: str, wanted: _Units, titles: Mapping[str, str] | None) -> int | None:
    unit = wanted.get(("item_id", item_id))
    if unit is None and titles is not None:
        unit = wanted.get(("title", normalize_title(titles.get(item_id, ""))))
    return unit


def _up_to(after: list[float], limit: int) -> list[float]:
    """Recall after 0, 1, ... searches up to a limit: the last value stays."""
    return (after + after[-1:] * limit)[: limit + 1]


def _notes(by_agent: Mapping[str, Mapping[str, Trajectory]], query_ids: Sequence[str], given: int) -> Iterator[str]:
    for agent, own in by_agent.items():
        if missing := [query_id for query_id in query_ids if query_id not in own]:
            of_all = f"{len(missing):,} of {len(query_ids):,} questions (the first: {missing[0]!r})"
            yield f"agent {agent!r} has no trajectory for {of_all}; they are in none of its means"
    if unjudged := given - sum(map(len, by_agent.values())):
        said = counted(unjudged, "trajectory is of a question", "trajectories are of questions")
        yield f"{said} without gold and not counted"
