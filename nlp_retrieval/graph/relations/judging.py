"""Which relations hold between two passages, judged sentence by sentence.

* CONTRADICTS: two sentences about the same (most of their terms in common, neither naming what the other does not) give the
  same measure - unit, year and baseline - another value. Two passages that both say "by 2030" say nothing against each other,
  nor do a megatonne of one gas and one of another, nor a value in a later version: that is a change.
* SUPPORTS: a sentence says what the other says, with the same quantities, and neither denies it alone.
* EXPLAINS: a sentence that explains ("because", "that is", "for example", ...) is about what the other says.
* CAUSES: of a sentence that says that one thing leads to another, one side is what the other passage is about.

All but CONTRADICTS need words of English; other languages have relations of the other kinds only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nlp_retrieval.graph.relations.relation import Relation
from nlp_retrieval.graph.relations.statements import Statement, overlap_of, terms_of
from nlp_retrieval.text.quantities import Quantity, same_measure, same_value

__all__ = ["Passage", "confidence_of", "relations_between"]

_SEMANTIC, _PATTERN, _NEARNESS = 0.3, 0.5, 0.2
_SAME_MATTER, _SAME_WORDS, _TOUCHES = 0.7, 0.8, 0.4
_FEWEST, _FEWEST_SAME = 3, 5

_EXPLAINS = re.compile(
    r"\b(?:because|in other words|that is to say|i\.e\.|namely|which means|this means|the reason|for example|for instance|"
    r"is defined as|are defined as|refers? to|consists? of|in order to|so that)\b",
    re.IGNORECASE,
)
_LEADS_TO = re.compile(
    r"\b(?:leads? to|led to|leading to|results? in|resulted in|resulting in|causes?|caused|causing|drives?|drove|"
    r"brings? about|brought about|gives? rise to|triggers?|triggered|contributes? to|contributed to)\b(?!\s+by\b)",
    re.IGNORECASE,
)
_COMES_FROM = re.compile(
    r"\b(?:due to|owing to|because of|caused by|driven by|as a result of|as a consequence of|thanks to|attributable to|"
    r"stems? from|results? from|resulted from)\b",
    re.IGNORECASE,
)


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
        nearness: how near they stand in their document; .1 where they stand in different ones.
    """
    parts = (min(1.0, max(0.0, part)) for part in (semantic, pattern, nearness))
    return round(sum(weight * part for weight, part in zip((_SEMANTIC, _PATTERN, _NEARNESS), parts, strict=True)), 6)


def relations_between(one: Passage, other: Passage, semantic: float, nearness: float, same_subject: bool) -> list[Relation]:
    """Return the relations between two passages, at most one of each type and direction.

    Args:
        one: a passage.
        other: another, in the same version of the same family, or of another family.
        semantic: cosine of the two.
        nearness: see :func:`confidence_of`.
        same_subject: whether they are of one family; what is said of other subjects contradicts nothing.
    """
    best: dict[tuple[str, bool], tuple[float, Statement, Statement]] = {}

    def keep(kind: str, along: bool, pattern: float, source: Statement, target: Statement) -> None:
        if pattern > best.get((kind, along), (0.0,))[0]:
            best[kind, along] = (pattern, source, target)

    for mine in one.statements:
        for its in other.statements:
            overlap = overlap_of(mine.terms, its.terms)
            shared = len(mine.terms & its.terms)
            if shared < _FEWEST:
                continue
            if same_subject and overlap >= _SAME_MATTER and _contradicts(mine, its):
                keep("CONTRADICTS", True, overlap, mine, its)
            if overlap >= _SAME_WORDS and shared >= _FEWEST_SAME and _agree(mine, its):
                keep("SUPPORTS", True, overlap, mine, its)
            if overlap >= _TOUCHES:
                if _EXPLAINS.search(mine.text):
                    keep("EXPLAINS", True, overlap, mine, its)
                if _EXPLAINS.search(its.text):
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


def _contradicts(one: Statement, other: Statement) -> bool:
    """Whether two sentences about the same give one measure another value."""
    if one.negated != other.negated or _differ(one.names, other.names):
        return False
    return bool(_otherwise(one.quantities, other.quantities))


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each names something that the other does not: two projects, two places."""
    return bool(one - other) and bool(other - one)


def _otherwise(one: tuple[Quantity, ...], other: tuple[Quantity, ...]) -> list[tuple[Quantity, Quantity]]:
    """Quantities of one measure and another value; those that the other sentence has too are no sign of anything."""
    mine = [quantity for quantity in one if not any(same_measure(quantity, its) and same_value(quantity, its) for its in other)]
    its = [quantity for quantity in other if not any(same_measure(quantity, my) and same_value(quantity, my) for my in one)]
    return [(my, your) for my in mine for your in its if same_measure(my, your) and my.bound == your.bound]


def _agree(one: Statement, other: Statement) -> bool:
    """Whether every quantity of each stands in the other, and neither alone is negated."""
    if one.negated != other.negated or _differ(one.names, other.names):
        return False
    pairs = ((one.quantities, other.quantities), (other.quantities, one.quantities))
    return all(
        any(same_measure(quantity, its) and same_value(quantity, its) for its in there)
        for mine, there in pairs
        for quantity in mine
    )


def _caused(statement: Statement, others: tuple[Statement, ...]) -> list[tuple[str, bool, float, Statement, Statement]]:
    """What a sentence that tells of a cause says of other sentences: along where its passage causes theirs."""
    match = _COMES_FROM.search(statement.text) or _LEADS_TO.search(statement.text)
    if match is None:
        return []
    before, after = terms_of(statement.text[: match.start()]), terms_of(statement.text[match.end() :])
    cause, effect = (after, before) if _COMES_FROM.match(statement.text, match.start()) else (before, after)
    found = []
    for other in others:
        for side, along in ((effect, True), (cause, False)):
            if len(side & other.terms) >= _FEWEST and (overlap := overlap_of(side, other.terms)) >= _TOUCHES:
                ends = (statement, other) if along else (other, statement)
                found.append(("CAUSES", along, overlap, *ends))
    return found
