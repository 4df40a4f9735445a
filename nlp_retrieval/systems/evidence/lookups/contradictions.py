"""What a sentence of a source says against a claim: that it is not so, the opposite of it, or the same of somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.words import (
    KNOWN,
    Sentence,
    clauses_of,
    content,
    is_form,
    lines_of,
    pattern,
    share,
    stemmed,
)
from nlp_retrieval.text import as_latin, stems_of_language

# A negation that a claim has and its source does not, or the other way round, and a change that the source denies.

_WITH, _DENYING, _NO_DENIAL = re.compile(r"\bwith\b", re.IGNORECASE), pattern("denying"), pattern("no denial")
_IN_PART = re.compile(r"\bbut not\b|,\s?not\b|\brather than\b", re.IGNORECASE)
_POINTS_BACK = re.compile(r"\A\W*(?:the|this|these|that|no)\b|\b(?:it|its|they|them|their|he|she|his|her)\b", re.IGNORECASE)
_NOT, _CHANGING, _WORD_OF_CHANGE = pattern("not"), pattern("changing"), pattern("changing", r"(?:{})\Z")
_DENIED_CHANGE = re.compile(
    rf"(?:{_NOT.pattern}|n['\u2019]t)\s(?:[\w-]+\s){{0,4}}?{_CHANGING.pattern}|{pattern('unchanged').pattern}"
    rf"|{_CHANGING.pattern}\s(?:[\w-]+\s){{0,6}}?{pattern('denied after').pattern}",
    re.IGNORECASE,
)
_NOT_UNTIL = re.compile(r"(?:\bnot|n['\u2019]t)\s(?:[\w-]+\s){0,4}?until\b", re.IGNORECASE)
_COMPARED = frozenset(
    "statistical statistic measur compar no frequent common likel often find show made make evidenc rate".split()
)
_NEXT = 40
_WITHOUT, _WITH_NEGATION, _TURNED = "this without the negation", "this with a negation", "this the other way round"
_SAME_MATTER, _HALF, _MOST_DENIED, _LEAD = 0.7, 0.5, 0.55, 0.15
_BY_REFERENCE, _ABOUT_CLAIM = 0.8, 0.25
"""Most that a sentence is alike with a claim by the words of the one before it, and how much of it the claim says at least."""


class Denial(NamedTuple):
    """A sentence that differs from a claim in what it denies, by how much, and how; ``same`` if one must be wrong."""

    ahead: float = 0.0
    sentence: Sentence | None = None
    says: str = ""
    same: bool = False


def denial(claim: str, sentences: Sequence[Sentence]) -> Denial:
    """Return the sentence nearest to a claim that denies it, or what it denies; it says most of what the claim says."""
    wanted = frozenset(word for word in content(claim) if not word.isdigit())  # a date may be elsewhere
    mine = negated(claim)
    best, alike, before = Denial(), 0.0, frozenset[str]()
    for sentence in (each for each in sentences if not each.is_heading):
        own = share(wanted, sentence.content)
        refers = sentence.content | before if _POINTS_BACK.search(sentence.text) else sentence.content
        is_neither = _says_by_denying(claim, sentence.text) or _NOT_UNTIL.search(sentence.text)
        says, common = ("", 0.0) if is_neither else _compared(claim, mine, wanted, sentence, refers)
        before = frozenset() if negated(sentence.text) else sentence.content
        if not says:
            alike = max(alike, common, own)
        elif best.sentence is None or common > best.ahead:
            best = Denial(common, sentence, says)
    if best.sentence is None:
        return best
    ahead, least, says = max(0.0, best.ahead - alike), _SAME_MATTER, best.says
    if says == _WITHOUT and ("" in mine or any(_has(sentence.content, mine) for sentence in sentences)):
        least = _HALF
    elif says == _WITHOUT:  # a source that has nowhere what the claim denies may say so in other words
        least, says = _MOST_DENIED, f"most of {_WITHOUT}"
    return Denial(ahead, best.sentence, says if best.ahead >= least and ahead >= _LEAD else "", best.ahead >= _SAME_MATTER)


def _compared(
    claim: str, mine: set[str], wanted: frozenset[str], sentence: Sentence, refers: frozenset[str]
) -> tuple[str, float]:
    """Return how a sentence differs from a claim in what it denies, if it does, and its share of the claim's words."""
    theirs = negated(sentence.text)
    common = share(wanted, sentence.content if "" in theirs else refers)
    if denies_change(sentence.text):
        denying = (clause for clause in clauses_of(sentence.text) if denies_change(clause))
        rest, clause = _unchanging(wanted), next(denying, sentence.text).strip(" .")
        of_clause = _unchanging(content(clause))
        subject = _unchanging(content(_DENIED_CHANGE.split(clause)[0])) or of_clause
        is_about = not subject or _POINTS_BACK.search(clause) or max(share(subject, wanted), share(rest, of_clause)) > _HALF
        is_all = of_clause <= wanted and stemmed(clause)[:1] == stemmed(claim)[:1]  # "Prices did not change."
        about = 1.0 if is_all else share(rest, refers) if is_about else 0.0
        says = "" if denies_change(claim) else f"that this is not so: \u201c{clause}\u201d"
        if not says or (not mine and len(rest) < len(wanted) and _CHANGING.search(claim)):
            return says, about
    if "" in mine & theirs:
        mine, theirs = mine - {""}, theirs - {""}
    if mine and theirs and mine <= theirs | _after_negations(sentence.text):
        return "", min(common, _BY_REFERENCE) if share(sentence.content, wanted) >= _ABOUT_CLAIM else 0.0
    turned = theirs - {""}
    if mine and turned and mine.isdisjoint(theirs) and mine <= sentence.content and turned <= wanted:
        return (_TURNED, common) if _IN_PART.search(claim) else ("", 0.0)  # "farmers, not cities" and "cities, not farmers"
    left, negates = mine - theirs, bool(theirs - mine) and _negates(wanted, sentence)
    if left and not negates and (left == mine or _has(sentence.content, left)):
        return _WITHOUT, common
    if negates and not mine and ("" in theirs or _has(wanted, theirs)):
        return _WITH_NEGATION, common
    return "", 0.0


