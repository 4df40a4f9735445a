"""The page of trajectories: what agents reached at what cost, and for each question their steps side by side.

It needs no network and no script. Texts of agents and items are escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from nlp_retrieval.agents.citations import TrajectoryCitation, trajectory_citations
from nlp_retrieval.agents.measures import TrajectoryEvaluation
from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.evaluation.comparison import Comparison, sentence
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.reports.page.charts import COLOURS, line_chart
from nlp_retrieval.reports.page.templating import asset, rendered

_FILES = Path(__file__).parent / "page_files"
MOST_QUESTIONS = 100
MOST_STEPS = 60
MOST_RESULTS = 10
_MOST_POINTS = 400


@dataclass(frozen=True)
class ShownResult:
    """A result of a step: its id and title, whether it is gold, and whether it had come back before."""

    item_id: str
    title: str
    is_gold: bool
    seen_before: bool


@dataclass(frozen=True)
class ShownStep:
    """A step as it is shown: its number, its first results, and how many more there are."""

    number: int
    step: AgentStep
    results: list[ShownResult]
    more: int


@dataclass(frozen=True)
class ShownTrajectory:
    """A trajectory as it is shown: its first steps, how many more there are, what it cites, and its figures."""

    trajectory: Trajectory
    steps: list[ShownStep]
    more: int
    citations: list[TrajectoryCitation]
    figures: Mapping[str, float]


def shown_trajectory(
    trajectory: Trajectory, evaluation: TrajectoryEvaluation | None, titles: Mapping[str, str] | None = None
) -> ShownTrajectory:
    """Return a trajectory for a page or a terminal."""
    seen: set[str] = set()
    steps = []
    for number, step in enumerate(trajectory.steps, 1):
        came = step.came or ([step.item_id] if step.item_id else [])  # what could not be read is shown, too
        results = [
            ShownResult(
                item_id,
                (titles or {}).get(item_id, ""),
                evaluation is not None and evaluation.is_gold(trajectory.question_id, item_id),
                item_id in seen,
            )
            for item_id in came
        ]
        seen.update(came)
        if number <= MOST_STEPS:
            best = sorted(results[MOST_RESULTS:], key=lambda result: not result.is_gold)
            gold = [result for result in best if result.is_gold]  # gold is never left out
            steps.append(ShownStep(number, step, [*results[:MOST_RESULTS], *gold], len(best) - len(gold)))
    figures = {}
    if evaluation is not None:
        place = evaluation.query_ids.index(trajectory.question_id)
        figures = {name: float(values[place]) for name, values in evaluation.per_query[trajectory.agent].items()}
    return ShownTrajectory(
        trajectory, steps, max(len(trajectory.steps) - MOST_STEPS, 0), trajectory_citations(trajectory), figures
    )


def trajectories_page(
    evaluation: TrajectoryEvaluation,
    trajectories: Sequence[Trajectory],
    *,
    measure: str = "recall",
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return a page of HTML: agents compared, recall over searches, and the steps of each question side by side.

    Args:
        evaluation: of the trajectories.
        trajectories: of its agents.
        measure: what agents are compared by.
        titles: of items, by id.

    Raises:
        ConfigurationError: the measure does not exist.

    Examples:
        >>> page = trajectories_page(evaluate_trajectories(trajectories, {"q1": ["whale"]}), trajectories)
        >>> "1 question" in page, "large whales" in page
        (True, True)
    """
    comparisons = evaluation.compare(measure) if len(evaluation.agents) > 1 else []
    by_question: dict[str, dict[str, Trajectory]] = {query_id: {} for query_id in _hardest(evaluation, measure)}
    for trajectory in trajectories:
        if trajectory.question_id in by_question:
            by_question[trajectory.question_id][trajectory.agent] = trajectory
    means = {agent: evaluation.means(agent) for agent in evaluation.agents}
    return rendered(
        "agents.html",
        _FILES,
        agents=evaluation.agents,
        headline=headline_of(evaluation, comparisons, measure),
        sentences=[sentence(comparison) for comparison in comparisons[:10]],
        evaluation=evaluation,
        means=means,
        intervals=evaluation.intervals,
        has={name: any(not np.isnan(of_agent[name]) for of_agent in means.values()) for name in ("tokens", "price", "seconds")},
        n_questions=len(evaluation.query_ids),
        n_families=int(family_numbers(evaluation.families).max()) + 1,
        chart=recall_chart(evaluation),
        colours={agent: f"series-{position % COLOURS}" for position, agent in enumerate(evaluation.agents)},
        questions=[
            (
                query_id,
                next((trajectory.question for trajectory in own.values() if trajectory.question), ""),
                [shown_trajectory(own[agent], evaluation, titles) for agent in evaluation.agents if agent in own],
            )
            for query_id, own in by_question.items()
        ],
        left_out=len(evaluation.query_ids) - len(by_question),
        measure=measure.replace("_", " "),
        style=asset("report.css") + asset("agents.css", _FILES),
        script=Markup(),
    )


def headline_of(evaluation: TrajectoryEvaluation, comparisons: Sequence[Comparison], measure: str) -> str:
    """Return one sentence: which agent is best by the measure, and what it takes."""
    best = max(evaluation.agents, key=lambda agent: np.nan_to_num(evaluation.means(agent)[measure], nan=-1.0))
    means = evaluation.means(best)
    takes = f"{means['searches']:.1f} searches a question"
    named = measure.replace("_", " ")
    if not comparisons:
        return f"{best} has a {named} of {means[measure]:.3f} with {takes}."
    against = [comparison for comparison in comparisons if best in (comparison.system, comparison.baseline)]
    closest = min(against, key=lambda comparison: abs(comparison.difference))
    other = closest.baseline if closest.system == best else closest.system
    clear = closest.p_holm <= 0.05
    gain = f"+{abs(closest.difference):.3f}, p = {closest.p_holm:.2g}"
    second = evaluation.means(other)
    return (
        f"{best} has the highest {named}, {means[measure]:.3f} with {takes}; {other} has {second[measure]:.3f} with "
        f"{second['searches']:.1f} ({gain}{'' if clear else ': not distinguishable'})."
    )


def _hardest(evaluation: TrajectoryEvaluation, measure: str) -> list[str]:
    """The questions in which agents differ most, first; then those in which the first found least."""
    values = np.nan_to_num(np.stack([evaluation.per_query[agent][measure] for agent in evaluation.agents]))
    order = np.lexsort((np.arange(values.shape[1]), values[0], -(values.max(axis=0) - values.min(axis=0))))
    return [evaluation.query_ids[place] for place in order[:MOST_QUESTIONS].tolist()]


def recall_chart(evaluation: TrajectoryEvaluation) -> Markup:
    """Return a drawing of mean recall over the number of searches, a curve for each agent, numbered as in the table."""
    every = max(1, -(-evaluation.limit // _MOST_POINTS))
    curves: dict[str, list[tuple[float, float]]] = {}
    for agent in evaluation.agents:
        means = evaluation.curve(agent, "search", every, evaluation.limit)
        known = bool(np.isfinite(evaluation.means(agent)["recall"]))
        curves[agent] = [(number * every, float(value)) for number, value in enumerate(means)] if known else []
    if not any(curves.values()):
        return Markup()
    return line_chart("chart-agents", "Recall over searches", ("Recall", "searches"), curves)
