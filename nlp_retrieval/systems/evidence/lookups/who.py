"""Who did what, and who said it: sentences that say a claim of somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from nlp_retrieval.systems.evidence.lookups.words import Sentence, content, known, pattern, share, stemmed

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
    """Return the sentence that says a claim of somebody else, and who that is; None if there is none."""
    return _other_agent(claim, sentences) or _other_speaker(claim, sentences)


# Who did it.


@cache
def _acts() -> re.Pattern[str]:
    """Return a pattern of what somebody does to somebody; words that say the same are one group."""
    acts = (
        "|".join(rf"{word[:-1]}(?:e|es|ed|ing)" if word.endswith("e") else rf"{word}(?:s|ed|ing|es)?" for word in words.split())
        for words in known()["acts"]
    )
    return re.compile(
        r"\b(?P<passive>(?:was|were|is|are|be|been|being)\s+(?:(?:not|\w+ly)\s+)?)?(?:"
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