def _has(words: frozenset[str], denied: set[str]) -> bool:
    """Return whether one of the words that are denied is among others, in any form."""
    return any(is_form(word, other) for word in denied if word for other in words)


def denies_change(text: str) -> bool:
    """Return whether a text denies a change, a difference or an effect: "the difference was not significant"."""
    return _DENIED_CHANGE.search(text) is not None


def _unchanging(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words - _COMPARED if not _WORD_OF_CHANGE.match(word))


def _negates(wanted: frozenset[str], sentence: Sentence) -> bool:
    """Return whether the clause with most of some words has a negation: "it carries 400 people, but not dogs" has none."""
    denied, clauses = negated(sentence.text), [(content(text), bool(negated(text))) for text in clauses_of(sentence.text)]
    # "taxes do not apply to homes, but apply to land"
    said = [(len(wanted & words) + (not negates and not denied.isdisjoint(words)) / 2, negates) for words, negates in clauses]
    return max(said)[1] if said else False


def _after_negations(text: str) -> frozenset[str]:
    """Return the words after the negation of each clause: "it did not relieve the pain" denies the pain, too."""
    halves = [_NOT.split(clause, 1) for clause in clauses_of(_NO_DENIAL.sub(" ", as_latin(text)))]
    return frozenset[str]().union(*(content(half[1]) for half in halves if half[1:]))


@lru_cache(256)  # a claim is compared with every sentence, and a sentence by several rules
def negated(text: str) -> set[str]:
    """Return what a text denies: the content word after each "not" or "failed to", stemmed; empty for "it is false that"."""
    latin = _NO_DENIAL.sub(" ", as_latin(text))
    compares = _WITH.search(latin) is not None
    words = set()
    for match in _NOT.finditer(latin.replace("\u2019", "'")):
        if not (compares and match[0].lower() == "without"):
            words.add(next(iter(stemmed(latin[match.end() : match.end() + _NEXT])), ""))
    return words | ({""} if _DENYING.search(latin) else set())


# Words of a claim of which a source has the opposite in their place.

