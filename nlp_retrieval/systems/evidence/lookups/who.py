"""Who did what, who said it, and which of two is more: sentences that say a claim of somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.opposites import opposites
from nlp_retrieval.systems.evidence.lookups.words import Sentence, content, known, pattern, share, stemmed
from nlp_retrieval.text import numbers_of, stems_of_language

_CLAUSE = re.compile(
    r"[,;:.()\u201c\u201d\"]|\b(?:while|but|although|though|whereas|because|which|who|that|and|when|after|before|if)\b",
    re.IGNORECASE,
)
_PRONOUNS = frozenset("he she it they we i you who which that this these those one some many others".split())
_NOT_AN_AGENT = frozenset(
    "also then later first strongly sharply had has have would could will may might not never did does do".split()
)
_ACCORDING = re.compile(r"\baccording to\s", re.IGNORECASE)
_SAME_MATTER = 0.5


def of_another(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    """Return the sentence that says a claim of somebody else or the other way round, and how; None if there is none."""
    return _other_way_round(claim, sentences) or _other_agent(claim, sentences) or _other_speaker(claim, sentences)


# Who did it.


@cache
def _acts() -> re.Pattern[str]:
    """Return a pattern of what somebody does to somebody; words that say the same are one group."""
    acts = (
        "|".join(rf"{word[:-1]}(?:e|es|ed|ing)" if word.endswith("e") else rf"{word}(?:s|ed|ing|es)?" for word in words.split())
        for words in known()["acts"]
    )
    return re.compile(
        r"\b(?P<passive>(?:was|were|is|are|been|being)\s+(?:\w+ly\s+)?)?(?:"
        + "|".join(f"(?P<act{number}>{words})" for number, words in enumerate(acts))
        + r")\b(?P<by>[^.;:,]{0,60}?\bby\b)?",
        re.IGNORECASE,
    )


def _other_agent(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    claimed = list(_done(claim))
    there = [(sentence, *done) for sentence in sentences for done in _done(sentence.text)] if claimed else []
    for act, agent in claimed:
        others = [(sentence, other) for sentence, done, other in there if done == act]
        words = content(agent)
        if not others or any(words & content(other) for _, other in others):
            continue
        about = {word for word in content(claim) - words if not _acts().fullmatch(word)}
        sentence, other = others[0]
        if any(words & one.content for one in sentences) and (not about or about & sentence.content):
            return sentence, f"of \u201c{other}\u201d"
    return None


def _done(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is done in a text, by the name of its group, and by whom."""
    for match in _acts().finditer(text):
        if match["passive"] and not match["by"]:
            continue
        after, before = _CLAUSE.split(text[match.end() :])[0], _CLAUSE.split(text[: match.start()])[-1]
        if not match["passive"] and before.rstrip().endswith(" to"):  # "warm enough to support trees"
            continue
        if agent := _agent(after if match["passive"] else before):
            yield next(name for name, said in match.groupdict().items() if said and name.startswith("act")), agent


def _agent(text: str) -> str:
    """Return who is named in a part of a sentence; empty for a pronoun."""
    words = [word for word in re.split(r"\b(?:of|in|at|for|from)\b", text)[0].split() if word.lower() not in _NOT_AN_AGENT]
    is_named = words and not _PRONOUNS.intersection((words[0].lower(), words[-1].lower())) and stemmed(" ".join(words))
    return " ".join(words) if is_named else ""


# Who said it.


def _other_speaker(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    """Return the sentence in which another says what a claim puts into somebody's mouth who is in the source too."""
    for speaker in _speakers(claim):
        words = content(speaker)
        matter = content(claim) - words - content(" ".join(match[0] for match in pattern("saying").finditer(claim)))
        same = [sentence for sentence in sentences if matter and share(matter, sentence.content) >= _SAME_MATTER]
        others = [(sentence, other) for sentence in same for other in _speakers(sentence.text)]
        known_there = any(words <= sentence.content for sentence in sentences)
        if known_there and others and not any(words & sentence.content for sentence in same):
            sentence, other = others[0]
            return sentence, f"of \u201c{other}\u201d"
    return None


def _speakers(text: str) -> list[str]:
    """Return who says something in a text: before or after a word of saying, or after "according to"."""
    found = [_CLAUSE.split(text[match.end() :])[0] for match in _ACCORDING.finditer(text)]
    for match in pattern("saying").finditer(text):
        found += [_CLAUSE.split(text[: match.start()])[-1], _CLAUSE.split(text[match.end() :])[0] if match[0] == "said" else ""]
    return [agent for part in found if (agent := _agent(part)) and len(agent.split()) <= 8]


# Which of two is more.

_COMPARISON = re.compile(
    r"\b(?P<word>more|less|fewer|worse|better|\w{3,12}er)\b(?P<measure>[^.;:]{0,80}?)\bthan\b|\btimes (?:that|those) of\b",
    re.IGNORECASE,
)
_SAME_MEASURE = 0.6
_LONGEST_SIDE, _MOST_COMPARISONS = 200, 4


class _Comparison(NamedTuple):
    """The comparative of a comparison, and the words on one side of it alone, stemmed."""

    word: str
    before: frozenset[str]
    after: frozenset[str]


def _other_way_round(claim: str, sentences: Sequence[Sentence]) -> tuple[Sentence, str] | None:
    results = [compared(claim, sentence.text) for sentence in sentences] if _COMPARISON.search(claim) else []
    return (sentences[results.index(-1)], "the other way round") if -1 in results and 1 not in results else None


def compared(claim: str, sentence: str) -> int:
    """Return 1 if a sentence compares the two that a claim compares with the same result, -1 with the other one, 0 else.

    "Fewer women than men" and "more men than women" have the same result. All else that the claim says must be in the sentence.
    """
    compares = {_result(claim, one, sentence, other) for one in _comparisons(claim) for other in _comparisons(sentence)}
    return 1 if 1 in compares else min(compares, default=0)


def _result(claim: str, one: _Comparison, sentence: str, other: _Comparison) -> int:
    crossed = (one.before & other.after, one.after & other.before)
    straight = (one.before & other.before, one.after & other.after)
    if all(crossed) == all(straight):
        return 0
    rest = content(claim).difference(content(one.word), *(crossed if all(crossed) else straight))
    if rest and share(rest, content(sentence)) < _SAME_MEASURE:
        return 0
    alike = _alike(one.word, other.word)
    return -alike if all(crossed) else alike


def _comparisons(text: str) -> Iterator[_Comparison]:
    counts = {number.begin for number in numbers_of(text)}
    for match in islice(_COMPARISON.finditer(text), _MOST_COMPARISONS):
        begin, end = match.span()
        if end + 1 in counts:  # "more than ten times"
            continue
        before = _CLAUSE.split(text[max(0, begin - _LONGEST_SIDE) : begin])[-1]
        first, second = (
            content(f"{before} {match['measure'] or ''}"),
            content(_CLAUSE.split(text[end : end + _LONGEST_SIDE])[0]),
        )
        yield _Comparison((match["word"] or "more").lower(), first - second, second - first)


def _alike(one: str, other: str) -> int:
    """Return 1 if two comparatives say the same, -1 if they say the opposite, 0 if neither is known."""
    more, less = (set(known()[name].split()) for name in ("more", "less"))
    if one == other or {one, other} <= more or {one, other} <= less:
        return 1
    stem = stems_of_language("english").stem
    return -1 if stem(other) in opposites().get(stem(one), ()) or {one, other} <= more | less else 0
