"""What the judgements of a project say: one sentence, the figures behind it, and how far a model agrees with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.agreement import PairAgreement, measure_agreement
from nlp_retrieval.judging.pool import JudgingPool, known_system, values_by_query, why_unknown
from nlp_retrieval.judging.project import JudgingProject
from nlp_retrieval.judging.sequences import SAME_RANKINGS, DifferenceVerdict, decide
from nlp_retrieval.text.printing import counted

_FEWEST_PAIRS = 10
"""Fewest pairs that people and a model both judged for which its agreement and bias are shown."""


@dataclass(frozen=True)
class ModelBias:
    """A model's mean grade minus that of people, over the pairs of a part ("all", "grade 2", "system A") that both judged."""

    part: str
    pairs: int
    bias: float


@dataclass(frozen=True)
class ModelReport:
    """A model beside people: its agreement with them (None below ten common pairs), and its bias by part."""

    name: str
    agreement: PairAgreement | None
    biases: list[ModelBias]


@dataclass(frozen=True)
class JudgingReport:
    """What follows from the judgements of a project.

    Args:
        sentence: which system is better, by how much, after how many judgements; or what is missing.
        measure: that of the decisions.
        decisions: with probability 95%, all of them hold, however often one looks.
        means: by measure and system, over the families judged completely; without those that the design cannot tell.
        judged: pairs that people judged, of those chosen.
        chosen: pairs to judge.
        model: the model with most grades; None without one.
        notes: what makes a figure unsafe.

    Examples:
        >>> report = JudgingReport("", "precision@10", [], {}, judged=0, chosen=20, model=None, notes=[])
        >>> report.chosen - report.judged
        20
    """

    sentence: str
    measure: str
    decisions: list[DifferenceVerdict]
    means: dict[str, dict[str, float]]
    judged: int
    chosen: int
    model: ModelReport | None
    notes: list[str]


def report_of(
    project: JudgingProject,
    measures: Sequence[str] = (),
    *,
    baseline: str | None = None,
    margin: float = 0.0,
    model: str | None = None,
) -> JudgingReport:
    """Decide between a project's systems by people's judgements.

    Args:
        project: judged in part.
        measures: names; the first is that of the decisions. By default the project's, and nDCG where it is known.
        baseline: the system to compare with; None for the comparisons of the project, or every two.
        margin: differences below it do not matter.
        model: which is compared with people; None for the one with most grades.

    Raises:
        ConfigurationError: a measure or the baseline does not exist, or the margin is below 0.
        InputError: the model does not exist.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)], "q2": [("fox", 1.0)]}, "b": {"q1": [("krill", 1.0)], "q2": [("fox", 1.0)]}}
        >>> project = JudgingProject.create("judging", queries, runs, items)
        >>> report_of(project).sentence
        'Nothing can be said yet: no family of questions is judged completely; judge on in the given order.'
    """
    if not margin >= 0:
        raise ConfigurationError(f"margin={margin:g}; take 0 or more")
    pool, settings = project.pool(model), project.settings
    names = list(measures) or list(dict.fromkeys([settings.measure, f"ndcg@{settings.depth}"]))
    compared = [(system, one) for one, system in combinations(pool.systems, 2)]
    if baseline is not None:
        known_system(pool, baseline)
        compared = [(system, baseline) for system in pool.systems if system != baseline]
    elif settings.comparisons is not None:
        asked = set(map(frozenset, settings.comparisons))
        compared = [pair for pair in compared if frozenset(pair) in asked]
    order, numbers = project.query_order, family_numbers(pool.families)
    decisions = [decide(pool, names[0], *pair, margin=margin, order=order, together=len(compared)) for pair in compared]
    notes = [note.rstrip(".")] if (note := pool.synthetic_note) else []
    if disputed := len(project.disputed()):
        notes.append(f"{counted(disputed, 'pair')} with different grades, whose lower median counts until they are settled")
    if pool.judged.any() and not pool.relevant.any():
        notes.append("nothing judged so far is relevant")
    return JudgingReport(
        sentence=_sentence(names[0], decisions, len(np.unique(numbers[pool.drawn & ~pool.complete]))),
        measure=names[0],
        decisions=decisions,
        means={name: _means(pool, name) for name in names},
        judged=int((pool.chosen & pool.judged).sum()),
        chosen=int(pool.chosen.sum()),
        model=None if np.isnan(pool.model).all() else _model(pool, model or project.models()[0]),
        notes=notes,
    )


