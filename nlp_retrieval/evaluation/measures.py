"""Measures by name: read from what people write, and printed in one form, with a label and a sort key.

Eight families are computed by :mod:`nlp_retrieval.evaluation.evaluator`. All others are those of ir-measures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, Self

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import ConfigurationError, DependencyError, QueryError, install, nearest

LABELS = {
    "perfect_recall": "Perfect recall",
    "recall": "Recall",
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "precision": "Precision",
    "f1": "F1",
    "answer_em": "Answer EM",
    "answer_f1": "Answer F1",
    "sp_em": "Facts EM",
    "sp_f1": "Facts F1",
    "sp_cited": "Facts cited",
    "sp_recall": "Facts retrieved",
    "joint_em": "Joint EM",
    "joint_f1": "Joint F1",
}
"""Display names of families of measures, in display order."""

MEASURES = ("precision", "recall", "f1", "perfect_recall", "ndcg", "map", "mrr")
"""The families that are measured at every cutoff if no measures are chosen, in storage order."""

OF_ANSWERS = frozenset(("answer_em", "answer_f1", "sp_em", "sp_f1", "sp_cited", "sp_recall", "joint_em", "joint_f1"))

DEPTH = 100
"""How many hits of each query are fetched, and count for a measure without a cutoff, if no other depth is chosen."""

_HIGHEST_GRADE = 10_000

PERSISTENCE = 0.8
"""The persistence of RBP if none is given."""

_ALIASES = {
    "p": "precision",
    "r": "recall",
    "rr": "mrr",
    "ap": "map",
    "fcr": "perfect_recall",
    "full_chain_retrieval": "perfect_recall",
}
_WRITTEN = re.compile(r"(?P<family>[^\W\d]\w*)(?P<before>\([^()]*\))?(?:@(?P<cutoff>[0-9.]{1,9}))?(?P<after>\([^()]*\))?")
_RBP = re.compile(r"rbp\(p=([0-9.e-]+)\)")


@dataclass(frozen=True)
class Measure:
    """A measure: its family, with parameters, and how many results count; None for all of them."""

    family: str
    cutoff: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the measure that was printed as a text; without a valid cutoff, all of it is the family."""
        family, _, cutoff = text.rpartition("@")
        if family and len(cutoff) < 10 and cutoff.isascii() and cutoff.isdecimal() and cutoff == str(int(cutoff)):
            return cls(family, int(cutoff))
        return cls(text)

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the measure that a person wrote: ``ndcg@10``, ``nDCG@10``, ``R@100``, ``FCR@21``, ``rbp@10(p=0.8)``.

        Upper and lower case are the same, and so are the names of ir-measures for the families computed here.
        """
        written = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if written is None or (written["before"] and written["after"]):
            raise ConfigurationError(f"{text!r} is not the name of a measure; write ndcg@10, recall@100 or rbp@10(p=0.8)")
        family = written["family"].lower()
        family, parameters = _ALIASES.get(family, family), (written["before"] or written["after"] or "()")[1:-1]
        if (family in MEASURES or family in OF_ANSWERS) and not parameters:
            return cls(family, _cutoff(written["cutoff"], text))
        if family == "rbp":
            return cls(f"rbp(p={_persistence(parameters, text)!r})", _cutoff(written["cutoff"], text))
        cutoff = f"@{written['cutoff']}" if written["cutoff"] else ""
        return cls.parse(_known_to_ir_measures(written["family"], parameters, cutoff, text))

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @property
    def persistence(self) -> float | None:
        """The persistence of rank-biased precision; None for other families."""
        matched = _RBP.fullmatch(self.family)
        return float(matched[1]) if matched is not None else None

    @property
    def foreign(self) -> bool:
        """Whether ir-measures computes it."""
        return self.family not in MEASURES and self.family not in OF_ANSWERS and self.persistence is None

    @property
    def counts_all(self) -> bool:
        """Whether hits beyond the cutoff can change it: it has no cutoff, or takes out what is not judged before it cuts."""
        return self.cutoff is None or "judged_only=True" in self.family

    @property
    def family_label(self) -> str:
        """Display name of the family: ``nDCG``."""
        if self.persistence is not None:
            return f"RBP {self.persistence:g}"
        return LABELS.get(self.family, self.family)

    @property
    def label(self) -> str:
        """The name as it is shown: ``nDCG@10``."""
        return self.family_label if self.cutoff is None else f"{self.family_label}@{self.cutoff}"

    @property
    def order(self) -> tuple[int, str, int]:
        """Return the sort key of measures for display: families in the order of ``LABELS``, then cutoffs."""
        known = list(LABELS)
        family_position = known.index(self.family) if self.family in LABELS else len(known)
        return family_position, self.family, self.cutoff or 0


def read_measures(names: Iterable[str | Measure]) -> list[Measure]:
    """Return measures by the names that people write, each once, in the given order."""
    if isinstance(names, str):
        raise ConfigurationError(f"measures={names!r}: a list is expected; write [{names!r}]")
    measures = list(dict.fromkeys(name if isinstance(name, Measure) else Measure.read(name) for name in names))
    if not measures:
        raise ConfigurationError("the list of measures is empty; name at least one, such as ndcg@10")
    return measures


def measure_among(text: str, measured: Sequence[str], place: str) -> str:
    """Return the name of a measure that a person wrote, if it is one of those measured."""
    try:
        name = str(Measure.read(text))
    except (ConfigurationError, DependencyError):
        name = text
    if name not in measured:
        raise ConfigurationError(
            f"{place}: {text!r} is not measured; {nearest(text, measured)}; to measure it, add it to measures"
        )
    return name


def usual_main(measured: Sequence[str], k_values: Sequence[int]) -> str:
    """Return the main measure if nobody chose measures: nDCG at 10, or at the largest cutoff if 10 is none."""
    usual = f"ndcg@{10 if 10 in k_values else k_values[-1]}"
    return usual if usual in measured else measured[0]


def measures_at(k_values: Sequence[int]) -> list[Measure]:
    """Return every family of :data:`MEASURES` at each cutoff, ascending."""
    if len(k_values) == 0:
        raise QueryError("k_values is empty; give the cutoffs to measure at, such as [5, 10, 20]")
    return [Measure(family, k) for k in sorted({check_k(k, "k_values: a cutoff") for k in k_values}) for family in MEASURES]


def measure_names(k_values: Sequence[int]) -> list[str]:
    """Return ``["precision@1", "recall@1", ..., "mrr@10"]``: for each k, ascending, every measure."""
    return [str(measure) for measure in measures_at(k_values)]


def cutoffs_of(measures: Iterable[Measure], depth: int = DEPTH) -> list[int]:
    """Return the cutoffs of measures, ascending; one without a cutoff counts ``depth`` hits."""
    return sorted({depth if measure.cutoff is None else measure.cutoff for measure in measures})


def check_relevant_from(value: object) -> int:
    """Return the lowest grade of a relevant document, an integer above 0."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(
            f"relevant_from={value!r}: expected an integer above 0, such as 1; grades below 1 are not relevant"
        )
    return int(value)


