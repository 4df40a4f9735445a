"""Relations between two passages, judged sentence by sentence.

* CONTRADICTS: two sentences give different values of the same measure - unit, year and baseline - in clauses about the same
  subject: they have the same terms except for general words ("reach", "plan", "total"). Two passages that both say "by 2030" do
  not contradict each other, nor do tonnes of one gas and tonnes of another, nor a value in a later version: that is a change.
* SUPPORTS: two sentences say the same, with the same quantities, and not only one of them is negated.
* EXPLAINS: an explaining sentence ("because", "that is", "for example", ...) is about the subject of the other.
* CAUSES: a sentence says that one thing leads to another, and one of the two is the subject of the other passage.

All but CONTRADICTS need English words; texts in other languages get no such relations.
"""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.systems.policy.relations.relation import Relation
from nlp_retrieval.systems.policy.relations.statements import Statement, clause_terms, overlap_of
from nlp_retrieval.text import Quantity, same_measure, same_value

__all__ = ["Passage", "confidence_of", "relations_between"]

_SEMANTIC, _PATTERN, _NEARNESS = 0.3, 0.5, 0.2
_CLEAR, _SAME_WORDS, _TOUCHES, _ONE_SIDE = 0.8, 0.8, 0.4, 0.5
_FEWEST_ABOUT, _FEWEST, _FEWEST_SAME = 2, 3, 5


@dataclass(frozen=True)
class Passage:
    """A passage, read for its relations.

    Args:
        row: of the item.
        statements: its sentences.
    """

    row: int
    statements: tuple[Statement, ...]


def confidence_of(semantic: float, pattern: float, nearness: float) -> float:
    """Return the confidence of a relation: .3 semantic, .5 pattern and .2 nearness, each 0 to 1.

    Args:
        semantic: cosine of the passages.
        pattern: how clearly the texts show it.
        nearness: of the two in their document; .1 in different documents.
    """
    parts = (min(1.0, max(0.0, part)) for part in (semantic, pattern, nearness))
    return round(sum(weight * part for weight, part in zip((_SEMANTIC, _PATTERN, _NEARNESS), parts, strict=True)), 6)


def relations_between(
    one: Passage, other: Passage, semantic: float, nearness: float, subject: frozenset[str] | None
) -> list[Relation]:
    """Return the relations between two passages, at most one of each type and direction.

    Args:
        one: a passage.
        other: another, in the same version of the same family, or of another family.
        semantic: cosine of the two.
        nearness: see :func:`confidence_of`.
        subject: the terms of their family's name, if they are of one family; else None: statements on other subjects do not
            contradict.
    """
    best: dict[tuple[str, bool], tuple[float, Statement, Statement]] = {}

    def keep(kind: str, along: bool, pattern: float, source: Statement, target: Statement) -> None:
        if pattern > best.get((kind, along), (0.0,))[0]:
            best[kind, along] = (pattern, source, target)

    for mine in one.statements:
        for its in other.statements:
            overlap = overlap_of(mine.terms, its.terms)
            shared = len(mine.terms & its.terms)
            if subject is not None and mine.quantities and its.quantities and _contradicts(mine, its, subject):
                keep("CONTRADICTS", True, max(overlap, _CLEAR), mine, its)
            if shared < _FEWEST:
                continue
            if overlap >= _SAME_WORDS and shared >= _FEWEST_SAME and _agree(mine, its):
                keep("SUPPORTS", True, overlap, mine, its)
            if _TOUCHES <= overlap < _SAME_WORDS:
                if mine.explains:
                    keep("EXPLAINS", True, overlap, mine, its)
                if its.explains:
                    keep("EXPLAINS", False, overlap, its, mine)
        for kind, along, pattern, source, target in _caused(mine, other.statements):
            keep(kind, along, pattern, source, target)
    for its in other.statements:
        for kind, along, pattern, source, target in _caused(its, one.statements):
            keep(kind, not along, pattern, source, target)
    found = []
    for (kind, along), (pattern, source, target) in best.items():
        ends = (one.row, other.row) if along else (other.row, one.row)
        spans = (source.begin, source.end), (target.begin, target.end)
        found.append(Relation(*ends, kind, confidence_of(semantic, pattern, nearness), *spans))
    return found


def _contradicts(one: Statement, other: Statement, subject: frozenset[str]) -> bool:
    """Return whether two sentences on one subject give different values of a measure."""
    if one.negated != other.negated or _differ(one.names, other.names):
        return False
    for mine, its in _otherwise(one.quantities, other.quantities):
        about = clause_terms(one, mine, subject)
        if len(about) >= _FEWEST_ABOUT and about == clause_terms(other, its, subject):
            return True
    return False


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether each has a name that the other lacks: two projects, two places."""
    return bool(one - other) and bool(other - one)


def _otherwise(one: tuple[Quantity, ...], other: tuple[Quantity, ...]) -> list[tuple[Quantity, Quantity]]:
    """Return quantities of one measure with different values, without those that both sentences have."""
    mine = [quantity for quantity in one if not any(same_measure(quantity, its) and same_value(quantity, its) for its in other)]
    its = [quantity for quantity in other if not any(same_measure(quantity, my) and same_value(quantity, my) for my in one)]
    return [(my, your) for my in mine for your in its if same_measure(my, your) and my.bound == your.bound]


def _agree(one: Statement, other: Statement) -> bool:
    """Return whether each has all quantities of the other, and not only one is negated."""
    if one.negated != other.negated or _differ(one.names, other.names):
        return False
    pairs = ((one.quantities, other.quantities), (other.quantities, one.quantities))
    return all(
        any(same_measure(quantity, its) and same_value(quantity, its) for its in there)
        for mine, there in pairs
        for quantity in mine
    )


def _caused(statement: Statement, others: tuple[Statement, ...]) -> list[tuple[str, bool, float, Statement, Statement]]:
    """Return the relations of a sentence with a cause to other sentences, each with whether its passage is the cause."""
    if not statement.effect and not statement.cause:
        return []
    found = []
    for other in others:
        for side, along in ((statement.effect, True), (statement.cause, False)):
            if len(side & other.terms) >= _FEWEST and (overlap := overlap_of(side, other.terms)) >= _ONE_SIDE:
                ends = (statement, other) if along else (other, statement)
                found.append(("CAUSES", along, overlap, *ends))
    return found