_THAN = re.compile(r"\bthan\b", re.IGNORECASE)
_AGAINST = pattern("against", "(?:{})")
_REACH, _AROUND = 4, 0.6


class Opposite(NamedTuple):
    """A word of a claim, its opposite in a sentence, and how much of the rest of the claim that sentence has."""

    word: str
    other: str
    sentence: Sentence
    around: float


_ENGLISH = stems_of_language("english")


def _opposites() -> dict[str, set[str]]:
    """Return the stems of the opposites of each word, by its stem."""
    pairs: dict[str, set[str]] = {}
    for line in lines_of("opposites.txt"):
        left, right = ([_ENGLISH.stem(word) for word in side.split()] for side in line.split("/"))
        for one, other in product(left, right):
            pairs.setdefault(one, set()).add(other)
            pairs.setdefault(other, set()).add(one)
    return {word: others - {word} for word, others in pairs.items()}


OPPOSITES = _opposites()


def opposite_words(claim: str, sentences: Sequence[Sentence]) -> Opposite | None:
    """Return a word of a claim and its opposite in a sentence: between the same words, or amid most of the claim's others."""
    said = _by_stem(claim)
    looked_for, wanted = said.keys() & OPPOSITES.keys(), content(claim)
    best: Opposite | None = None
    for sentence in sentences if looked_for else ():
        than = [stemmed(after)[:1] for text in (claim, sentence.text) for after in _THAN.split(text, 1)[1:]]
        if than[1:] and than[0] != than[1]:  # "more men than women" is "fewer women than men"
            continue
        stems = _by_stem(sentence.text) if wanted & sentence.content else {}
        pairs = ((word, one) for word in sorted(looked_for - stems.keys()) for one in sorted(OPPOSITES[word]))
        for stem, other in pairs:
            if other not in stems or other in said or _denies(claim, said[stem]) != _denies(sentence.text, stems[other]):
                continue
            rest = wanted - content(said[stem])
            around = share(rest, sentence.content)
            ours, theirs = _sides(claim, said[stem]), _sides(sentence.text, stems[other])
            is_next = any(one[:1] == two[:1] != [] for one, two in zip(ours, theirs, strict=True))
            near = {*ours[0][:_REACH], *ours[1][:_REACH]} & {*theirs[0][: 2 * _REACH], *theirs[1][: 2 * _REACH]}
            in_place = around >= _AROUND or (is_next and len(near) > 1)
            if in_place and (best is None or around > best.around):
                best = Opposite(said[stem], stems[other], sentence, around)
    if best is None:
        return None
    alike = [sentence for sentence in sentences if share(wanted, sentence.content) >= best.around]
    stem = _ENGLISH.stem(best.word)
    return None if any(stem in _by_stem(sentence.text) for sentence in alike) else best


def _says_by_denying(claim: str, sentence: str) -> bool:
    """Return whether a sentence denies the opposite of a word of a claim, or the claim that of the sentence: "not rare"."""
    said, stems = _by_stem(claim), _by_stem(sentence)
    pairs = ((said[stem], stems[other]) for stem in said.keys() & OPPOSITES for other in OPPOSITES[stem] & stems.keys())
    return any(_denies(claim, word) != _denies(sentence, opposite) for word, opposite in pairs)


def _denies(text: str, word: str) -> bool:
    """Return whether a text has a negation right before a word."""
    denied = rf"(?:{_NOT.pattern}|n['\u2019]t)\s(?:[\w-]+\s){{0,2}}?{re.escape(word)}\b"
    return re.search(denied, text, re.IGNORECASE) is not None


def _sides(text: str, word: str) -> tuple[list[str], list[str]]:
    """Return the stems of the content words before the first place of a word and after it, the nearest first."""
    said = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    return ([], []) if said is None else (stemmed(text[: said.start()])[::-1], stemmed(text[said.end() :]))


@lru_cache(256)  # each sentence is compared for its denials and for its opposites, a claim with every sentence
def _by_stem(text: str) -> dict[str, str]:
    words = _ENGLISH.as_written(_AGAINST.sub("against", as_latin(text)))
    return {_ENGLISH.stem(word): word for word in reversed(words)}


# Who did what, and who said it.

