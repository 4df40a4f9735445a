"""Measures of agents: what the union of their searches held after each step, and at what cost; over questions and families.

What is not known is NaN, and in no mean: a question that an agent was not asked, results without readable ids, the citations of
an answer that is not there.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Literal

import numpy as np
import pyarrow as pa

from nlp_retrieval.agents.files import require_one_each
from nlp_retrieval.agents.trajectory import MOST, AgentStep, Trajectory
from nlp_retrieval.agents.transcripts import NO_IDS
from nlp_retrieval.benchmarks.evaluate import Judged, read_gold
from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.tables import AsTable, html_table
from nlp_retrieval.errors import ConfigurationError, GoldError, ItemError, QueryError, RetrievalWarning, nearest
from nlp_retrieval.evaluation.comparison import Comparison, compare
from nlp_retrieval.evaluation.gold import relevant_documents
from nlp_retrieval.evaluation.resampling import bootstrap_intervals
from nlp_retrieval.reports.view import counted
from nlp_retrieval.text.titles import normalize_title

Per = Literal["step", "search", "tokens", "price", "seconds"]
"""What a curve runs over."""

MEASURES = {
    "recall": "share of the gold that the union of its searches and reads holds",
    "perfect_recall": "1 if it holds all gold",
    "recall_by_search": "recall after each search up to the limit, averaged: the area under recall over searches",
    "redundancy": "share of its results that it had seen before for this question",
    "repeated_queries": "share of its searches that it had asked before, but for case and spaces",
    "gold_unopened": "share of the gold that came back and was not opened",
    "gold_uncited": "share of the gold that came back and is not cited",
    "citation_precision": "share of its citations that are gold; 0 if it cites nothing",
    "citation_recall": "share of the gold that it cites",
    "cited_unseen": "share of its citations that neither came back nor were opened",
    "stopped_early": "1 if gold was missing at the end and its last search had still brought some",
    "searched_on": "share of its searches after the last gold had come; 0 if gold was missing",
}
"""Measures per question, each from 0 to 1; NaN where unknown."""

COUNTS = ("steps", "searches", "opened", "results", "last_gold_step", "tokens", "price", "seconds")
"""Counts per question; NaN where unknown. ``last_gold_step`` counts from 1 and is NaN if gold was missing at the end."""


_Units = dict[tuple[str, str], int]
"""Numbers of the relevant documents of a question, by key."""


@dataclass(frozen=True)
class _Course:
    """What a trajectory had after each of its steps; position 0 is before the first."""

    found: list[int]
    searches: list[int]
    tokens: list[float] | None
    price: list[float] | None
    seconds: list[float] | None
    gold: int

    def spent(self, per: Per) -> Sequence[float]:
        """Return the steps, searches, tokens, price or seconds spent so far, at each position.

        Raises:
            ConfigurationError: they are not known.
        """
        known: dict[Per, Sequence[float] | None] = {
            "step": range(len(self.found)),
            "search": self.searches,
            "tokens": self.tokens,
            "price": self.price,
            "seconds": self.seconds,
        }
        if per not in known:
            raise ConfigurationError(f"there is no cost {per!r}; {nearest(per, list(known))}")
        spent = known[per]
        if spent is None:
            raise ConfigurationError(f"the {per} of single steps are not known, so there is no recall over them")
        return spent

    def at(self, per: Per, amounts: Scores) -> Scores:
        """Return the recall within amounts of steps, searches, tokens, price or seconds."""
        spent = self.spent(per)
        held = [self.found[bisect_right(spent, amount) - 1] for amount in amounts.tolist()]
        return np.array(held, np.float64) / max(self.gold, 1)

    def area(self, per: Per, most: float) -> float:
        """Return the area under recall up to an amount, as a share; for steps and searches the mean after 1, 2, ... of them."""
        if per in ("step", "search"):
            return float(self.at(per, np.arange(1, int(most) + 1, dtype=np.float64)).mean())
        ends = np.minimum([*self.spent(per), most], most)
        return float((np.diff(ends) * self.found).sum() / most / max(self.gold, 1))


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryEvaluation(AsTable):
    """Measures of agents, question by question; as a table, a row for each agent and question.

    Args:
        query_ids: the questions with gold that an agent was asked.
        families: per question.
        groups: ``[questions]`` by name, masks of their members.
        per_query: ``[questions]`` by agent and measure (:data:`MEASURES`), each from 0 to 1, NaN where unknown.
        counts: ``[questions]`` by agent and count (:data:`COUNTS`).
        limit: how many searches ``recall_by_search`` runs over.

    Examples:
        >>> evaluation = evaluate_trajectories(trajectories, {"q1": ["whale", "krill"]})
        >>> evaluation
        <one: recall 1.000, perfect_recall 1.000, recall_by_search 1.000; 1 question>
        >>> evaluation.curve("one", "search").tolist()
        [0.0, 1.0]
    """

    query_ids: list[str]
    families: list[str | None]
    groups: dict[str, Mask]
    per_query: dict[str, dict[str, Scores]]
    counts: dict[str, dict[str, Scores]]
    limit: int
    _courses: dict[str, list[_Course]] = field(repr=False)
    _units: dict[str, _Units] = field(repr=False)
    _titles: Mapping[str, str] | None = field(repr=False)

    @property
    def agents(self) -> list[str]:
        """The agents, in the order in which they were given."""
        return list(self.per_query)

    def means(self, agent: str, group: str = "") -> dict[str, float]:
        """Return the mean of every measure and count over the questions where it is known; NaN where it is for none.

        Args:
            agent: name of the agent.
            group: a group of questions; empty for all.
        """
        mask = self._mask(group)
        self._require(agent)
        known = {name: values[mask] for name, values in (self.per_query[agent] | self.counts[agent]).items()}
        return {name: float(np.nanmean(values)) if np.isfinite(values).any() else np.nan for name, values in known.items()}

    @cached_property
    def intervals(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Intervals of the means at 95%, by agent and measure, over families."""
        return {
            agent: {name: self._interval(values) for name, values in measures.items()}
            for agent, measures in self.per_query.items()
        }

    def _interval(self, values: Scores) -> tuple[float, float]:
        known = np.isfinite(values)
        if not known.any():
            return np.nan, np.nan
        families = _members(self.families, known)
        ((low, high),) = bootstrap_intervals(values[known][None], families, bounds=np.array([(0.0, 1.0)])).tolist()
        return low, high

    def compare(self, measure: str = "recall", baseline: str | None = None, group: str = "") -> list[Comparison]:
        """Compare agents in a measure, over the questions where it is known for all: all pairs, or each with a baseline.

        Args:
            measure: one of :data:`MEASURES`.
            baseline: an agent; None for all pairs.
            group: a group of questions; empty for all.

        Raises:
            ConfigurationError: there are fewer than two agents, or one of the names does not exist.

        Warns:
            RetrievalWarning: some questions are known of some agents alone; if none is known of all, there are no comparisons.
        """
        if measure not in MEASURES:
            raise ConfigurationError(f"there is no measure {measure!r} of agents; {nearest(measure, list(MEASURES))}")
        chosen = self._mask(group)
        mask = chosen & np.all([np.isfinite(self.per_query[agent][measure]) for agent in self.agents], axis=0)
        if (n_known := int(mask.sum())) < (n_all := int(chosen.sum())):
            note = f"agents are compared in {measure} over {n_known:,} of {n_all:,} questions, of which it is known for all"
            warnings.warn(note, RetrievalWarning, stacklevel=2)
        if not n_known:
            return []
        per_agent = {agent: {measure: self.per_query[agent][measure][mask]} for agent in self.agents}
        return compare(per_agent, baseline, _members(self.families, mask))

    def curve(
        self,
        agent: str,
        per: Per = "search",
        every: float = 1,
        most: float | None = None,
        measure: Literal["recall", "perfect_recall"] = "recall",
    ) -> Scores:
        """Return the mean recall within 0, ``every``, 2 * ``every``, ... steps, searches, tokens, and so on.

        An agent that has stopped keeps what it has.

        Args:
            agent: name of the agent.
            per: what the curve runs over.
            every: distance of its points: 1 for searches, 1000 for tokens, .01 for a price in cents.
            most: where it ends; None for the most that a question took.
            measure: recall, or the share of questions whose gold is complete.

        Raises:
            ConfigurationError: the agent does not exist, or what the curve runs over is not known for each of its steps.
        """
        self._require(agent)
        courses = self._courses[agent]
        if not courses:
            raise ConfigurationError(f"nothing that {agent!r} found is known, so there is no curve")
        end = max(course.spent(per)[-1] for course in courses) if most is None else most
        amounts: Scores = np.arange(int(np.ceil(end / every - 1e-9)) + 1, dtype=np.float64) * every
        recall = np.stack([course.at(per, amounts) for course in courses])
        mean: Scores = (recall if measure == "recall" else (recall >= 1).astype(np.float64)).mean(axis=0)
        return mean

    def is_gold(self, query_id: str, item_id: str) -> bool:
        """Return whether an item is relevant to a question.

        Args:
            query_id: a question with gold.
            item_id: an item that came back.
        """
        return _unit_of(item_id, self._units[query_id], self._titles) is not None

    def area(self, agent: str, per: Per, most: float) -> float:
        """Return the area under mean recall over a cost, as a share of the most possible.

        Args:
            agent: name of the agent.
            per: the cost.
            most: where the area ends.

        Raises:
            ConfigurationError: as :meth:`curve`, or ``most`` is not above 0.
        """
        if not most > 0:
            raise ConfigurationError(f"most={most}; the area ends at a cost above 0")
        self._require(agent)
        return float(np.mean([course.area(per, most) for course in self._courses[agent]]))

    def to_arrow(self) -> pa.Table:
        rows = len(self.query_ids)
        columns: dict[str, pa.Array] = {
            "agent": pa.array([agent for agent in self.agents for _ in range(rows)], pa.string()),
            "qid": pa.array(self.query_ids * len(self.agents), pa.string()),
        }
        for values, names in ((self.per_query, list(MEASURES)), (self.counts, list(COUNTS))):
            columns |= {
                name: pa.array(np.concatenate([values[agent][name] for agent in self.agents]), from_pandas=True)
                for name in names
            }
        return pa.table(columns)

    def __repr__(self) -> str:
        shown = [
            f"{agent}: " + ", ".join(f"{name} {means[name]:.3f}" for name in ("recall", "perfect_recall", "recall_by_search"))
            for agent, means in ((agent, self.means(agent)) for agent in self.agents)
        ]
        return f"<{'; '.join(shown)}; {len(self.query_ids):,} {'question' if len(self.query_ids) == 1 else 'questions'}>"

    def _repr_html_(self) -> str:
        names = [*MEASURES, *COUNTS]
        means = {agent: self.means(agent) for agent in self.agents}
        rows = [[name.replace("_", " "), *(_shown(means[agent][name]) for agent in self.agents)] for name in names]
        return html_table(["mean", *self.agents], rows, f"{len(self.query_ids):,} questions")

    def _mask(self, group: str) -> Mask:
        if not group:
            return np.ones(len(self.query_ids), np.bool_)
        if group not in self.groups:
            raise ConfigurationError(f"there is no group {group!r}; {nearest(group, list(self.groups))}")
        return self.groups[group]

    def _require(self, agent: str) -> None:
        if agent not in self.per_query:
            raise ConfigurationError(f"there is no agent {agent!r}; {nearest(agent, self.agents)}")


