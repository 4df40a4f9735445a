"""Checks of a claim against a source without a model: numbers, dates, names, negation, opposites, quotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from nlp_retrieval.systems.evidence.lookups.contradictions import Denial, Opposite, denial, negated, of_another, opposite_words
from nlp_retrieval.systems.evidence.lookups.names import missing_names, names_of, replaced_things
from nlp_retrieval.systems.evidence.lookups.numbers import MissingFigures, are_of_one_kind, is_year, misplaced, missing_figures
from nlp_retrieval.systems.evidence.lookups.quotations import missing_quotations
from nlp_retrieval.systems.evidence.lookups.words import (
    Sentence,
    Span,
    content,
    longest_run,
    nearest_sentence,
    sentences,
    share,
    stemmed,
)
from nlp_retrieval.text import agreeing, numbers_of, words_of

Family = Literal["numbers", "binding", "negation", "opposites", "who", "quotations", "kinds", "names"]
FAMILIES: tuple[Family, ...] = ("numbers", "binding", "negation", "opposites", "who", "quotations", "kinds", "names")
Reason = Literal[
    "", "contradicted", "other number", "unclear number", "quote not found", "other entity", "not judged", "not found"
]

_SAME_MATTER, _AROUND_NAME = 0.6, 0.6


@dataclass(frozen=True)
class Objection:
    """Something that a lookup has against a claim; it refutes it if the source says otherwise, rather than lacks it."""

    family: Family
    reason: Reason
    detail: str
    refutes: bool = False


@dataclass(frozen=True)
class Checks:
    """What a passage has of a claim, and the span of the sentence that denies it, or else is nearest."""

    signals: dict[str, float]
    sentence: Span
    names: list[str]
    figures: MissingFigures
    denial: Denial
    opposite: Opposite | None
    other_way: tuple[Sentence, str] | None
    nearest: Sentence | None


@lru_cache(16)  # a verifier and an audit check the same pair
def check(claim: str, passage: str) -> Checks:
    """Check a claim against a passage."""
    wanted, there = content(claim), sentences(passage)
    nearest = nearest_sentence(wanted, there)
    overlap, nearest_overlap = share(wanted, content(passage)), share(wanted, nearest.content) if nearest else 0.0
    run = longest_run(words_of(claim), words_of(nearest.text)) if nearest else 0.0
    pairs, pairs_there = set(pairwise(stemmed(claim))), set(pairwise(stemmed(passage)))
    names, figures = missing_names(claim, passage), missing_figures(claim, passage)
    opposite, denied, other_way = opposite_words(claim, there), denial(claim, there), of_another(claim, there)
    deciding = (denied.says and denied.sentence) or (opposite and opposite.sentence) or (other_way and other_way[0]) or nearest
    signals = {
        "overlap": overlap,
        "sentence_overlap": nearest_overlap,
        "bigrams": len(pairs & pairs_there) / len(pairs) if pairs else 0.0,
        "longest_run": run,
        "verbatim": float(run == 1.0),
        "numbers_missing": len(figures.numbers) / max(1, len(numbers_of(claim))),
        "dates_missing": len(figures.dates) / max(1, figures.n_dates),
        "names_missing": len(names) / max(1, len(names_of(claim))),
        "negation": denied.ahead,
        "opposite": opposite.around if opposite else 0.0,
        "claim_negated": float(bool(negated(claim))),
    }
    span = deciding.span if deciding else (0, 0)
    return Checks(signals, span, names, figures, denied, opposite, other_way, nearest)


@dataclass(frozen=True)
class LookedUp:
    """What is against a claim, the clearest first, the names that its source lacks, and how its numbers were computed."""

    findings: tuple[Objection, ...]
    missing_names: tuple[str, ...]
    computed: tuple[str, ...]

    @property
    def is_against(self) -> bool:
        """Return whether a sentence of the source contradicts the claim: about the same subject, in the same relation."""
        return not self.missing_names and any(finding.refutes for finding in self.findings)


def looked_up(claim: str, read: str, whole: str, *, quoted: bool = False) -> LookedUp:
    """Look up a claim in the part of its source that was read; ``whole`` may have what is missing there."""
    checks = check(claim, read)
    figures = checks.figures
    if figures.numbers or figures.dates:
        in_whole = missing_figures(claim, whole)
        figures = in_whole._replace(computed=figures.computed or in_whole.computed)
    names = checks.names and missing_names(claim, whole)
    things = replaced_things(claim, read) and replaced_things(claim, whole)
    all_names = (*names, *(thing for thing in things if thing not in names))
    findings = [_missing(claim, figures, all_names, checks)] if figures.dates or figures.numbers else []
    if wrong := misplaced(claim, read) and misplaced(claim, whole):
        says = " and ".join(f"where this says {number}, the source has {other}" for number, other in wrong)
        findings.append(Objection("binding", "other number", says, True))
    if denied := checks.denial.says:
        findings.append(Objection("negation", "contradicted", f"the source says {denied}", checks.denial.same))
    if opposite := checks.opposite:
        same, says = opposite.around >= _SAME_MATTER, f"with '{opposite.other}' in place of '{opposite.word}'"
        detail = f"the source says this {says}" if same else f"the source has something close to this, {says}"
        findings.append(Objection("opposites", "contradicted", detail, same))
    if checks.other_way:
        findings.append(Objection("who", "contradicted", f"the source says this {checks.other_way[1]}", True))
    for words in missing_quotations(claim, whole, all_quoted=quoted):
        detail = f"the source does not have these words: \u201c{words}\u201d"
        findings.append(Objection("quotations", "quote not found", detail))
    if all_names:
        detail, rest = f"the source does not name {listed(all_names)}", content(claim).difference(*map(content, all_names))
        if things:
            findings.append(Objection("kinds", "other entity", detail))
        neighbours = [one.content | other.content for one, other in pairwise(sentences(read))] or [content(read)]
        if names and max(share(rest, both) for both in neighbours) >= _AROUND_NAME:
            findings.append(Objection("names", "other entity", detail))
        # the source may be about something else
        findings.sort(key=lambda finding: finding.family in {"binding", "negation", "opposites", "who"})
    return LookedUp(tuple(findings), all_names, figures.computed)


def _missing(claim: str, figures: MissingFigures, names: Sequence[str], checks: Checks) -> Objection:
    missing = figures.dates + figures.numbers
    if len(figures.unclear) == len(missing):
        number, other = figures.unclear[0]
        return Objection("numbers", "unclear number", f"{number} and the source's {other} may be the same or not: compare them")
    nor = f", and does not name {listed(names)}" if names else ""
    refutes = not figures.unclear and _has_another(claim, missing, checks.nearest)
    return Objection("numbers", "other number", f"the source does not have {listed(missing)}{nor}", refutes)


def _has_another(claim: str, missing: Sequence[str], sentence: Sentence | None) -> bool:
    """Return whether a sentence about the same matter has another number of the kind of one that is missing."""
    if sentence is None or share(content(claim), sentence.content) < _SAME_MATTER:
        return False
    said, there = numbers_of(claim), numbers_of(sentence.text)
    years, years_there = ({number.value for number in numbers if is_year(number)} for numbers in (said, there))
    if years and years_there and years.isdisjoint(years_there) and len(years) < len(said):
        return False  # figures of other years
    others = [other for other in there if not any(agreeing(number, other) for number in said)]
    lacking = [number for number in said if any(number.written in text for text in missing)]
    return any(are_of_one_kind(number, other) for number in lacking for other in others)


def listed(words: Sequence[str]) -> str:
    """Return up to three words, and how many more there are."""
    shown = ", ".join(words[:3])
    return f"{shown} and {len(words) - 3} more" if len(words) > 3 else shown
