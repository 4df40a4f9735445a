"""What the judgements of a project say: one sentence, and the estimates behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.judging.estimates import Estimate, ValueInterval, estimate_measures
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.judging.sequences import DifferenceVerdict, decide

_TINY = 1e-12
_MODEL_PAIRS = 10
"""Fewest pairs that people and a model both judged for which the bias of the model is shown."""


@dataclass(frozen=True)
class ModelBias:
    """How far a model's grades are from people's, estimated from pairs that both judged.

    Args:
        part: "all", "grade 2", "system A", or "group 2 hops".
        pairs: number of pairs.
        bias: mean of the model's grade minus people's, over all pairs that the design can choose: one that was chosen with a
            probability of a tenth counts ten times (Hájek, 1971).
    """

    part: str
    pairs: int
    bias: float


@dataclass(frozen=True)
class NamedDecision:
    """What is decided about two systems.

    Args:
        system: the system.
        baseline: that it is compared with.
        decision: about their difference.
    """

    system: str
    baseline: str
    decision: DifferenceVerdict


@dataclass(frozen=True)
class JudgingReport:
    """What follows from the judgements of a project.

    Args:
        sentence: which system is better, by how much, after how many judgements; or what is missing.
        estimates: by measure, the systems and then their differences.
        decisions: about the differences in the first measure; with probability 95%, all of them hold, however often one looks.
        judged: pairs that people judged, of those chosen.
        chosen: pairs to judge.
        model: name of the model whose grades were used; empty without one.
        biases: of the model.
        notes: what makes a figure unsafe.
    """

    sentence: str
    estimates: list[Estimate]
    decisions: list[NamedDecision]
    judged: int
    chosen: int
    model: str
    biases: list[ModelBias]
    notes: list[str]


def report_of(
    project: JudgingProject,
    measures: Sequence[str] = (),
    *,
    baseline: str | None = None,
    margin: float = 0.0,
    model: str | None = None,
) -> JudgingReport:
    """Estimate measures of a project's systems, and say which is better.

    Args:
        project: judged in part.
        measures: names; by default the project's, and nDCG where it can be estimated. The first is that of the sentence.
        baseline: the system to compare with; None for the comparisons of the project, or every two.
        margin: differences below it do not matter.
        model: whose grades are used beside people's; None for the one with most grades.

    Raises:
        ConfigurationError: a measure or the baseline does not exist, or the margin is below 0.
        InputError: the model does not exist.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)], "q2": [("fox", 1.0)]}, "b": {"q1": [("krill", 1.0)], "q2": [("fox", 1.0)]}}
        >>> project = JudgingProject.create("judging", queries, runs, items)
        >>> report_of(project).sentence
        'Nothing can be said yet: no family of questions is judged completely yet; judge on in the given order.'
    """
    if margin < 0:
        raise ConfigurationError(f"margin={margin:g}; take 0 or more")
    pool = project.pool(model)
    names = list(measures) or default_measures(project)
    estimates = _asked_for(project, estimate_measures(pool, names, baseline), baseline)
    first = [each for each in estimates if each.measure == estimates[0].measure]
    decisions = _decisions(project, pool, first, margin)
    chosen = int(pool.chosen.sum())
    judged = int((pool.chosen & ~np.isnan(pool.grades)).sum())
    has_model = not np.isnan(pool.model).all()
    return JudgingReport(
        sentence=_sentence(first, decisions),
        estimates=estimates,
        decisions=decisions,
        judged=judged,
        chosen=chosen,
        model=(model or project.models()[0]) if has_model else "",
        biases=biases_of(pool) if has_model else [],
        notes=_notes(project, pool),
    )


def default_measures(project: JudgingProject) -> list[str]:
    """Return the measures of a report that asks for none: those that the design can estimate."""
    whole = [] if project.design in ("stratified", "decisive") else [f"ndcg@{project.depth}"]
    return [project.measure, *whole]


def decided(project: JudgingProject) -> str:
    """Return what is decided so far, in a sentence; empty as long as nothing can be said.

    Args:
        project: judged in part.
    """
    pool = project.pool()
    if np.isnan(pool.grades).all():
        return ""
    estimates = _asked_for(project, estimate_measures(pool, [project.measure]))
    decisions = _decisions(project, pool, estimates, 0.0)
    if not decisions or not decisions[0].decision.judgements or all(each.decision.reason for each in decisions):
        return ""
    stop = " You can stop." if all(each.decision.decided for each in decisions) else ""
    return " ".join(filter(None, [f"{_sentence(estimates, decisions)}{stop}", pool.synthetic_note]))


def _asked_for(project: JudgingProject, estimates: list[Estimate], baseline: str | None = None) -> list[Estimate]:
    """Return the estimates without differences that the project does not compare, unless there is a baseline."""
    asked = project.comparisons
    if asked is None or baseline is not None:
        return estimates
    pairs = {frozenset(pair) for pair in asked}
    return [each for each in estimates if each.baseline is None or frozenset((each.system, each.baseline)) in pairs]


def best_known(estimate: Estimate) -> ValueInterval | None:
    """Return the interval to go by: with the model if there is one, because a useless model costs it nothing."""
    return estimate.both or estimate.people


def biases_of(pool: JudgingPool) -> list[ModelBias]:
    """Return how far a model is off, as far as people's grades say: in all, by people's grade, by system, and by group.

    Args:
        pool: with grades of both.
    """
    both = pool.chosen & ~np.isnan(pool.grades) & ~np.isnan(pool.model)
    parts = {"all": both}
    parts |= {f"grade {grade:g}": both & (pool.grades == grade) for grade in np.unique(pool.grades[both]).tolist()}
    for name, rankings in pool.systems.items():
        found = np.zeros(len(both), bool)
        found[np.concatenate(rankings)] = True
        parts[f"system {name}"] = both & found
    parts |= {f"group {name}": both & members[pool.pair_query] for name, members in pool.groups.items()}
    if both.sum() < _MODEL_PAIRS:
        return []
    return [
        ModelBias(
            part, int(chosen.sum()), float(np.average((pool.model - pool.grades)[chosen], weights=1 / pool.inclusion[chosen]))
        )
        for part, chosen in parts.items()
        if chosen.any()
    ]


def figure(value: ValueInterval) -> str:
    """Return an interval as text: ``"0.060 [0.020, 0.100]"``."""
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _sentence(estimates: list[Estimate], decisions: Sequence[NamedDecision]) -> str:
    """Return the sentence about the differences of one measure: what is decided, else what looks so, else what is open."""
    if not decisions:
        return "There is one system alone; a comparison needs two."
    found = [each for each in decisions if each.decision.verdict in ("better", "worse")]
    still_open = [each for each in decisions if not each.decision.decided]
    others = f"; {len(still_open):,} of {len(decisions):,} differences are open" if found and still_open else ""
    measure = estimates[0].measure
    if found:
        each = max(found, key=lambda one: abs(one.decision.value))
        named = (each.system, each.baseline)
        better, worse = named if each.decision.verdict == "better" else named[::-1]
        low, high = sorted((abs(each.decision.low), abs(each.decision.high)))
        amount = f"{abs(each.decision.value):.3f} [{low:.3f}, {high:.3f}] in {measure}"
        return f"{better} is better than {worse} by {amount}, after {_after(each.decision)}{others}."
    if not still_open:
        return f"No difference is larger than the margin in {measure}, after {_after(decisions[0].decision)}."
    known = [(each, value) for each in estimates if each.baseline is not None and (value := best_known(each)) is not None]
    if not known or not decisions[0].decision.judgements:
        reasons = dict.fromkeys(each.reason for each in estimates if each.reason)
        return f"Nothing can be said yet: {next(iter(reasons), 'no pair is judged')}."
    one, value = max(known, key=lambda pair: abs(pair[1].value) / (pair[1].high - pair[1].low + _TINY))
    decision = next(each.decision for each in decisions if (each.system, each.baseline) == (one.system, one.baseline))
    said = f"{figure(value)} in {measure}, after {_after(decision)}"
    if decision.more_judgements is not None:
        said += f"; about {decision.more_judgements:,} more would decide it"
    if value.low > 0 or value.high < 0:
        systems = (one.system, one.baseline) if value.value > 0 else (one.baseline, one.system)
        return f"{systems[0]} looks better than {systems[1]}, which is not decided yet: {said}."
    return f"It is open whether {one.system} or {one.baseline} is better: {said}."


def _after(decision: DifferenceVerdict) -> str:
    return f"{decision.judgements:,} judgements of {_families(decision.families)}"


def _families(count: int) -> str:
    return f"{count:,} {'family' if count == 1 else 'families'} of questions"


def _decisions(project: JudgingProject, pool: JudgingPool, estimates: Sequence[Estimate], margin: float) -> list[NamedDecision]:
    order = project.query_order()
    pairs = [(each.system, each.baseline) for each in estimates if each.baseline is not None]
    measure = estimates[0].measure
    return [
        NamedDecision(
            system, baseline, decide(pool, measure, system, baseline, margin=margin, order=order, together=len(pairs))
        )
        for system, baseline in pairs
    ]


def _notes(project: JudgingProject, pool: JudgingPool) -> list[str]:
    notes = [note.rstrip(".")] if (note := pool.synthetic_note) else []
    if disputed := len(project.disputed()):
        notes.append(f"{disputed:,} pairs have different grades, and the lower median counts; settle them")
    grades = pool.grades[pool.chosen & ~np.isnan(pool.grades)]
    if len(grades) and not (grades >= pool.relevant_from).any():
        notes.append("nothing judged so far is relevant")
    return notes