def _members(families: Sequence[str | None], mask: Mask) -> list[str | None]:
    return [family for family, member in zip(families, mask.tolist(), strict=True) if member]


def evaluate_trajectories(
    trajectories: Sequence[Trajectory],
    qrels: Judged,
    *,
    titles: Mapping[str, str] | None = None,
    families: Mapping[str, str | None] | None = None,
    groups: Mapping[str, str | None] | None = None,
    relevant_from: int = 1,
    limit: int | None = None,
    price: tuple[float, float] | None = None,
    all_questions: bool = False,
) -> TrajectoryEvaluation:
    """Measure agents by what their searches found, step by step.

    Args:
        trajectories: of one or several agents, one for each agent and question.
        qrels: gold in any form that :func:`nlp_retrieval.evaluate` takes.
        titles: titles by id of all items of the corpus, empty where there is none. Needed for gold by title; with them, an id
            that the corpus lacks is an error.
        families: by question id; questions of a family are not independent.
        groups: by question id, such as the number of hops.
        relevant_from: the lowest grade of a relevant document.
        limit: number of searches that ``recall_by_search`` runs over; None for the most of any trajectory.
        price: of a million tokens, in and out, for steps and trajectories that have tokens and no price.
        all_questions: whether an agent found nothing for a question that it was not asked; by default only questions that some
            agent was asked are evaluated, and for the others nothing is known.

    Raises:
        ConfigurationError: an agent has two trajectories for a question, the limit is below 1, or a price below 0.
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
    if price is not None:
        trajectories = [_priced(trajectory, price) for trajectory in trajectories]
    gold = read_gold(qrels)
    units = dict(zip((judged.query_id for judged in gold), _units(gold, titles, relevant_from), strict=True))
    units = {query_id: wanted for query_id, wanted in units.items() if wanted}
    by_agent: dict[str, dict[str, Trajectory]] = {}
    unjudged = 0
    for trajectory in trajectories:
        if trajectory.question_id in units:
            by_agent.setdefault(trajectory.agent, {})[trajectory.question_id] = trajectory
        else:
            unjudged += 1
    if unjudged == len(trajectories):
        asked = trajectories[0].question_id if trajectories else None
        raise QueryError(
            f"none of the {len(trajectories):,} trajectories is of a question with gold (asked: {asked!r}; judged: "
            f"{next(iter(units))!r}); are both of the same collection?"
        )
    if titles is not None:
        _require_items(trajectories, titles)
    if not all_questions:
        units = {query_id: wanted for query_id, wanted in units.items() if any(query_id in own for own in by_agent.values())}
    _warn(by_agent, units, unjudged, found_nothing=all_questions)
    most = max((len(trajectory.searches) for own in by_agent.values() for trajectory in own.values()), default=0)
    nothing = Trajectory(question_id="-") if all_questions else None
    measured = {
        agent: [
            _measured(own.get(query_id, nothing), wanted, titles, limit or max(most, 1)) for query_id, wanted in units.items()
        ]
        for agent, own in by_agent.items()
    }
    return TrajectoryEvaluation(
        query_ids=list(units),
        families=[(families or {}).get(query_id) for query_id in units],
        groups=_masks(list(units), groups or {}),
        per_query={
            agent: {name: np.array([values[name] for values, _, _ in rows]) for name in MEASURES}
            for agent, rows in measured.items()
        },
        counts={
            agent: {name: np.array([counts[name] for _, counts, _ in rows], np.float64) for name in COUNTS}
            for agent, rows in measured.items()
        },
        limit=limit or max(most, 1),
        _courses={agent: [course for _, _, course in rows if course is not None] for agent, rows in measured.items()},
        _units=units,
        _titles=titles,
    )


def _priced(trajectory: Trajectory, price: tuple[float, float]) -> Trajectory:
    if not all(0 <= each <= MOST for each in price):
        raise ConfigurationError(f"price={price}; a million tokens cost from 0 to {MOST:,}, in and out")

    def cost(of: Trajectory | AgentStep) -> float | None:
        if of.price is not None or (of.input_tokens is None and of.output_tokens is None):
            return of.price
        return ((of.input_tokens or 0) * price[0] + (of.output_tokens or 0) * price[1]) / 1e6

    steps = tuple(step.model_copy(update={"price": cost(step)}) for step in trajectory.steps)
    return trajectory.model_copy(update={"steps": steps, "price": cost(trajectory)})


def _units(gold: Sequence[Gold], titles: Mapping[str, str] | None, relevant_from: int) -> list[_Units]:
    if titles is None and any(judged.by == "title" for judged in gold):
        raise GoldError("the gold names titles; give titles, by the ids of the items that the agents found (--corpus)")
    relevant = relevant_documents(gold, relevant_from)
    kept = [[key for key, (grade, _) in documents.items() if grade >= relevant_from] for documents in relevant]
    return [{key: number for number, key in enumerate(keys)} for keys in kept]


def _measured(
    trajectory: Trajectory | None, wanted: _Units, titles: Mapping[str, str] | None, limit: int
) -> tuple[dict[str, float], dict[str, float], _Course | None]:
    """Measures and counts of a trajectory, and its course; unknown where there is none, or its results cannot be read."""
    if trajectory is None or any(step.error == NO_IDS for step in trajectory.searches):
        known = {} if trajectory is None else {"steps": len(trajectory.steps), "searches": len(trajectory.searches)}
        return dict.fromkeys(MEASURES, np.nan), dict.fromkeys(COUNTS, np.nan) | known, None

    def unit_of(item_id: str) -> int | None:
        return _unit_of(item_id, wanted, titles)

    seen: set[str] = set()
    queries: set[tuple[str, str]] = set()
    gold_seen: set[int] = set()
    found, repeated, again, results = [0], 0, 0, 0
    last_gold, searches_at_last, last_search_brought = 0, 0, False
    searches = [0]
    for number, step in enumerate(trajectory.steps, 1):
        came = step.came
        fresh = {unit for item_id in came if item_id not in seen and (unit := unit_of(item_id)) is not None} - gold_seen
        if step.kind == "search":
            asked = " ".join(step.query.casefold().split()), repr(step.where)
            repeated += bool(step.query) and asked in queries
            queries.add(asked)
            results += len(step.results)
            again += sum(item_id in seen for item_id in step.results)
            last_search_brought = bool(fresh)
        searches.append(searches[-1] + (step.kind == "search"))
        if fresh:
            last_gold, searches_at_last = number, searches[-1]
        seen.update(came)
        gold_seen |= fresh
        found.append(len(gold_seen))
    complete = len(gold_seen) == len(wanted)
    opened = {unit for item_id in trajectory.opened() if (unit := unit_of(item_id)) is not None}
    cited = trajectory.cited()
    cited_gold = {unit for item_id in cited if (unit := unit_of(item_id)) is not None}
    course = _Course(
        found,
        searches,
        _running([step.tokens for step in trajectory.steps]),
        _running([step.price for step in trajectory.steps]),
        _running([step.seconds for step in trajectory.steps]),
        len(wanted),
    )
    measures = {
        "recall": len(gold_seen) / len(wanted),
        "perfect_recall": float(complete),
        "recall_by_search": course.area("search", limit),
        "redundancy": again / results if results else 0.0,
        "repeated_queries": repeated / searches[-1] if searches[-1] else 0.0,
        "gold_unopened": len(gold_seen - opened) / len(wanted),
        "gold_uncited": len(gold_seen - cited_gold) / len(wanted),
        "citation_precision": sum(unit_of(item_id) is not None for item_id in cited) / len(cited) if cited else 0.0,
        "citation_recall": len(cited_gold) / len(wanted),
        "cited_unseen": sum(item_id not in seen for item_id in cited) / len(cited) if cited else 0.0,
        "stopped_early": float(not complete and last_search_brought),
        "searched_on": (searches[-1] - searches_at_last) / searches[-1] if complete and searches[-1] else 0.0,
    }
    if not trajectory.answer and trajectory.citations is None:
        measures |= dict.fromkeys(("gold_uncited", "citation_precision", "citation_recall", "cited_unseen"), np.nan)
    counts = {
        "steps": len(trajectory.steps),
        "searches": searches[-1],
        "opened": len(trajectory.opened()),
        "results": results,
        "last_gold_step": last_gold if complete else np.nan,
        "tokens": _known(trajectory.tokens),
        "price": _known(trajectory.cost),
        "seconds": _known(trajectory.seconds),
    }
    return measures, counts, course


def _unit_of(item_id: str, wanted: _Units, titles: Mapping[str, str] | None) -> int | None:
    unit = wanted.get(("item_id", item_id))
    if unit is None and titles is not None:
        unit = wanted.get(("title", normalize_title(titles.get(item_id, ""))))
    return unit


def _known(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _running(amounts: Sequence[float | None]) -> list[float] | None:
    """Sums after each step, from before the first; None if no step has an amount. A step without an amount adds nothing."""
    if amounts and all(amount is None for amount in amounts):
        return None
    return [0.0, *accumulate(amount or 0.0 for amount in amounts)]


def _masks(query_ids: Sequence[str], groups: Mapping[str, str | None]) -> dict[str, Mask]:
    names = sorted({name for query_id in query_ids if (name := groups.get(query_id)) is not None})
    return {name: np.array([groups.get(query_id) == name for query_id in query_ids]) for name in names}


def _require_items(trajectories: Sequence[Trajectory], titles: Mapping[str, str]) -> None:
    named = dict.fromkeys(item_id for trajectory in trajectories for item_id in trajectory.seen())
    if unknown := [item_id for item_id in named if item_id not in titles]:
        raise ItemError(
            f"{len(unknown):,} of {len(named):,} items that came back are not in the corpus (the first: {unknown[0]!r}); give "
            "the corpus that the agents searched"
        )


def _warn(
    by_agent: Mapping[str, Mapping[str, Trajectory]], units: Mapping[str, _Units], unjudged: int, *, found_nothing: bool
) -> None:
    for agent, own in by_agent.items():
        if missing := len(units) - len(own):
            first = next(query_id for query_id in units if query_id not in own)
            count = "they count as having found nothing" if found_nothing else "they are in none of its means"
            of_all = f"{missing:,} of {len(units):,} questions (the first: {first!r})"
            warnings.warn(f"agent {agent!r} has no trajectory for {of_all}; {count}", RetrievalWarning, stacklevel=3)
    if unjudged:
        of_questions = counted(unjudged, "trajectory is of a question", "trajectories are of questions")
        warnings.warn(f"{of_questions} without gold and not counted", RetrievalWarning, stacklevel=3)


def _shown(value: float) -> str:
    return "" if np.isnan(value) else f"{value:,.3f}"
