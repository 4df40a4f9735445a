"""The page of trajectories: what agents reached at what cost, and for each question their steps side by side.

It has the head and the style of a benchmark's page, and needs no network and no script. Texts of agents and items are escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from nlp_retrieval.agents.measures import MEASURES, TrajectoryEvaluation, figure
from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.evaluation.comparison import Comparison, sentence
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.reports.page.charts import COLOURS, line_chart
from nlp_retrieval.reports.page.templating import asset, rendered
from nlp_retrieval.text.printing import counted

_FILES = Path(__file__).parent / "page_files"
_SHOWN = [name for name in MEASURES if name != "cited_unseen"]
_COUNTS = {"searches": ",.1f", "opened": ",.1f", "tokens": ",.0f", "price": ",.4f", "seconds": ",.2f"}
_MOST_QUESTIONS = 100
MOST_STEPS, MOST_RESULTS = 60, 10


class ShownResult(NamedTuple):
    """A result of a step: its id and title, whether it is gold, and whether it had come back before."""

    item_id: str
    title: str
    is_gold: bool
    seen_before: bool


_Shown = tuple[AgentStep, list[ShownResult], int]
"""A step with its first results and all gold, and how many more results there are."""


def shown_steps(
    trajectory: Trajectory, evaluation: TrajectoryEvaluation, titles: Mapping[str, str] | None = None
) -> list[_Shown]:
    """Return the first steps of a trajectory."""
    seen: set[str] = set()
    steps = []
    for step in trajectory.steps[:MOST_STEPS]:
        results = []
        for item_id in step.came or ([step.item_id] if step.item_id else []):  # what could not be read is shown, too
            is_gold = evaluation.is_gold(trajectory.question_id, item_id)
            results.append(ShownResult(item_id, (titles or {}).get(item_id, ""), is_gold, item_id in seen))
        seen.update(result.item_id for result in results)
        shown = results[:MOST_RESULTS] + [result for result in results[MOST_RESULTS:] if result.is_gold]
        steps.append((step, shown, len(results) - len(shown)))
    return steps


def trajectories_page(
    evaluation: TrajectoryEvaluation,
    trajectories: Sequence[Trajectory],
    *,
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return a page of HTML: agents compared, recall over searches, and the steps of each question side by side.

    Args:
        evaluation: of the trajectories.
        trajectories: of its agents.
        titles: of items, by id.

    Examples:
        >>> page = trajectories_page(evaluate_trajectories(trajectories, {"q1": ["whale"]}), trajectories)
        >>> "1 question" in page, "large whales" in page
        (True, True)
    """
    comparisons = evaluation.compare()
    means = {agent: evaluation.means(agent) for agent in evaluation.agents}
    asked = _hardest(evaluation)[:_MOST_QUESTIONS]
    by_key = {(trajectory.agent, trajectory.question_id): trajectory for trajectory in trajectories}
    recall = {agent: dict(zip(evaluation.query_ids, own["recall"], strict=True)) for agent, own in evaluation.per_query.items()}

    def column(agent: str, query_id: str) -> tuple[Trajectory, float, list[_Shown], list[tuple[str, int]]] | None:
        if (trajectory := by_key.get((agent, query_id))) is None:
            return None
        steps = shown_steps(trajectory, evaluation, titles)
        came = {item_id: number for number, step in reversed([*enumerate(trajectory.steps, 1)]) for item_id in step.came}
        citations = [(item_id, came.get(item_id, 0)) for item_id in trajectory.cited()]
        return trajectory, recall[agent][query_id], steps, citations

    return rendered(
        "agents.html",
        _FILES,
        agents=evaluation.agents,
        headline=headline_of(evaluation, comparisons),
        sentences=[sentence(comparison) for comparison in comparisons[:10]],
        measures=[name for name in _SHOWN if not all(np.isnan(own[name]) for own in means.values())],
        means=means,
        intervals=evaluation.intervals,
        limit=evaluation.limit,
        counts={
            name: {agent: figure(own[name], form) for agent, own in means.items()}
            for name, form in _COUNTS.items()
            if not all(np.isnan(own[name]) for own in means.values())
        },
        n_questions=len(evaluation.query_ids),
        n_families=int(family_numbers(evaluation.families).max()) + 1,
        chart=_recall_chart(evaluation),
        figure=figure,
        colours={agent: f"series-{position % COLOURS}" for position, agent in enumerate(evaluation.agents)},
        questions=[(each, [shown for agent in evaluation.agents if (shown := column(agent, each))]) for each in asked],
        style=asset("report.css") + asset("agents.css", _FILES),
        script=Markup(),
    )


def headline_of(evaluation: TrajectoryEvaluation, comparisons: Sequence[Comparison]) -> str:
    """Return one sentence: which agent has the best recall, and what it takes."""
    means = {agent: evaluation.means(agent) for agent in evaluation.agents}
    best = max(evaluation.agents, key=lambda agent: np.nan_to_num(means[agent]["recall"], nan=-1.0))
    recall = {agent: figure(own["recall"], ".3f") for agent, own in means.items()}
    said = f"{best} has a recall of {recall[best]} with {means[best]['searches']:.1f} searches a question"
    against = [comparison for comparison in comparisons if best in (comparison.system, comparison.baseline)]
    if not against:
        return f"{said}; there is no question to compare it on." if len(means) > 1 else f"{said}."
    closest = min(against, key=lambda comparison: abs(comparison.difference))
    other = closest.baseline if closest.system == best else closest.system
    difference = closest.difference if closest.system == best else -closest.difference
    clear = "" if closest.p_holm <= 0.05 else ": not distinguishable"
    return (
        f"{said}, {other} of {recall[other]} with {means[other]['searches']:.1f}; over "
        f"{counted(closest.queries, 'question')} of both {difference:+z.3f} (p = {closest.p_holm:.2g}{clear})."
    )


def _hardest(evaluation: TrajectoryEvaluation) -> list[str]:
    """The questions: those in which agents differ most first, then those in which the first found least."""
    values = np.nan_to_num(np.stack([evaluation.per_query[agent]["recall"] for agent in evaluation.agents]))
    order = np.lexsort((values[0], values.min(axis=0) - values.max(axis=0)))
    return [evaluation.query_ids[place] for place in order.tolist()]


def _recall_chart(evaluation: TrajectoryEvaluation) -> Markup:
    """A drawing of mean recall over the number of searches, a curve for each agent, numbered as in the table."""
    known = [agent for agent in evaluation.agents if np.isfinite(evaluation.means(agent)["recall"])]
    values = {agent: evaluation.curve(agent).tolist() if agent in known else [] for agent in evaluation.agents}
    curves = {agent: [(float(number), value) for number, value in enumerate(own)] for agent, own in values.items()}
    return line_chart("chart-agents", "Recall over searches", ("Recall", "searches"), curves) if known else Markup()