_CLAUSE = re.compile(
    r"[,;:.()\u201c\u201d\"]|\b(?:while|but|although|though|whereas|because|which|who|that|and|when|after|before|if)\b",
    re.IGNORECASE,
)
_PRONOUNS, _NOT_AN_AGENT = frozenset(KNOWN["pronouns"].split()), frozenset(KNOWN["no agent"].split())
_ACCORDING, _SAYING = re.compile(r"\baccording to\s", re.IGNORECASE), pattern("saying")
_FORMS = [
    "|".join(rf"{word[:-1]}(?:e|es|ed|ing)" if word.endswith("e") else rf"{word}(?:s|ed|ing|es)?" for word in words.split())
    for words in KNOWN["acts"]
]
_ACT = re.compile(
    r"\b(?P<passive>(?:was|were|is|are|be|been|being)\s+(?:(?:not|\w+ly)\s+)?)?(?:"
    + "|".join(f"(?P<act{number}>{words})" for number, words in enumerate(_FORMS))
    + r")\b(?P<by>[^.;:,]{0,60}?\bby\b)?",
    re.IGNORECASE,
)
"""What somebody does to somebody; words that say the same are one group."""


def of_another(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    """Return the sentence that says a claim of somebody else, and who that is; None if there is none."""
    return _other_agent(claim, sentences) or _other_speaker(claim, sentences)


def _other_agent(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    claimed = list(_done(claim))
    there = [(sentence, *done) for sentence in sentences for done in _done(sentence.text)] if claimed else []
    for act, agent in claimed:
        others = [(sentence, other) for sentence, done, other in there if done == act]
        words = content(agent)
        if not others or any(words & content(other) for _, other in others):
            continue
        about = {word for word in content(claim) - words if not _ACT.fullmatch(word)}
        sentence, other = others[0]
        if any(words & one.content for one in sentences) and (not about or about & sentence.content):
            return sentence, f"of \u201c{other}\u201d"
    return None


def _done(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is done in a text, by the name of its group, and by whom."""
    for match in _ACT.finditer(text):
        if match["passive"] and (not match["by"] or " not " in match["passive"]):  # nobody does what is denied
            continue
        after, before = _CLAUSE.split(text[match.end() :])[0], _CLAUSE.split(text[: match.start()].rstrip(" ,"))[-1]
        if not match["passive"] and before.rstrip().endswith(" to"):  # "warm enough to support trees"
            continue
        if agent := _agent(after if match["passive"] else before):
            yield next(name for name, said in match.groupdict().items() if said and name.startswith("act")), agent


def _agent(text: str) -> str:
    """Return who is named in a part of a sentence; empty for a pronoun."""
    words = [word for word in re.split(r"\b(?:of|in|at|for|from)\b", text)[0].split() if word.lower() not in _NOT_AN_AGENT]
    is_named = words and not _PRONOUNS.intersection((words[0].lower(), words[-1].lower())) and stemmed(" ".join(words))
    return " ".join(words) if is_named else ""


def _other_speaker(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    """Return the sentence in which another says what a claim puts into somebody's mouth who is in the source too."""
    for speaker in _speakers(claim):
        words = content(speaker)
        matter = content(claim) - words - content(" ".join(match[0] for match in _SAYING.finditer(claim)))
        same = [sentence for sentence in sentences if matter and share(matter, sentence.content) >= _HALF]
        others = [(sentence, other) for sentence in same for other in _speakers(sentence.text)]
        known_there = any(words <= sentence.content for sentence in sentences)
        if known_there and others and not any(words & sentence.content for sentence in same):
            sentence, other = others[0]
            return sentence, f"of \u201c{other}\u201d"
    return None


def _speakers(text: str) -> list[str]:
    """Return who says something in a text: before or after a word of saying, or after "according to"."""
    parts = [_CLAUSE.split(text[match.end() :])[0] for match in _ACCORDING.finditer(text)]
    for match in _SAYING.finditer(text):
        parts += [_CLAUSE.split(text[: match.start()])[-1], _CLAUSE.split(text[match.end() :])[0] if match[0] == "said" else ""]
    return [agent for part in parts if (agent := _agent(part)) and len(agent.split()) <= 8]