def grades_note(least: int) -> str:
    """Say from which grade on documents are relevant; ``""`` if from 1."""
    return f"; grades from {least} are relevant, lower ones count only in graded measures (nDCG, ERR)" if least > 1 else ""


def _cutoff(text: str | None, written: str) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"{written!r}: the cutoff is {text}; write an integer above 0")
    return int(text)


def _persistence(parameters: str, written: str) -> float:
    if not parameters:
        return PERSISTENCE
    name, _, value = parameters.partition("=")
    try:
        persistence = float(value)
    except ValueError:
        persistence = -1.0
    if name.strip() != "p" or not 0 < persistence < 1:
        raise ConfigurationError(f"{written!r}: RBP has one parameter, its persistence, between 0 and 1; write rbp@10(p=0.8)")
    return persistence


def _ir_measures(measure: str) -> Any:
    try:
        import ir_measures
    except ImportError:
        ours = ", ".join((*MEASURES, "rbp"))
        raise DependencyError(
            f"{measure} is not one of the measures computed here ({ours}), and others need ir-measures: {install('measures')}"
        ) from None
    return ir_measures


@cache
def _known_to_ir_measures(family: str, parameters: str, cutoff: str, written: str) -> str:
    """Return the name that ir-measures has for a measure."""
    library, of_trec_eval = _ir_measures(written), []
    registry = {name.lower(): name for name in library.measures.registry}
    if family.lower() not in registry:
        with suppress(ValueError):
            of_trec_eval = library.parse_trec_measure(written)
        if of_trec_eval:
            raise ConfigurationError(f"{written!r} is a name of trec_eval; write {', '.join(map(str, of_trec_eval))}")
        others = [name for name in library.measures.registry if name.lower() not in (*MEASURES, *_ALIASES, "rbp")]
        raise ConfigurationError(f"there is no measure {written!r}; {nearest(family, [*MEASURES, 'rbp', *others])}")
    family = registry[family.lower()]
    name = f"{family}({parameters})" if parameters else family
    given = {library.measures.registry[family].AT_PARAM if cutoff else "", *re.findall(r"(\w+)\s*=", parameters)}
    needed = [key for key, about in library.measures.registry[family].SUPPORTED_PARAMS.items() if about.required]
    if missing := [key for key in needed if key not in given]:
        example = f"{name}@10" if missing == ["cutoff"] else f"{family}({missing[0]}=3)"
        raise ConfigurationError(f"{written!r}: {family} needs its {missing[0]}; write {example}")
    try:
        measure = library.parse_measure(name + cutoff)
        supported = library.DefaultPipeline.supports(measure)
        sample = {"1": {"d": 1, "e": 0, "g": 1}}, {"1": {"d": 3.0, "e": 2.0, "f": 1.0, "g": 0.5}}
        # what it cannot compute is refused before a search
        most = max((metric.value for metric in library.iter_calc([measure], *sample)), default=0) if supported else 0
    except Exception as error:  # it raises what its parser and its assertions do
        raise ConfigurationError(f"{written!r}: ir-measures cannot read it as {name}{cutoff} ({error})") from None
    if not supported:
        raise ConfigurationError(f"{written!r}: ir-measures has this measure, and nothing installed here computes it")
    if most > 1:
        raise ConfigurationError(f"{written!r} is not between 0 and 1, as measures that are compared are; choose another")
    chosen = {name: value for name, value in measure.params.items() if name != measure.AT_PARAM}
    # its own name leaves out parameters that have the default; relevant_from must not replace a level that was written
    shown = ",".join(f"{name}={measure._param_repr(value)}" for name, value in chosen.items())
    at = f"@{measure.params[measure.AT_PARAM]}" if measure.AT_PARAM in measure.params else ""
    return f"{measure.NAME}{f'({shown})' if shown else ''}{at}"


