"""What a sentence of a source says against a claim: that it is not so, the opposite of it, or the same of somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.words import (
    KNOWN,
    WORD_OF_CHANGE,
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
_POINTS_BACK = pattern("points back", "(?:{})")
_NOT, _CHANGING, _ENDED = pattern("not"), pattern("changing"), pattern("ended")
_DENIED_CHANGE = re.compile(
    rf"(?:{_NOT.pattern}|n['\u2019]t)\s(?:[\w-]+\s){{0,4}}?{_CHANGING.pattern}|{pattern('unchanged').pattern}"
    rf"|{_CHANGING.pattern}\s(?:[\w-]+\s){{0,6}}?{pattern('denied after').pattern}",
    re.IGNORECASE,
)
_NOT_UNTIL = re.compile(r"(?:\bnot|n['\u2019]t)\s(?:[\w-]+\s){0,4}?until\b", re.IGNORECASE)
_COMPARED = frozenset(
    "statistical statistic measur compar no frequent common likel often find show made make evidenc rate marked sharp strong"
    " substantial considerab noticeab measurab practical virtual hard bare".split()
)
_NEXT = 40
_WITHOUT, _WITH_NEGATION = "this without the negation", "this with a negation"
_SAME_MATTER, _HALF, _MOST_DENIED, _LEAD = 0.7, 0.5, 0.55, 0.15


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
        is_ended = mine and not _has(sentence.content, mine) and _ENDED.search(sentence.text)  # "abandoned" is "not built"
        is_neither = is_ended or _says_by_denying(claim, sentence.text) or _NOT_UNTIL.search(sentence.text)
        says, common = ("", 0.0) if is_neither else _compared(claim, mine, wanted, sentence, refers)
        before = frozenset() if negated(sentence.text) else sentence.content
        if not says:
            alike = max(alike, common, own)
        elif best.sentence is None or common > best.ahead:
            best = Denial(common, sentence, says)
    ahead, least, says = max(0.0, best.ahead - alike), _SAME_MATTER, best.says
    if says == _WITHOUT and best.sentence and ("" in mine or _has(best.sentence.content, mine)):
        least = _HALF
    elif says == _WITHOUT:  # a sentence without the word that the claim denies may say so in other words
        least, says = _MOST_DENIED, f"most of {_WITHOUT}"
    return Denial(ahead, best.sentence, says if best.ahead >= least and ahead >= _LEAD else "", best.ahead >= _SAME_MATTER)


def _compared(
    claim: str, mine: set[str], wanted: frozenset[str], sentence: Sentence, refers: frozenset[str]
) -> tuple[str, float]:
    """Return how a sentence differs from a claim in what it denies, if it does, and its share of the claim's words."""
    theirs = negated(sentence.text)
    common = share(wanted, sentence.content if "" in theirs else refers)
    if denies_change(sentence.text):
        clauses = clauses_of(sentence.text)
        is_affirmed = wanted <= content(" ".join(clause for clause in clauses if not denies_change(clause)))
        rest, clause = _unchanging(wanted), next(filter(denies_change, clauses), sentence.text).strip(" .")
        of_clause = _unchanging(content(clause))
        subject = _unchanging(content(_DENIED_CHANGE.split(clause)[0]) or of_clause)
        is_about = not subject or _POINTS_BACK.search(clause) or max(share(subject, wanted), share(rest, of_clause)) > _HALF
        is_all = of_clause <= wanted and stemmed(clause)[:1] == stemmed(claim)[:1]  # "Prices did not change."
        about = 1.0 if is_all else share(rest, refers) if is_about else 0.0
        says = "" if is_affirmed or denies_change(claim) else f"that this is not so: \u201c{clause}\u201d"
        if not says or (not mine and _CHANGING.search(claim)):
            return says, about
    if "" in mine & theirs:
        mine, theirs = mine - {""}, theirs - {""}
    if mine and theirs and mine <= theirs | _after_negations(sentence.text):
        return "", common
    mine_aside, aside = _set_aside(claim), _set_aside(sentence.text)
    if aside and aside <= wanted:  # which says much, so half of the claim is enough
        says = "" if aside == mine_aside or (mine and not mine_aside) else _WITH_NEGATION
        return says, max(common, _SAME_MATTER) if common >= _HALF else common
    left, negates = mine - theirs, bool(theirs - mine) and _negates(wanted, sentence)
    if left and not negates and (left == mine or _has(sentence.content, left)):
        return _WITHOUT, common
    if negates and not mine and ("" in theirs or _has(wanted, theirs)):
        return _WITH_NEGATION, common
    return "", 0.0


def _set_aside(text: str) -> frozenset[str]:
    """Return the first word that a text names only to set it aside: "cities" of "farmers, not cities"."""
    kept, *others = _IN_PART.split(_NO_DENIAL.sub(" ", text), 1)
    return frozenset([word for other in others for word in stemmed(other) if word not in content(kept)][:1])


def _has(words: frozenset[str], denied: set[str]) -> bool:
    """Return whether one of the words that are denied is among others, in any form."""
    return any(is_form(word, other) for word in denied if word for other in words)


def denies_change(text: str) -> bool:
    """Return whether a text denies a change, a difference or an effect: "the difference was not significant"."""
    return _DENIED_CHANGE.search(text) is not None


def _unchanging(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words - _COMPARED if not WORD_OF_CHANGE.match(word))


def _negates(wanted: frozenset[str], sentence: Sentence) -> bool:
    """Return whether the clause with most of some words has a negation: "it carries 400 people, but not dogs" has none."""
    denied, clauses = negated(sentence.text), [(content(text), bool(negated(text))) for text in clauses_of(sentence.text)]
    if denied & wanted - frozenset[str]().union(*(words for words, negates in clauses if not negates)):
        return True  # "it was planned, but never built"
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
            if WORD_OF_CHANGE.match(stem) and OPPOSITES[other] & stems.keys():  # "those to China fell, those to India rose"
                continue
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
    alike = (sentence for sentence in sentences if share(wanted, sentence.content) >= best.around)
    return None if any(_ENGLISH.stem(best.word) in _by_stem(sentence.text) for sentence in alike) else best


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
_SIDES = re.compile(r";|\b(?:but|while|whereas|although|though)\b", re.IGNORECASE)
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
        sentence, other = others[0]
        about = {word for word in content(claim) - content(other) if not _ACT.fullmatch(word)}
        if any(words & one.content for one in sentences) and (about <= words or about & sentence.content):
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
    sides = [(sentence, side) for sentence in sentences for side in _SIDES.split(sentence.text)]
    for speaker in _speakers(claim):
        words = content(speaker)
        matter = content(claim) - words - content(" ".join(match[0] for match in _SAYING.finditer(claim)))
        same = [(sentence, side) for sentence, side in sides if matter and share(matter, content(side)) >= _HALF]
        others = [(sentence, other) for sentence, side in same for other in _speakers(side)]
        known_there = any(words <= sentence.content for sentence in sentences)
        if known_there and others and not any(words & content(side) for _, side in same):
            sentence, other = others[0]
            return sentence, f"of \u201c{other}\u201d"
    return None


def _speakers(text: str) -> list[str]:
    """Return who says something in a text: before or after a word of saying, or after "according to"."""
    parts = [_CLAUSE.split(text[match.end() :])[0] for match in _ACCORDING.finditer(text)]
    for match in _SAYING.finditer(text):
        parts += [_CLAUSE.split(text[: match.start()])[-1], _CLAUSE.split(text[match.end() :])[0] if match[0] == "said" else ""]
    return [agent for part in parts if (agent := _agent(part)) and len(agent.split()) <= 8]