def decided(project: JudgingProject) -> str:
    """Return what is decided so far, in a sentence; empty as long as nothing can be said."""
    report = report_of(project)
    known = [each for each in report.decisions if not each.reason]
    if not known or not known[0].families:
        return ""
    stop = "You can stop." if all(decision.verdict != "open" for decision in known) else ""
    return " ".join(filter(None, [report.sentence, stop, project.pool().synthetic_note]))


def _means(pool: JudgingPool, measure: str) -> dict[str, float]:
    complete, values = pool.complete, values_by_query(pool, measure, list(pool.systems))
    if not complete.any():
        return {}
    return {system: float(values[system][complete].mean()) for system in pool.systems if not why_unknown(pool, measure, system)}


def _model(pool: JudgingPool, name: str) -> ModelReport:
    both = pool.chosen & pool.judged & ~np.isnan(pool.model)
    if both.sum() < _FEWEST_PAIRS:
        return ModelReport(name, None, [])
    parts = {"all": both}
    parts |= {f"grade {grade:g}": both & (pool.grades == grade) for grade in np.unique(pool.grades[both]).tolist()}
    for system, rankings in pool.systems.items():
        parts[f"system {system}"] = both & np.isin(np.arange(len(both)), np.concatenate(rankings))
    gap = pool.model - pool.grades
    biases = [ModelBias(part, int(pairs.sum()), float(gap[pairs].mean())) for part, pairs in parts.items() if pairs.any()]
    people, by_model = (
        {
            (pool.query_ids[pool.pair_query[pair]], pool.item_ids[pair]): round(float(grades[pair]))
            for pair in np.flatnonzero(both).tolist()
        }
        for grades in (pool.grades, pool.model)
    )
    return ModelReport(name, measure_agreement({"people": people, "the model": by_model}).pairs[0], biases)


def _sentence(measure: str, decisions: Sequence[DifferenceVerdict], left: int) -> str:
    """Return the sentence about the differences of one measure: what is decided, else what is open, and what is missing."""
    if not decisions:
        return "There is one system alone; a comparison needs two."
    decided = [each for each in decisions if each.verdict in ("better", "worse")]
    still_open = [each for each in decisions if each.verdict == "open"]
    if decided:
        each = max(decided, key=lambda one: abs(one.value or 0))
        named = (each.system, each.baseline)
        better, worse = named if each.verdict == "better" else named[::-1]
        low, high = sorted((abs(each.low), abs(each.high)))
        others = f"; {len(still_open):,} of {len(decisions):,} differences are open" if still_open else ""
        amount = f"{abs(each.value or 0):.3f} [{low:.3f}, {high:.3f}] in {measure}"
        return f"{better} is better than {worse} by {amount}, after {_after(each)}{others}."
    if not still_open:
        return f"No difference is larger than the margin in {measure}, after {_after(decisions[0])}."
    if all(each.reason == SAME_RANKINGS for each in decisions):
        return f"There is nothing to decide in {measure}: {SAME_RANKINGS}."
    known = [each for each in still_open if each.value is not None and not each.reason]
    if not known:
        waiting = [each.reason for each in still_open if each.reason]
        why = waiting[0] if len(waiting) == len(still_open) else ""
        return f"Nothing can be said yet: {why or 'no family of questions is judged completely; judge on in the given order'}."
    decision = max(known, key=lambda each: abs(each.value or 0) / (each.high - each.low))
    said = (
        f"It is open whether {decision.system} or {decision.baseline} is better: {decision.value:z.3f} [{decision.low:z.3f}, "
        f"{decision.high:z.3f}] in {measure}, after {_after(decision)}"
    )
    if (more := decision.more_families) is not None:
        judgements = round(more * decision.judgements / decision.families)
        said += f"; about {counted(judgements, 'more judgement')}, of {_families(more)}, would decide it"
        if more > left:
            said += f", and {left:,} {'is' if left == 1 else 'are'} left: make a project with more questions"
    elif decision.families >= _FEWEST_PAIRS:
        said += "; thousands more would not decide it: say with --margin which differences do not matter"
    elif not left:
        said += "; nothing is left to judge: make a project with more questions"
    return said + "."


def _after(decision: DifferenceVerdict) -> str:
    return f"{counted(decision.judgements, 'judgement')} of {_families(decision.families)}"


def _families(count: int) -> str:
    return f"{counted(count, 'family', 'families')} of questions"
