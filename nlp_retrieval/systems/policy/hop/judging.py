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

import re
from dataclasses import dataclass
from functools import cache
from itertools import islice

from nlp_retrieval.systems.policy.hop.relation import Relation
from nlp_retrieval.text import FUNCTION_WORDS, Quantity, quantities_of, same_measure, same_value, sentences_of

_MOST_SENTENCES, _MOST_CHARACTERS = 30, 20_000
_WORD = re.compile(r"[^\W\d_]{2,}")
_CLAUSE = re.compile(r"[,;:()\u2013\u2014](?!\d)")
_GENERAL = frozenset(
    "reach achieve plan install total expect aim set target goal project foresee estimate amount account country government "
    "level new newly now also current currently still further overall commit commitment pledge want intend seek least most "
    "more than around about approximate nearly almost only already remain stand come become make give show says say according "
    "year end well up down near over under per capita share number value figure".split()
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|cannot|without)\b|n['\u2019]t\b", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")
_UNITS = frozenset(
    "percent cent per million billion trillion thousand mt gt kt tco mtco gtco ktco co eq mw gw kw tw mwh gwh twh ha usd"
    " eur".split()
)

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
class Statement:
    """A sentence.

    Args:
        begin: of the sentence in the passage, in characters.
        end: of the sentence.
        text: the sentence.
        terms: stems of its words without numbers, units, function words and parentheses.
        names: its capitalised words except the first of the sentence, as stems.
        quantities: its numbers with units, with positions in the sentence.
        negated: whether it holds a negation.
        explains: whether it holds explaining words.
        cause: the terms of a cause that it states; may be empty.
        effect: the terms of the effect of that cause.
    """

    begin: int
    end: int
    text: str
    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    negated: bool
    explains: bool
    cause: frozenset[str]
    effect: frozenset[str]


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the sentences of a passage, at most 30, of its first 20,000 characters."""
    text = text[:_MOST_CHARACTERS]
    return tuple(_statement(text, begin, end) for begin, end in islice(sentences_of(text), _MOST_SENTENCES))


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in FUNCTION_WORDS and word not in _UNITS)


def overlap_of(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the terms of the shorter that the longer has too; 0 if one has none."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def clause_terms(statement: Statement, quantity: Quantity, besides: frozenset[str]) -> frozenset[str]:
    """Return the subject of a quantity: the terms of its clause, without general words.

    Args:
        statement: a sentence.
        quantity: one of its quantities.
        besides: further terms to ignore, such as those of the subject of the whole document.
    """
    begin, end = 0, len(statement.text)
    for match in _CLAUSE.finditer(statement.text):
        if match.end() <= quantity.begin:
            begin = match.end()
        elif match.start() >= quantity.end:
            end = match.start()
            break
    return terms_of(statement.text[begin:end]) - _general_stems() - besides


@cache
def _general_stems() -> frozenset[str]:
    return frozenset(map(_stem, _GENERAL)) | _GENERAL


def _statement(text: str, begin: int, end: int) -> Statement:
    sentence = text[begin:end]
    words = list(_WORD.finditer(sentence))
    names = frozenset(
        _stem(word[0].casefold()) for word in words[1:] if word[0][0].isupper() and word[0].casefold() not in _UNITS
    )
    quantities = tuple(quantities_of(sentence))
    negated, explains = (pattern.search(sentence) is not None for pattern in (_NEGATION, _EXPLAINS))
    return Statement(
        begin, end, sentence, terms_of(sentence), names, quantities, negated, explains, *_cause_and_effect(sentence)
    )


def _cause_and_effect(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    backward = _COMES_FROM.search(sentence)
    match = backward or _LEADS_TO.search(sentence)
    if match is None:
        return frozenset(), frozenset()
    before, after = terms_of(sentence[: match.start()]), terms_of(sentence[match.end() :])
    return (after, before) if backward else (before, after)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


_SEMANTIC, _PATTERN, _NEARNESS = 0.3, 0.5, 0.2
_CLEAR, _SAME_WORDS, _TOUCHES, _ONE_SIDE = 0.8, 0.8, 0.4, 0.5
_FEWEST_ABOUT, _FEWEST, _FEWEST_SAME = 2, 3, 5


@dataclass(frozen=True)
class Passage:
    """A passage, read for its relations."""

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
    relations = []
    for (kind, along), (pattern, source, target) in best.items():
        ends = (one.row, other.row) if along else (other.row, one.row)
        spans = (source.begin, source.end), (target.begin, target.end)
        relations.append(Relation(*ends, kind, confidence_of(semantic, pattern, nearness), *spans))
    return relations


def _contradicts(first: Statement, second: Statement, subject: frozenset[str]) -> bool:
    """Return whether two sentences on one subject give different values of a measure."""
    if first.negated != second.negated or _differ(first.names, second.names):
        return False
    for mine, its in _differing_quantities(first.quantities, second.quantities):
        about = clause_terms(first, mine, subject)
        if len(about) >= _FEWEST_ABOUT and about == clause_terms(second, its, subject):
            return True
    return False


def _differ(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether each has a name that the other lacks: two projects, two places."""
    return bool(first - second) and bool(second - first)


def _differing_quantities(first: tuple[Quantity, ...], second: tuple[Quantity, ...]) -> list[tuple[Quantity, Quantity]]:
    """Return quantities of one measure with different values, without those that both sentences have."""
    mine = [
        quantity for quantity in first if not any(same_measure(quantity, its) and same_value(quantity, its) for its in second)
    ]
    its = [quantity for quantity in second if not any(same_measure(quantity, my) and same_value(quantity, my) for my in first)]
    return [(my, your) for my in mine for your in its if same_measure(my, your) and my.bound == your.bound]


def _agree(first: Statement, second: Statement) -> bool:
    """Return whether each has all quantities of the other, and not only one is negated."""
    if first.negated != second.negated or _differ(first.names, second.names):
        return False
    pairs = ((first.quantities, second.quantities), (second.quantities, first.quantities))
    return all(
        any(same_measure(quantity, its) and same_value(quantity, its) for its in there)
        for mine, there in pairs
        for quantity in mine
    )


def _caused(statement: Statement, others: tuple[Statement, ...]) -> list[tuple[str, bool, float, Statement, Statement]]:
    """Return the relations of a sentence with a cause to other sentences, each with whether its passage is the cause."""
    if not statement.effect and not statement.cause:
        return []
    relations = []
    for other in others:
        for side, along in ((statement.effect, True), (statement.cause, False)):
            if len(side & other.terms) >= _FEWEST and (overlap := overlap_of(side, other.terms)) >= _ONE_SIDE:
                ends = (statement, other) if along else (other, statement)
                relations.append(("CAUSES", along, overlap, *ends))
    return relations
