"""Who did what, and which way a figure went: sentences that say a claim of somebody else, or the other way round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.figures import YEAR, dated_figures
from nlp_retrieval.systems.evidence.names import stemmed
from nlp_retrieval.systems.evidence.opposites import ANTONYMS
from nlp_retrieval.text import numbers_of

# Which way a figure went.

_UP = re.compile(
    r"\b(?:rose|risen|ris(?:e|es|ing)|increas\w*|gr[eo]wn?|grows?|growing|went up|climbed|higher)\b", re.IGNORECASE
)
_DOWN = re.compile(
    r"\b(?:f[ae]ll|fell|fallen|falls|falling|decreas\w*|declin\w*|dropp?\w*|shr[iau]nk\w*|went down|reduc\w*|lower)\b",
    re.IGNORECASE,
)
_BETTER = re.compile(r"\b(?:improv\w*|better)\b", re.IGNORECASE)
_WORSE = re.compile(r"\b(?:worsen\w*|worse|deteriorat\w*)\b", re.IGNORECASE)
_LESS_IS_BETTER = re.compile(
    r"\b(?:delay\w*|late|unemploy\w*|jobless\w*|crimes?|deaths?|mortality|accidents?|errors?|costs?|debts?|deficits?|emissions?|"
    r"pollut\w*|poverty|poor|waste|complaints?|turnover|dropouts?|absen\w+|loss(?:es)?|infections?|injur\w+|vacanc\w+|failures?|"
    r"waiting|cancel\w*|hunger|homeless\w*|illitera\w*|smok\w+|obes\w+)\b",
    re.IGNORECASE,
)
_MORE_IS_BETTER = re.compile(
    r"\b(?:punctual\w*|on time|satisf\w+|employment|literacy|graduat\w+|surviv\w+|profits?|accuracy|turnout|vaccinat\w+|"
    r"recycl\w+|attendance|pass(?:ed|es)?|coverage|healthy|clean|good|success\w*|approv\w+|"
    r"quality|wages?|incomes?|safety|efficien\w+)\b",
    re.IGNORECASE,
)
_LEAST_SHARED = 0.5


def opposite_trend(claim: str, sentence: str) -> str:
    """Return two dated figures of a sentence that go the other way than a claim says, for people; empty if none do."""
    up = _direction(claim, sentence)
    if not up or len(set(YEAR.findall(sentence))) < 2:
        return ""
    years = set(YEAR.findall(claim))
    said = set(stemmed(claim)) - set(stemmed(" ".join(years)))
    about = [word for word in said if not word.isdigit() and not _is_trend(word)]
    for (year, first), (later, second) in pairwise(dated_figures(sentence)):
        if first.percent != second.percent or first.unit != second.unit or first.value == second.value or year == later:
            continue
        if years and not {year, later} <= years and len(years) > 1:
            continue
        rises = (second.value > first.value) == (later > year)
        if rises != (up > 0) and about and sum(word in stemmed(sentence) for word in about) >= _LEAST_SHARED * len(about):
            return f"the other way: {first.measured} in {year} and {second.measured} in {later}"
    return ""


def _direction(claim: str, sentence: str) -> int:
    """Return 1 if a claim says that its figure went up, -1 for down, 0 if it says neither or both."""
    up, down = bool(_UP.search(claim)), bool(_DOWN.search(claim))
    better, worse = bool(_BETTER.search(claim)), bool(_WORSE.search(claim))
    if up + down + better + worse != 1:
        return 0
    if up or down:
        return 1 if up else -1
    for text in (claim, sentence):
        less, more = bool(_LESS_IS_BETTER.search(text)), bool(_MORE_IS_BETTER.search(text))
        if less != more:
            break
    if less == more:
        return 0
    return 1 if better == more else -1


def _says_trend(claim: str) -> bool:
    return any(pattern.search(claim) for pattern in (_UP, _DOWN, _BETTER, _WORSE))


def _is_trend(word: str) -> bool:
    return any(pattern.match(word) for pattern in (_UP, _DOWN, _BETTER, _WORSE))


# Who did it.

_ACTS = tuple(
    "|".join(rf"{act[:-1]}(?:e|es|ed|ing)" if act.endswith("e") else rf"{act}(?:s|ed|ing|es)?" for act in acts.split())
    for acts in (
        "accuse", "acquire buy bought purchase swallow take\\sover took\\sover taken\\sover",
        "attack invade", "back endorse favour support", "beat beaten defeat", "blame", "challenge",
        "condemn criticise criticize denounce", "defend", "demand", "dismiss sack", "fund finance", "hire employ recruit",
        "kill murder", "oppose reject", "outnumber", "overtake overtook surpass", "praise applaud", "propose", "sue", "veto",
        "welcome",
    )
)  # fmt: skip
"""What somebody does to somebody, each with the words that say the same."""
_ACT = re.compile(
    r"\b(?P<passive>(?:was|were|is|are|been|being)\s+(?:\w+ly\s+)?)?(?:"
    + "|".join(rf"(?P<act{number}>{words})" for number, words in enumerate(_ACTS))
    + r")\b(?P<by>[^.;:,]{0,60}?\bby\b)?",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:.()]|\b(?:while|but|although|though|whereas|because|which|who|that|and|when|after|before|if)\b", re.IGNORECASE
)
_PRONOUNS = frozenset("he she it they we i you who which that this these those one some many others".split())
_NOT_AN_AGENT = frozenset(
    "also then later first strongly sharply had has have would could will may might not never did does do".split()
)


def other_agent(claim: str, sentences: Sequence[str]) -> tuple[int, str]:
    """Return the sentence in which somebody does what a claim says of another whom they name too, and who; else -1 and ""."""
    claimed = _acts(claim)
    there = (
        [(number, act, agent) for number, sentence in enumerate(sentences) for act, agent in _acts(sentence)] if claimed else []
    )
    for act, agent in claimed if there else ():
        others = [(number, other) for number, done, other in there if done == act]
        words = set(stemmed(agent))
        if not others or any(words.intersection(stemmed(other)) for _, other in others):
            continue
        about = {word for word in set(stemmed(claim)) - words if not _ACT.fullmatch(word)}
        number, other = others[0]
        known = any(words.intersection(stemmed(sentence)) for sentence in sentences)
        if known and (not about or about.intersection(stemmed(sentences[number]))):
            return number, f"of '{other}'"
    return -1, ""


def _acts(text: str) -> list[tuple[str, str]]:
    """Return what is done in a text, by its number, and by whom."""
    acts = []
    for match in _ACT.finditer(text):
        if match["passive"] and not match["by"]:
            continue
        if match["passive"]:
            agent = _CLAUSE.split(text[match.end() :])[0]
        else:
            agent = _CLAUSE.split(text[: match.start()])[-1]
            if not agent.strip() or agent.rstrip().endswith(" to"):  # "warm enough to support trees"
                continue
        agent = re.split(r"\b(?:of|in|at|for|from)\b", agent)[0]
        words = [word for word in agent.split() if word.lower() not in _NOT_AN_AGENT]
        if words and words[0].lower() not in _PRONOUNS and words[-1].lower() not in _PRONOUNS and stemmed(" ".join(words)):
            act = next(name for name, said in match.groupdict().items() if said and name.startswith("act"))
            acts.append((act, " ".join(words)))
    return acts


# Which of two is more.

_COMPARISON = re.compile(
    r"\b(?P<word>more|less|fewer|worse|better|\w{3,12}er)\b(?P<measure>[^.;:]{0,80}?)\bthan\b|\btimes (?:that|those) of\b",
    re.IGNORECASE,
)
_MORE = frozenset("more greater higher larger bigger".split())
_LESS = frozenset("less fewer lower smaller".split())
_SAME_MEASURE = 0.6
_LONGEST_SIDE, _MOST_COMPARISONS = 200, 4


class _Comparison(NamedTuple):
    """The comparative of a comparison, and the words on one side of it alone, stemmed."""

    word: str
    before: frozenset[str]
    after: frozenset[str]


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
    two = frozenset[str]().union(*(crossed if all(crossed) else straight))
    rest = set(stemmed(claim)) - two - set(stemmed(one.word))
    if len(rest.intersection(stemmed(sentence))) < _SAME_MEASURE * len(rest):
        return 0
    alike = _alike(one.word, other.word)
    return -alike if all(crossed) else alike


def _comparisons(text: str) -> list[_Comparison]:
    matches = list(islice(_COMPARISON.finditer(text), _MOST_COMPARISONS))
    counts = {number.begin for number in numbers_of(text)} if matches else set[int]()
    found = []
    for match in matches:
        if match.end() + 1 in counts:  # "more than ten times"
            continue
        begin, end = match.span()
        before = _CLAUSE.split(text[max(0, begin - _LONGEST_SIDE) : begin])[-1]
        after = _CLAUSE.split(text[end : end + _LONGEST_SIDE])[0]
        first, second = frozenset(stemmed(f"{before} {match['measure'] or ''}")), frozenset(stemmed(after))
        found.append(_Comparison((match["word"] or "more").lower(), first - second, second - first))
    return found


def _alike(one: str, other: str) -> int:
    """Return 1 if two comparatives say the same, -1 if they say the opposite, 0 if neither is known."""
    if one == other or {one, other} <= _MORE or {one, other} <= _LESS:
        return 1
    opposite = other in ANTONYMS.get(one, ()) or (one in _MORE | _LESS and other in _MORE | _LESS)
    return -1 if opposite else 0


def first_other_way(claim: str, sentences: Sequence[str]) -> tuple[int, str]:
    """Return the number of the first sentence that says a claim of another or the other way round, and how; else -1 and ""."""
    for number, sentence in enumerate(sentences) if _says_trend(claim) else ():
        if says := opposite_trend(claim, sentence):
            return number, says
    results = [compared(claim, sentence) for sentence in sentences] if _COMPARISON.search(claim) else []
    if -1 in results and 1 not in results:
        return results.index(-1), "the other way round"
    return other_agent(claim, sentences)