def by_ir_measures(
    measures: Sequence[Measure],
    qrels: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Sequence[str]],
    relevant_from: int = 1,
) -> dict[str, Scores]:
    """Compute measures with ir-measures."""
    library = _ir_measures(str(measures[0]))
    run = {
        query_id: {document: float(len(ranking) - rank) for rank, document in enumerate(ranking)}
        for query_id, ranking in rankings.items()
        if len(ranking)  # it divides by the length of some
    }
    highest = max((grade for grades in qrels.values() for grade in grades.values()), default=0)
    if highest > _HIGHEST_GRADE:
        raise ConfigurationError(
            f"{measures[0]}: ir-measures computes it, and needs memory for every grade up to {highest:,}; use grades up to "
            f"{_HIGHEST_GRADE:,}, or another measure"
        )
    position = {query_id: number for number, query_id in enumerate(qrels)}
    values = {}
    for name in map(str, measures):
        theirs = library.parse_measure(name)
        if relevant_from > 1 and "rel" in theirs.SUPPORTED_PARAMS and "rel" not in theirs.params:
            theirs = theirs(rel=relevant_from)
        judged = {query_id: _bearable(theirs.NAME, grades) for query_id, grades in qrels.items()}
        column = np.zeros(len(position))
        try:
            # each alone: together, some are computed with the gains of others, or lose their values to one of the same name
            for metric in library.iter_calc([theirs], judged, run):
                column[position[metric.query_id]] = metric.value
        except Exception as error:  # of its programs and libraries
            raise ConfigurationError(
                f"ir-measures cannot compute {name} for one of these lists ({error}); choose another measure"
            ) from None
        wrong = column[~((column >= 0) & (column <= 1 + 1e-9))]
        if len(wrong):
            raise ConfigurationError(
                f"{name} is {wrong[0]:g} for a query; measures that are compared are between 0 and 1, so choose another"
            )
        values[name] = column
    return values


def _bearable(measure: str, grades: Mapping[str, int]) -> dict[str, int]:
    """Return the grades that a measure of ir-measures can bear; all it has of a query without any is one of 0."""
    if measure == "Judged":
        return dict(grades)
    lowest = -1 if measure == "infAP" and max(grades.values(), default=0) > 0 else 0
    return {name: max(lowest, grade) for name, grade in grades.items() if lowest or grade >= 0} or {"none": 0}
