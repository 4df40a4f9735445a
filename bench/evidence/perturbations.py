"""Generated wrong claims: another number, another name, the opposite; and claims with an unrelated passage.

They are made from supported pairs, so that a model learns to check what a claim says and not only its subject. As many
contradicted claims are turned into supported ones ("was not ..."), so that a "not" alone decides nothing.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from nlp_retrieval.systems.evidence.lookups.denial import negated as denied_in
from nlp_retrieval.systems.evidence.lookups.names import missing_names, names_of
from nlp_retrieval.systems.evidence.lookups.words import lines_of
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair
from nlp_retrieval.text import Number, agreeing, numbers_of, words_of

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|has|have|had|does|did|do|may|might|should|must)\b(?! not|n['\u2019]t)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b[A-Za-z]+\b")
_SPELLED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_TRIES = 20


def with_perturbations(pairs: Sequence[JudgedPair], share: float, rng: random.Random) -> list[JudgedPair]:
    """Return judged pairs followed by generated ones.

    Args:
        pairs: judged ones.
        share: of the supported pairs from which each kind of pair is generated; 0 for none.
        rng: chooses them.
    """
    supported = [pair for pair in pairs if pair.label == "support"]
    names = _names(pairs)
    perturbed: list[JudgedPair | None] = []
    for pair in supported:
        if rng.random() < share:
            perturbed.append(changed_number(pair, rng))
        if rng.random() < share:
            perturbed.append(swapped_name(pair, names[pair.collection], rng))
        if rng.random() < share:
            perturbed.append(negated(pair, rng))
    perturbed += [negated(pair, rng) for pair in pairs if pair.label == "contradict" and rng.random() < share]
    # a collection without neutral pairs gets claims with unrelated passages
    neutral = Counter(pair.collection for pair in pairs if pair.label == "neutral")
    by_word = _by_word(pairs)
    for pair in pairs:
        if rng.random() < (0.1 if neutral[pair.collection] > 200 else share / 2):
            near = [
                other
                for word in sorted(set(words_of(pair.claim)), key=lambda word: (len(word), word))[-4:]
                for other in by_word.get(word, ())
            ]
            perturbed.append(elsewhere(pair, rng.choice(near if near and rng.random() < 0.6 else pairs)))
    return [*pairs, *(pair for pair in perturbed if pair is not None)]


def changed_number(pair: JudgedPair, rng: random.Random) -> JudgedPair | None:
    """Return a supported pair with one number that its passage has replaced by another; None if there is none."""
    numbers_there = numbers_of(pair.passage)
    usable = [number for number in numbers_of(pair.claim) if any(agreeing(number, other) for other in numbers_there)]
    if not usable:
        return None
    number = rng.choice(usable)
    inside = [other.written for other in numbers_there if other.percent == number.percent and not agreeing(number, other)]
    replacement = rng.choice(inside) if inside and rng.random() < 0.3 else _other(number, rng)
    if replacement is None:
        return None
    if replacement not in inside and any(
        agreeing(other, present) for other in numbers_of(replacement) for present in numbers_there
    ):
        return None
    claim = pair.claim[: number.begin] + replacement + pair.claim[number.begin + len(number.written) :]
    return _perturbed(pair, claim, "contradict", "number")


def swapped_name(pair: JudgedPair, names: Sequence[str], rng: random.Random) -> JudgedPair | None:
    """Return a supported pair with a name of its passage replaced by one that is not there; None if there is none."""
    usable = [span for span in names_of(pair.claim) if not missing_names(pair.claim[span[0] : span[1]], pair.passage)]
    if not usable or not names:
        return None
    begin, end = rng.choice(usable)
    name = pair.claim[begin:end]
    for _ in range(_TRIES):
        other = rng.choice(names)
        alike = len(other.split()) == len(name.split()) and other.isupper() == name.isupper()
        if alike and other.lower() not in pair.passage.lower() and other.lower() != name.lower():
            return _perturbed(pair, pair.claim[:begin] + other + pair.claim[end:], "contradict", "name")
    return None


def negated(pair: JudgedPair, rng: random.Random) -> JudgedPair | None:
    """Return a pair with the opposite claim and the opposite label; None if it cannot be made."""
    if pair.label not in {"support", "contradict"} or denied_in(pair.claim):
        return None
    words = [match for match in _WORD.finditer(pair.claim) if match[0].lower() in _antonyms()]
    auxiliary = _AUXILIARY.search(pair.claim)
    if words and pair.label == "support" and (auxiliary is None or rng.random() < 0.5):
        match = rng.choice(words)
        other = rng.choice(sorted(_antonyms()[match[0].lower()]))
        claim = pair.claim[: match.start()] + (other.capitalize() if match[0].istitle() else other) + pair.claim[match.end() :]
    elif auxiliary is not None:
        claim = f"{pair.claim[: auxiliary.end()]} not{pair.claim[auxiliary.end() :]}"
    else:
        return None
    return _perturbed(pair, claim, "contradict" if pair.label == "support" else "support", "negated")


def elsewhere(pair: JudgedPair, other: JudgedPair) -> JudgedPair | None:
    """Return a claim with the passage of another pair, as neutral; None if both are of one family."""
    if pair.family == other.family:
        return None
    return replace(other, claim=pair.claim, label="neutral", rationale=(), pair_id=f"{pair.pair_id}/elsewhere")


def _names(pairs: Sequence[JudgedPair]) -> dict[str, list[str]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        names[pair.collection] |= {pair.claim[begin:end] for begin, end in names_of(pair.claim)}
    return {collection: sorted(known) for collection, known in names.items()} | {
        pair.collection: [] for pair in pairs if pair.collection not in names
    }


def _by_word(pairs: Sequence[JudgedPair]) -> dict[str, list[JudgedPair]]:
    """Return pairs by the rare words of their claims."""
    pairs_of: defaultdict[str, list[JudgedPair]] = defaultdict(list)
    for pair in pairs:
        for word in set(words_of(pair.claim)):
            pairs_of[word].append(pair)
    return {word: members for word, members in pairs_of.items() if 2 <= len(members) <= 50}


def _perturbed(pair: JudgedPair, claim: str, label: str, how: str) -> JudgedPair:
    return replace(pair, claim=claim, label=label, pair_id=f"{pair.pair_id}/{how}")  # type: ignore[arg-type]


def _other(number: Number, rng: random.Random) -> str | None:
    """Return another number in the same notation."""
    if not any(letter.isdigit() for letter in number.written):
        spelled = [word for word in _SPELLED[1:] if word != number.written.lower()]
        if number.written.lower() not in _SPELLED:
            return None
        other = rng.choice(spelled)
        return other.capitalize() if number.written.istitle() else other
    digits = re.search(r"\d[\d,]*(?:\.\d+)?", number.written)
    if digits is None:
        return None
    plain = digits[0].replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    year = plain.isdigit() and 1000 <= value <= 2100 and "," not in digits[0]
    if year:
        changed = value + rng.choice([-1, 1]) * rng.choice([1, 2, 3, 5, 7, 10, 12, 20, 50])
    else:
        changed = value * rng.choice([0.1, 0.5, 0.75, 1.25, 1.5, 2, 3, 10]) if value else float(rng.randint(1, 9))
        changed = changed if decimals else float(round(changed))
    text = f"{changed:,.{decimals}f}" if "," in digits[0] else f"{changed:.{decimals}f}"
    if text == digits[0] or changed <= 0:
        return None
    return number.written[: digits.start()] + text + number.written[digits.end() :]


@cache
def _antonyms() -> dict[str, set[str]]:
    """Return the opposites of each word, as they are listed."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for line in lines_of("opposites.txt"):
        left, right = (side.split() for side in line.split("/"))
        for one, other in product(left, right):
            found[one].add(other)
            found[other].add(one)
    return dict(found)
